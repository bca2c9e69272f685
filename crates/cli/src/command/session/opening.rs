//! Opening a session: a keeper is begun, and says whether there is one.

use super::keeper::{CreateSessionRequest, KeeperFailure, KeeperInput, KeeperReply, KeeperTask};
use crate::backend::SandboxSettings;
use crate::error::CliError;
use crate::state;
use crate::web::WebArguments;
use belljar_contract::programs::ProgramList;
use belljar_policy::access::compiled::SandboxAccess;
use belljar_policy::untrusted::{self, Untrusted};
use belljar_sandbox::backend::with_causes;
use belljar_sandbox::backends::chosen::BackendSite;
use belljar_sandbox::config::BackendName;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::{self, SandboxGroup, Session};
use belljar_sandbox::spec::Lent;
use belljar_store::audit::anchor::{self, AnchorTarget};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::Duration;

/// The path that leads to this very program, whatever has become of its file.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// A session that is wanted.
pub(crate) struct NewSession {
    /// Settings of its sandboxes; the first is the one for users' commands.
    pub(crate) quarters: Vec<SandboxSettings>,
    /// Assignment of tools to sandboxes, if there are several.
    pub(crate) divisions: Vec<SandboxGroup>,
    /// Initial workspace.
    pub(crate) workspace: WorkspaceChoice,
    /// Further host paths that are made available in it.
    pub(crate) lent: Vec<Lent>,
    /// Variables to set inside.
    pub(crate) env: BTreeMap<String, String>,
    /// Name given by its owner.
    pub(crate) name: Option<String>,
    /// Policy file for its network access, if it has any ([`policy_file`]).
    pub(crate) egress: Option<PathBuf>,
    /// Terms that follow from its access level, if it has one ([`crate::access::compiled`]).
    pub(crate) access: Option<SandboxAccess>,
    /// Allowlist of programs; `None` allows all.
    pub(crate) programs: Option<ProgramList>,
    /// Time without a running program after which it ends.
    pub(crate) idle_limit: Duration,
    /// Maximum lifetime. Default: 24 hours.
    pub(crate) lifetime_limit: Option<Duration>,
}

/// The file with the policy for a session that works on that; checked.
pub(crate) fn policy_file(
    web: &WebArguments,
    workspace: &WorkspaceChoice,
) -> Result<Option<PathBuf>, CliError> {
    // A commit to a policy file in the workspace would take effect at once, so a copy is checked like a workspace in place.
    let written = match workspace {
        WorkspaceChoice::Copy(source) => WorkspaceChoice::Direct(source.clone()),
        other => other.clone(),
    };
    web.file(&written)
}

/// Makes a session, with a keeper of its own.
pub(crate) fn open(opening: NewSession) -> Result<Session, CliError> {
    // Maximum lifetime without an explicit limit: a forgotten session must not live forever.
    const LONGEST: Duration = Duration::from_secs(24 * 3600);
    let NewSession { quarters, divisions, workspace, lent, env, .. } = opening;
    let backend = quarters.first().map_or(BackendName::Native, |quarter| quarter.backend.name());
    let session = Session {
        id: String::new(),
        name: opening.name,
        backend,
        divisions,
        created_at: Timestamp::now(),
        workspace: shown(&workspace),
        copy_of: match &workspace {
            WorkspaceChoice::Copy(path) => Some(path.as_path().to_owned()),
            WorkspaceChoice::Empty | WorkspaceChoice::Direct(_) | WorkspaceChoice::Seen(_) => None,
        },
        forked_from: None,
        egress: opening.egress,
        access: opening.access.map(Box::new),
        programs: opening.programs,
        idle_limit: opening.idle_limit,
        lifetime_limit: opening.lifetime_limit.unwrap_or(LONGEST),
    };
    let host_variables =
        quarters.iter().flat_map(|quarter| quarter.backend.host_variables(std::env::vars_os()));
    let site = BackendSite {
        state: state::open().path().to_owned(),
        executable: state::own_program()?,
        host_variables: host_variables.collect(),
    };
    begin(&KeeperTask::Create(Box::new(CreateSessionRequest {
        site,
        workspace,
        lent,
        env,
        quarters,
        session,
    })))
}

pub(super) fn must_be_free(name: Option<&str>) -> Result<(), CliError> {
    match name {
        Some(name) if is_like_id(name) => Err(CliError::usage(format!(
            "{} is no name for a session: it looks like the id of a run; choose another one",
            Untrusted(name)
        ))),
        Some(name) if session::find(&state::open(), name).is_ok() => {
            Err(no_session(format!("there is a session {name} already")))
        }
        _ => Ok(()),
    }
}

/// Returns true for an id, and for 6 or more characters that ids of this age begin with. Session names that look so could be taken for the
/// change set of another run.
fn is_like_id(name: &str) -> bool {
    // Ids begin with the time: those of the years up to 2527 with `00` or `01`.
    const SHORTEST: usize = 6;
    let is_of_id = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let is_beginning = (SHORTEST..=36).contains(&name.len()) && name.bytes().enumerate().all(is_of_id);
    is_beginning && (name.len() == 36 || name.starts_with("01"))
}

/// Has a keeper begin, and waits for its word.
pub(super) fn begin(errand: &KeeperTask) -> Result<Session, CliError> {
    let anchors = anchor::installed()?;
    let mut keeper = std::process::Command::new(OWN_PROGRAM);
    keeper.arg0(session::KEEPER).current_dir("/").env_clear();
    if anchors.iter().any(|anchor| matches!(anchor.target, AnchorTarget::Bucket(_))) {
        keeper.envs(std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"AWS_")));
    }
    keeper.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    keeper.stderr(std::process::Stdio::null());
    let failed = |error: &dyn Error| no_session(with_causes(error));
    let mut keeper = keeper.spawn().map_err(|error| failed(&error))?;
    let mut word = String::new();
    if let (Some(mut to), Some(from)) = (keeper.stdin.take(), keeper.stdout.take()) {
        let errand = serde_json::to_vec(&KeeperInput { anchors, errand }).map_err(|error| failed(&error))?;
        to.write_all(&errand).map_err(|error| failed(&error))?;
        drop(to);
        BufReader::new(from).read_line(&mut word).map_err(|error| failed(&error))?;
    }
    let word: KeeperReply =
        serde_json::from_str(&word).map_err(|_| no_session("its keeper ended".to_owned()))?;
    word.map_err(|KeeperFailure { why, lacks_backend }| CliError::NoSession { why, lacks_backend })
}

fn no_session(why: String) -> CliError {
    CliError::NoSession { why, lacks_backend: false }
}

fn shown(workspace: &WorkspaceChoice) -> String {
    match workspace {
        WorkspaceChoice::Empty => "empty".to_owned(),
        WorkspaceChoice::Direct(path) | WorkspaceChoice::Seen(path) => untrusted::name(path.as_path()),
        WorkspaceChoice::Copy(path) => format!("copy of {}", untrusted::name(path.as_path())),
    }
}

#[cfg(test)]
mod tests {
    use super::is_like_id;

    #[test]
    fn session_name_that_looks_like_an_id_is_recognized() {
        let id = uuid::Uuid::now_v7().to_string();
        let upper = id.to_uppercase();
        for name in
            [id.as_str(), &upper, &id[..6], &id[..9], &id[..30], "6ba7b810-9dad-11d1-80b4-00c04fd430c8"]
        {
            assert!(is_like_id(name), "{name}");
        }
        for name in
            ["work", "facade", "deadbeef", "20261127", "2026-11-27", "01", "0192f", "01-first", "0192f0c1x"]
        {
            assert!(!is_like_id(name), "{name}");
        }
    }
}
