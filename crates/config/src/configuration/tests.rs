//! The reference of the configuration against the parser: neither knows a member that the other doesn't, and what the
//! reference says of one is what the parser does.

use super::Configuration;
use crate::reference::{AcceptedValues, Member, MemberDefault, ROOT};
use belljar_agent::catalogue::Catalogue;
use belljar_contract::isolation::LAYERS;
use belljar_contract::yaml::instead_of;
use belljar_egress::inference::budget::BudgetLimits;
use belljar_egress::web::config::WebConfig;
use belljar_files::host_path::HostPath;
use belljar_node::api::token::Token;
use belljar_node::daemon::{
    CallbackConfig, McpConfig, Retention, SessionLimits, Settings, Timeouts, TracesConfig,
};
use belljar_node::{ImageSettings, ManagedSettings};
use belljar_policy::access::AccessRules;
use belljar_sandbox::config::Config;
use belljar_sandbox::state::StateDirectory;
use belljar_testkit::world::World;
use belljar_tools::builtin::configured::config::ToolsConfig;

/// A member with the path to it: each element with its siblings.
type MemberPath = Vec<(&'static Member, &'static [Member])>;

/// Parse result of a file, as far as a default may affect it.
#[derive(Debug, PartialEq)]
struct ParseOutcome {
    git: belljar_policy::git::GitRules,
    trust: Option<belljar_policy::trust::TrustConfig>,
    mcp: McpConfig,
    tools: ToolsConfig,
    sandboxing: Config,
    agents: Catalogue,
    inference: Option<(BudgetLimits, bool)>,
    egress: Option<WebConfig>,
    node: (u64, usize, Timeouts, SessionLimits, Retention, String),
    images: ImageSettings,
    managed: ManagedSettings,
    traces: Option<TracesConfig>,
    access: AccessRules,
    approvals: belljar_policy::approval::ApprovalRules,
    callback: Option<CallbackConfig>,
    anchors: Vec<belljar_store::audit::anchor::AnchorSettings>,
}

/// Name of a member that no section has.
const UNKNOWN: &str = "a_member_that_no_section_knows";

/// Replacement values that differ from those in the reference. Numbers and booleans need none: the test derives another value.
const OTHERS: &[(&str, &str)] = &[
    ("hosts", "[git.house.example]"),
    ("networks", "[10.0.0.0/8]"),
    ("remotes", "['https://git.house.example/team/']"),
    ("args", "[x]"),
    ("lend", "[/opt/x]"),
    ("disabled_tools", "[x]"),
    ("scope", "both"),
    ("default_level", "restricted"),
    ("allowed", "[x]"),
    ("denied", "[x]"),
    ("auto_approve", "[deploy]"),
    ("human_approval", "[code]"),
    ("timeout", "{deny_after: 4h}"),
    ("level", "supervised"),
    ("audience", "internal"),
    ("sni", "optional"),
    ("tls", "implicit"),
    ("mode", "direct"),
    ("default_backend", "native"),
    ("required", "[landlock]"),
    ("extra_safe_path_prefixes", "[/opt/bin]"),
    ("image", "other:1"),
    ("network", "bridge"),
    ("network_overrides", "{}"),
    ("cpu_limit", "\"1.5\""),
    ("mount_mode", "rw"),
    ("runtime_overrides", "{web: runsc}"),
    ("strategy", "per-call"),
    ("namespace", "others"),
    ("network_policy", "allow-all"),
    ("allowed_hosts", "['db.example:5432']"),
    ("names", "there"),
    ("as", "basic"),
    ("writes", "allow"),
    ("env", "{A: b}"),
    ("files", "{a: b}"),
    ("output", "envelope"),
    ("tool_scopes", "{web.fetch: pm}"),
    ("billing_account", "other"),
    ("allowed_origins", "['https://other.example']"),
];

/// Members of `sandboxing` with one value: another one is refused with the reason, since nothing would hold it.
const ONLY: &[&str] = &[
    "allowed_hosts",
    "auto_remove",
    "cpu",
    "dns_allowed",
    "grace_period_seconds",
    "health_check_interval_seconds",
    "loopback_allowed",
    "memory",
    "namespace",
    "network_policy",
    "sidecar_pids_limit",
    "sidecar_tmpfs_size",
];

/// Every member of the file.
fn ways() -> Vec<MemberPath> {
    fn walk(before: &MemberPath, members: &'static [Member], found: &mut Vec<MemberPath>) {
        for member in members {
            let way: MemberPath = before.iter().copied().chain([(member, members)]).collect();
            if let AcceptedValues::Section(below) | AcceptedValues::Sections(below) = member.takes {
                walk(&way, below, found);
            }
            found.push(way);
        }
    }
    let mut found = Vec::new();
    walk(&Vec::new(), ROOT, &mut found);
    found
}

/// Returns the path of a member as error messages write it.
fn place(way: &MemberPath) -> String {
    let last = way.len() - 1;
    let step = |(index, (member, _)): (usize, &(&Member, _))| match member.takes {
        AcceptedValues::Sections(_) if index < last => format!("{}[0]", member.name),
        _ => member.name.to_owned(),
    };
    way.iter().enumerate().map(step).collect::<Vec<_>>().join(".")
}

/// A section with a member, and what must stand beside it.
fn section(members: &[Member], written: Option<(&str, &str)>) -> String {
    // Beside `log` it is required, and nothing that it says by itself shows elsewhere.
    let needed = |member: &&Member| {
        matches!(member.default, MemberDefault::Required(_)) || member.name == "sandboxing"
    };
    let others =
        members.iter().filter(needed).filter(|member| written.is_none_or(|(name, _)| name != member.name));
    let others = others.map(|member| format!("{}: {}", member.name, sample(member)));
    let all: Vec<String> =
        written.map(|(name, value)| format!("{name}: {value}")).into_iter().chain(others).collect();
    format!("{{{}}}", all.join(", "))
}

/// A value that a member takes.
fn sample(member: &Member) -> String {
    let (MemberDefault::Value(said) | MemberDefault::Described(_, said) | MemberDefault::Required(said)) =
        member.default
    else {
        return made(member);
    };
    if said.is_empty() { made(member) } else { said.to_owned() }
}

fn made(member: &Member) -> String {
    match member.takes {
        AcceptedValues::Section(below) => section(below, None),
        AcceptedValues::Sections(below) => format!("[{}]", section(below, None)),
        _ => panic!("{} has no sample", member.name),
    }
}

/// A file in which the member at a way's end has a value, or is absent.
fn file(way: &MemberPath, value: Option<&str>) -> String {
    let mut value = value.map(str::to_owned);
    for (index, (member, members)) in way.iter().enumerate().rev() {
        let inner = section(members, value.as_deref().map(|value| (member.name, value)));
        let is_in_list = index > 0 && matches!(way[index - 1].0.takes, AcceptedValues::Sections(_));
        value = Some(if is_in_list { format!("[{inner}]") } else { inner });
    }
    let value = value.unwrap_or_default();
    let place = place(way);
    // Forges name what another section has, and searches what theirs has.
    if place.starts_with("git.forges") {
        return value.replacen('{', &format!("{{egress: {HOUSE}, "), 1);
    }
    if place.starts_with("egress.search") {
        return value.replacen("egress: {", &format!("egress: {{{SEARCHES}, "), 1);
    }
    // Members of one strategy are not valid without it.
    let of_strategy = |(member, _): &&(&str, &str)| {
        place.starts_with(&format!("trust.{member}")) && value.contains(&format!("{member}: "))
    };
    if let Some((_, beside)) = OF_STRATEGIES.iter().find(of_strategy) {
        return value.replacen("trust: {", &format!("trust: {{{beside}, "), 1);
    }
    // A user is named beside plain HTTP alone.
    let value = if place.ends_with(".user") { value.replace("https://", "http://") } else { value };
    // Members of one transport are not valid beside the other.
    match OF_HTTP.iter().any(|name| place == *name) {
        true if place.ends_with("url") => value.replace(BY_STDIO, "transport: streamable_http"),
        true => value.replace(BY_STDIO, "transport: streamable_http, url: 'http://127.0.0.1:7000/mcp'"),
        false => value,
    }
}

/// Members of servers that are asked by HTTP, and what stands there for the others.
const OF_HTTP: [&str; 3] = ["mcp.servers[0].url", "mcp.servers[0].user", "mcp.servers[0].headers"];
const BY_STDIO: &str = "transport: stdio, command: mcp-server-filesystem";

/// Members that belong to one strategy of trust, and what stands beside them.
const OF_STRATEGIES: [(&str, &str); 7] = [
    ("initial_levels", "strategy: per_category, promotion_criteria: {web: {sandboxed_to_restricted: {}}}"),
    ("weights", "strategy: weighted, promotion_thresholds: {sandboxed_to_restricted: 0.4}"),
    ("promotion_thresholds", "strategy: weighted"),
    ("promotion_criteria", "strategy: per_category, initial_levels: {web: sandboxed}"),
    ("milestones", "strategy: milestone"),
    ("re_verification", "strategy: milestone, milestones: {sandboxed_to_restricted: {}}"),
    ("jobs", "strategy: milestone, milestones: {sandboxed_to_restricted: {}}"),
];

const SEARCHES: &str = "connections: [{name: house, url: 'https://searches.example/'}, {name: other, url: 'https://other.example/'}]";

const HOUSE: &str = "{rules: [], connections: [{name: house, url: 'https://house.example/api'}]}";

/// Returns the parser's expectation at a place of a file that has a mistake there.
#[track_caller]
fn expected(file: &str, place: &str) -> String {
    let mistakes =
        Configuration::parse(file.as_bytes()).err().unwrap_or_else(|| panic!("no mistake in {file}"));
    let found = mistakes.as_slice().iter().find(|mistake| mistake.path == place);
    found.unwrap_or_else(|| panic!("no mistake at {place} of {file}:\n{mistakes}")).expected.clone()
}

#[track_caller]
fn read(file: &str) -> Configuration {
    Configuration::parse(file.as_bytes()).unwrap_or_else(|mistakes| panic!("{file}:\n{mistakes}"))
}

#[test]
fn parser_accepts_exactly_the_members_of_the_reference() {
    let sections = ways().into_iter().filter_map(|way| match way.last()?.0.takes {
        AcceptedValues::Section(below) => {
            Some((file(&way, Some(&section(below, Some((UNKNOWN, "1"))))), place(&way) + ".", below))
        }
        AcceptedValues::Sections(below) => Some((
            file(&way, Some(&format!("[{}]", section(below, Some((UNKNOWN, "1")))))),
            place(&way) + "[0].",
            below,
        )),
        _ => None,
    });
    let root = (section(ROOT, Some((UNKNOWN, "1"))), String::new(), ROOT);
    for (file, place, members) in sections.chain([root]) {
        let names: Vec<&str> = members.iter().map(|member| member.name).collect();
        assert_eq!(expected(&file, &format!("{place}{UNKNOWN}")), instead_of(UNKNOWN, &names), "{place}");
    }
}

#[test]
fn parser_errors_name_the_values_that_the_reference_documents() {
    for way in ways() {
        let (said, wrong, below) = match way.last().unwrap().0.takes {
            AcceptedValues::One(said) => (said.to_string(), "{}", ""),
            AcceptedValues::List(said) => (said.to_string(), "[{}]", "[0]"),
            AcceptedValues::Layers => (instead_of("", &LAYERS), "[{}]", "[0]"),
            AcceptedValues::ByCategory(said) => (said.to_string(), "{web: {}}", ".web"),
            AcceptedValues::ByName(said) => (said.to_string(), "{A: {}}", ".A"),
            AcceptedValues::Section(_) => ("a mapping".to_owned(), "[]", ""),
            AcceptedValues::Sections(_) => ("a list, such as `[]`".to_owned(), "{}", ""),
        };
        let place = place(&way);
        let expected = expected(&file(&way, Some(wrong)), &format!("{place}{below}"));
        // Some name what this very file has.
        let is_said = expected == said || expected.starts_with(&format!("{said}: "));
        assert!(is_said, "{place}: the parser says {expected:?}, the reference {said:?}");
    }
}

/// Members that say where a secret comes from.
const SOURCES: [&str; 7] = [
    "credential.",
    "from.",
    "access_key_id.",
    "secret_access_key.",
    "session_token.",
    "password.",
    "secret.",
];

/// Member that refers to a name in another part of the file.
const OF_OTHERS: &str = "egress.rules[0].credentials";

#[test]
fn samples_of_the_reference_parse_and_only_required_members_are_required() {
    for way in ways() {
        let member = way.last().unwrap().0;
        if place(&way) == OF_OTHERS {
            let text = format!(
                "egress:\n  rules: [{{host: a, credentials: {}}}]\n  credentials: [{{name: house, from: {{env: A}}}}]\n",
                sample(member)
            );
            drop(read(&text));
            continue;
        }
        let _ = read(&file(&way, Some(&sample(member))));
        // Required members of a section are also required if the section itself is optional.
        match (member.default, way.as_slice()) {
            (MemberDefault::Required(_), [before @ .., (_, members)]) => {
                let without: Vec<Member> =
                    members.iter().copied().filter(|other| other.name != member.name).collect();
                let value = section(&without, None);
                let is_in_list = matches!(before.last().unwrap().0.takes, AcceptedValues::Sections(_));
                let value = if is_in_list { format!("[{value}]") } else { value };
                assert_eq!(
                    expected(&file(&before.to_vec(), Some(&value)), &place(&way)),
                    "this required member"
                );
            }
            // One of several, whichever it is.
            _ if SOURCES.iter().any(|source| place(&way).contains(source)) => {}
            _ if place(&way) == OF_HTTP[0] => {}
            _ => drop(read(&file(&way, None))),
        }
    }
}

#[test]
fn documented_defaults_equal_the_parsed_defaults() {
    let world = World::new("belljar");
    for way in ways() {
        let member = way.last().unwrap().0;
        let MemberDefault::Value(value) = member.default else { continue };
        let outcome = |value: Option<&str>| outcome(&read(&file(&way, value)), &world);
        assert_eq!(outcome(Some(value)), outcome(None), "{}", place(&way));
        // The control: another value shows, or is refused.
        let other = another(member.name, value);
        match ONLY.contains(&member.name) && place(&way).starts_with("sandboxing.") {
            true => assert!(expected(&file(&way, Some(&other)), &place(&way)).contains(": "), "{other}"),
            false => assert_ne!(outcome(Some(&other)), outcome(None), "{}", place(&way)),
        }
    }
}

fn another(name: &str, value: &str) -> String {
    if let Ok(boolean) = value.parse::<bool>() {
        return (!boolean).to_string();
    }
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    if let Ok(number) = value[..digits].parse::<u64>() {
        return format!("{}{}", number + 1, &value[digits..]);
    }
    let other = OTHERS.iter().find(|(other, _)| *other == name);
    other.unwrap_or_else(|| panic!("no other value of {name}")).1.to_owned()
}

fn outcome(read: &Configuration, world: &World) -> ParseOutcome {
    let mut settings = settings(world);
    read.node.apply(&mut settings);
    let Settings {
        max_waiting,
        max_request_bytes,
        timeouts,
        sessions,
        retention,
        billing_account_id,
        images,
        managed,
        ..
    } = settings;
    ParseOutcome {
        sandboxing: read.sandboxing.clone(),
        git: read.git.clone(),
        trust: read.trust.clone(),
        mcp: read.mcp.clone(),
        tools: read.tools.clone(),
        access: read.access.clone(),
        approvals: read.approvals.clone(),
        agents: read.agents.clone(),
        inference: read.inference.as_ref().map(|inference| (inference.budget, inference.keeps_bodies)),
        egress: read.egress.clone(),
        node: (max_waiting, max_request_bytes, timeouts, sessions, retention, billing_account_id),
        images,
        managed,
        traces: read.node.traces.clone(),
        callback: read.node.callback.clone(),
        anchors: read.anchors.clone(),
    }
}

/// Returns settings with the defaults.
fn settings(world: &World) -> Settings {
    world.write("token", "the-token-of-tests-0123456789");
    let token = Token::read(&world.path().join("token")).unwrap();
    let runner = HostPath::resolve(std::env::current_exe().unwrap()).unwrap();
    Settings::new("127.0.0.1:0".parse().unwrap(), StateDirectory::at(world.path()), token, runner)
}

#[test]
fn forge_connection_must_exist_in_egress_connections() {
    let forges = "git: {forges: [{host: h.example, kind: gitea, connection: house}]}";
    assert_eq!(expected(forges, "git.forges"), "the name of one of `egress.connections`");
    let read = read(&format!("{forges}\negress: {HOUSE}\n"));
    assert_eq!(read.git.forges.len(), 1);
    let twice = "{host: h.example, kind: gitea, connection: house}";
    let twice = format!("{{egress: {HOUSE}, git: {{forges: [{twice}, {twice}]}}}}");
    assert_eq!(expected(&twice, "git.forges"), "each host once");
}
