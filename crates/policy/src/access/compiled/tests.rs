//! Tests of a sandbox's terms, for each value of each dimension.

use super::*;
use crate::access::{ConstraintOverrides, Levels};
use crate::egress::{DenyReason, Destination, EgressRequest, Host};
use belljar_contract::access::AccessLevel;

fn constraints(level: AccessLevel) -> Constraints {
    Levels::default().of(level).constraints.clone()
}

fn compiled(said: &ConstraintOverrides) -> SandboxAccess {
    SandboxAccess::of(&constraints(AccessLevel::Elevated).with(said))
}

fn house() -> EgressPolicy {
    EgressPolicy::new(vec![Rule::for_hosts(HostPattern::parse("house.example").unwrap())])
}

fn reach(policy: &EgressPolicy, host: &str, asked: EgressRequest<'_>) -> Result<bool, DenyReason> {
    let destination = Destination { host: Host::parse(host).unwrap(), port: 443 };
    policy.decide(destination, asked).map(|allowed| allowed.is_inspected()).map_err(|denied| denied.reason)
}

const PUSH: EgressRequest<'_> = EgressRequest::Request { method: "POST", path: "/a.git/git-receive-pack" };
const FETCH: EgressRequest<'_> = EgressRequest::Request { method: "POST", path: "/a.git/git-upload-pack" };

#[test]
fn workspace_is_empty_or_the_project_and_only_the_widest_scope_gets_mounts() {
    let of = |scope| {
        let compiled =
            compiled(&ConstraintOverrides { file_system: Some(scope), ..ConstraintOverrides::default() });
        (compiled.workspace, compiled.is_lent_to)
    };
    assert_eq!(of(FileSystemScope::WorkspaceOnly), (WorkspaceAccess::Empty, false));
    assert_eq!(of(FileSystemScope::ProjectDirectory), (WorkspaceAccess::Project, false));
    assert_eq!(of(FileSystemScope::Full), (WorkspaceAccess::Project, true));
}

#[test]
fn network_mode_none_disables_egress_and_git() {
    let said = ConstraintOverrides { network: Some(NetworkMode::None), ..ConstraintOverrides::default() };
    let compiled = compiled(&said);
    assert_eq!(compiled.egress(&house()), None);
    assert_eq!(compiled.git, GitOperations { fetches: false, pushes: false });
}

#[test]
fn allowlist_network_allows_listed_hosts_and_house_rules() {
    let place = NetworkEndpoint::parse("pkgs.example:443").unwrap();
    let said = ConstraintOverrides {
        network: Some(NetworkMode::AllowlistOnly),
        network_allowlist: Some(vec![place]),
        ..ConstraintOverrides::default()
    };
    let policy = compiled(&said).egress(&house()).unwrap();
    assert_eq!(reach(&policy, "pkgs.example", EgressRequest::Tunnel), Ok(false));
    assert_eq!(reach(&policy, "house.example", EgressRequest::Tunnel), Ok(false));
    assert_eq!(reach(&policy, "elsewhere.example", EgressRequest::Tunnel), Err(DenyReason::Host));
    let nothing =
        ConstraintOverrides { network: Some(NetworkMode::AllowlistOnly), ..ConstraintOverrides::default() };
    let policy = compiled(&nothing).egress(&EgressPolicy::default()).unwrap();
    assert_eq!(reach(&policy, "pkgs.example", EgressRequest::Tunnel), Err(DenyReason::NoRules));
}

#[test]
fn open_network_allows_every_public_host_and_no_private_address() {
    let policy =
        SandboxAccess::of(&constraints(AccessLevel::Standard)).egress(&EgressPolicy::default()).unwrap();
    assert_eq!(reach(&policy, "anywhere.example", EgressRequest::Tunnel), Ok(false));
    let destination = Destination { host: Host::parse("inside.example").unwrap(), port: 443 };
    let allowed = policy.decide(destination, EgressRequest::Tunnel).unwrap();
    for address in ["10.0.0.7", "127.0.0.1", "169.254.169.254", "fd00::1"] {
        assert!(allowed.clone().vet(&[address.parse().unwrap()], &[]).is_err(), "{address}");
    }
    assert!(allowed.vet(&["93.184.216.34".parse().unwrap()], &[]).is_ok());
}

#[test]
fn open_network_is_no_wider_than_mandatory_house_rules() {
    let standard = SandboxAccess::of(&constraints(AccessLevel::Standard));
    let within = standard.egress_within(&house()).unwrap();
    assert_eq!(reach(&within, "house.example", EgressRequest::Tunnel), Ok(false));
    assert_eq!(reach(&within, "anywhere.example", EgressRequest::Tunnel), Err(DenyReason::Host));
    assert!(reach(&standard.egress(&house()).unwrap(), "anywhere.example", EgressRequest::Tunnel).is_ok());
    assert_eq!(standard.egress_within(&EgressPolicy::default()), Some(EgressPolicy::default()));
    assert_eq!(SandboxAccess::of(&constraints(AccessLevel::Sandboxed)).egress_within(&house()), None);
}

#[test]
fn read_only_git_access_denies_pushes_through_the_web() {
    for (git, pushed) in [
        (GitAccess::LocalOnly, Err(DenyReason::Push)),
        (GitAccess::ReadAndBranch, Err(DenyReason::Push)),
        (GitAccess::Full, Ok(false)),
    ] {
        let said = ConstraintOverrides { git: Some(git), ..ConstraintOverrides::default() };
        let compiled = compiled(&said);
        let policy = compiled.egress(&house()).unwrap();
        let is_inspected = git != GitAccess::Full;
        assert_eq!(reach(&policy, "house.example", PUSH), pushed, "{git}");
        let fetched = if git == GitAccess::LocalOnly { Err(DenyReason::Fetch) } else { Ok(is_inspected) };
        assert_eq!(reach(&policy, "house.example", FETCH), fetched, "{git}");
        let page = EgressRequest::Request { method: "GET", path: "/a.git" };
        assert_eq!(reach(&policy, "house.example", page), Ok(is_inspected), "{git}");
        assert_eq!(reach(&policy, "house.example", EgressRequest::Tunnel), Ok(is_inspected), "{git}");
        let odd = EgressRequest::Request { method: "POST", path: "/a/..%2fgit-receive-pack" };
        assert_eq!(reach(&policy, "house.example", odd).is_ok(), git == GitAccess::Full);
        assert_eq!(compiled.git.pushes, git == GitAccess::Full);
        assert_eq!(compiled.git.fetches, git != GitAccess::LocalOnly);
    }
}

#[test]
fn terminal_access_selects_all_listed_or_tool_programs() {
    let of = |terminal| {
        compiled(&ConstraintOverrides { terminal: Some(terminal), ..ConstraintOverrides::default() }).programs
    };
    assert_eq!(of(TerminalAccess::Full), ProgramAccess::All);
    let ProgramAccess::Only { names } = of(TerminalAccess::RestrictedCommands) else { panic!("all of them") };
    assert!(names.contains("ls") && names.contains("sh"));
    for name in ["curl", "wget", "ssh", "nc", "sudo", "su", "mount", "docker", "systemctl", "crontab", "dd"] {
        assert!(!names.contains(name), "{name}");
    }
    let ProgramAccess::Only { names } = of(TerminalAccess::None) else { panic!("all of them") };
    assert!(names.contains("python3") && !names.iter().any(|name| name.ends_with("sh")));
}

#[test]
fn lower_access_level_has_nothing_beyond_the_higher_level() {
    let all = [AccessLevel::Sandboxed, AccessLevel::Restricted, AccessLevel::Standard, AccessLevel::Elevated]
        .map(|level| SandboxAccess::of(&constraints(level)));
    for (index, lower) in all.iter().enumerate() {
        for higher in &all[index..] {
            assert!(lower.is_within(higher), "{lower:?} {higher:?}");
        }
        for higher in &all[index + 1..] {
            assert!(!higher.is_within(lower), "{higher:?} {lower:?}");
        }
    }
    let listed = |places: &[&str], refuses_pushes| WebAccess::Listed {
        places: places.iter().map(|place| NetworkEndpoint::parse(place).unwrap()).collect(),
        refuses_pushes,
    };
    assert!(listed(&["a.example"], true).is_within(&listed(&["a.example", "b.example"], false)));
    assert!(!listed(&["c.example"], true).is_within(&listed(&["a.example"], false)));
    assert!(!listed(&[], false).is_within(&listed(&[], true)));
}

/// A session with more in any one dimension does not fit terms with less.
#[test]
fn access_wider_in_one_dimension_is_not_within_the_narrower() {
    let least = SandboxAccess::of(&constraints(AccessLevel::Sandboxed));
    let least = SandboxAccess { isolation: CodeIsolation::Containerized, ..least };
    let more = [
        SandboxAccess { workspace: WorkspaceAccess::Project, ..least.clone() },
        SandboxAccess { is_lent_to: true, ..least.clone() },
        SandboxAccess { web: WebAccess::Open { refuses_pushes: true }, ..least.clone() },
        SandboxAccess {
            programs: ProgramAccess::Only { names: ["another".to_owned()].into() },
            ..least.clone()
        },
        SandboxAccess { programs: ProgramAccess::All, ..least.clone() },
        SandboxAccess { git: GitOperations { fetches: true, pushes: false }, ..least.clone() },
        SandboxAccess { git: GitOperations { fetches: false, pushes: true }, ..least.clone() },
        SandboxAccess { isolation: CodeIsolation::Process, ..least.clone() },
    ];
    for more in more {
        assert!(!more.is_within(&least), "{more:?}");
        assert!(more.is_within(&more), "{more:?}");
    }
    // Control: none of these is less than the minimum in any other dimension.
    let project = SandboxAccess { workspace: WorkspaceAccess::Project, is_lent_to: true, ..least.clone() };
    assert!(least.is_within(&project) && !project.is_within(&least));
}
