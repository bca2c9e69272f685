//! Hints on how to fix an error, printed after the error.

use belljar_confine::launch::LaunchError;
use belljar_confine::stage::Stage;
use belljar_git::pull_request::PlanError;
use belljar_sandbox::kept::KeptError;
use belljar_sandbox::native::StartError;
use belljar_sandbox::session::Refusal;
use rustix::io::Errno;

pub(super) const HANDOFF_HINT: &str =
    "nothing was written; review the files, then approve them with --trust PATH for each, or --trust-all";

pub(super) const CONFLICT_HINT: &str = "nothing was written; `belljar session diff` shows what the session has, and \
     `belljar session discard` gives these paths up there";

pub(super) const DAMAGED_HINT: &str = "nothing is added to a damaged log; keep its folder as it is for an investigation, \
     under another name: a new one is begun then";

pub(super) const TAKEN_HINT: &str = "a node serves from that state, or another `belljar job` works on it; \
     `belljar job --node http://ADDRESS:PORT --token-file FILE …` asks the node, BELLJAR_STATE_DIR names another state";

pub(super) const LIVING_HINT: &str = "stop the other node first; if this state directory is a copy of the other's, remove `node-id` in the copy: \
     it becomes a node of its own, and the jobs stay with the other";

pub(super) const NO_BASIS_HINT: &str =
    "`belljar audit verify` tells what is wrong with it; --unverified reads what comes before that";

pub(super) const UNAVAILABLE_HINT: &str = "with --backend native the sandbox is made by this kernel alone, and needs no engine; \
     `belljar doctor` tells what the kernel offers";

pub(super) fn plan_hint(error: &PlanError) -> Option<&'static str> {
    match error {
        PlanError::NoForge { .. } | PlanError::NoConnection { .. } => Some(
            "nothing was pushed; `git.forges` in the configuration says which forge a host is, and by which of \
             `egress.connections` it is called",
        ),
        PlanError::NotFor { .. } => Some(
            "nothing was pushed; the connection takes `methods: [GET, POST]`, and a url as docs/guides/git.md says",
        ),
        PlanError::NoProject { .. } | PlanError::Base { .. } => None,
    }
}

pub(super) fn kept_hint(error: &KeptError) -> Option<&'static str> {
    match error {
        KeptError::NoSuch { .. } => Some("`belljar changes list` lists the kept changes"),
        KeptError::Ambiguous { .. } => Some("use the whole id"),
        KeptError::Busy { .. } => Some("try again when it is done"),
        KeptError::SourceGone { .. } => Some(
            "put the directory back, or copy what you need from the folder that `belljar changes show` names",
        ),
        KeptError::LaidOut { .. } => Some(
            "copy the files from there, or push them: `belljar changes push`; `belljar changes rm` deletes them",
        ),
        _ => None,
    }
}

pub(super) fn refusal_hint(refusal: &Refusal) -> Option<&'static str> {
    match refusal {
        Refusal::Direct { .. } | Refusal::Shared { .. } | Refusal::Empty => Some(
            "`belljar session create --workspace-copy DIR` makes a session whose changes are apart from DIR",
        ),
        Refusal::Busy { .. } => Some("wait for them, or say --force: they will see their files change"),
        Refusal::Conflict { .. } => Some(CONFLICT_HINT),
        Refusal::Partly { .. } => {
            Some("`belljar session diff` shows what is left; `belljar session discard` gives it up")
        }
        Refusal::Stale { .. } | Refusal::Overtaken => Some(
            "nothing was written; look at `belljar session diff` again, then commit with the digest that it prints",
        ),
        Refusal::Handoff { .. } => Some(
            "nothing was written; `belljar session diff` shows the changes and their digest; commit with --reviewed DIGEST \
             and --trust PATH for each that may go there, or --trust-all",
        ),
        Refusal::Unshown { .. } => Some(
            "nothing was written; review the files themselves: `belljar session diff` lists their sizes and hashes; then add --unshown",
        ),
        Refusal::Apart => {
            Some("`belljar session create --workspace-copy DIR` without --backend makes such a session")
        }
        Refusal::Full { .. } => Some("free space with `belljar session discard`, or remove files"),
        Refusal::Uncommitted { .. } => Some(
            "`belljar session commit` writes them to the directory that was copied; \
             `belljar session end --keep` keeps them for `belljar changes`, `--discard` deletes them",
        ),
        Refusal::Outside { .. } | Refusal::Unchanged { .. } => None,
    }
}

pub(super) fn start_hint(error: &StartError) -> Option<&'static str> {
    match error {
        StartError::Launch(LaunchError::Clone { .. }) => {
            Some("this kernel may not let you make user namespaces; `belljar doctor` tells how to allow it")
        }
        StartError::Launch(LaunchError::Stage { stage: Stage::Root, source: Errno::INVAL, .. }) => Some(
            "the file system of the state directory may not carry an overlay; \
             set BELLJAR_STATE_DIR to a directory on another one",
        ),
        StartError::Lend(_) => Some(
            "this file system has no identity-mapped mounts; run belljar as the user who owns the directory",
        ),
        StartError::Launch(LaunchError::Stage { .. }) => {
            Some("`belljar doctor` checks every layer and names remedies")
        }
        _ => None,
    }
}
