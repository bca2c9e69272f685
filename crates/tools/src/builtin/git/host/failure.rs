//! Errors of the host's git, as agents get them.

use super::bounds::TreeSizeWatch;
use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use belljar_egress::git::PinError;
use belljar_files::tree::TreeError as CopyError;
use belljar_git::clone::CloneError;
use belljar_git::{BaseError, CommitError, GitError, PushError, TreeError};
use belljar_policy::handoff::Finding;
use belljar_sandbox::backend::with_causes;

/// Maximum number of paths that are named.
const MOST_NAMED: usize = 50;

/// Returns the failure of a clone.
pub(super) fn of_cloning(error: &CloneError, watch: &TreeSizeWatch<'_>) -> Failure {
    match error {
        CloneError::Pin(error) => of_pin(error),
        CloneError::Base(BaseError::Git(GitError::Canceled)) if watch.is_too_large() => {
            let message = "the repository is larger than what is cloned for an agent: `depth` takes less of its history";
            Failure::new(DomainCode::LimitExceeded, message)
        }
        CloneError::Base(BaseError::Git(GitError::Canceled)) if watch.is_late() => {
            let message = "it took longer than a clone may: `depth` takes less of its history";
            Failure::new(DomainCode::LimitExceeded, message)
        }
        CloneError::Base(error) => of_base(error),
        CloneError::Book(error) => Failure::internal("record it, so git went nowhere", error),
    }
}

/// Returns the failure of a run whose clones have reached their limit together.
pub(super) fn of_full_run() -> Failure {
    let message = "this run's clones have reached their limit of 2 GiB in all: `depth` takes less of a repository's history";
    Failure::new(DomainCode::LimitExceeded, message)
}

/// Returns the failure of a host's own clone that can't be used.
pub(super) fn of_base(error: &BaseError) -> Failure {
    match error {
        BaseError::Git(error) => of_git(error),
        BaseError::NoRoom { .. } => {
            let message = format!(
                "{error}; one that is cloned into one of these, once it is empty, takes its place, and so does another session"
            );
            Failure::new(DomainCode::LimitExceeded, message)
        }
        error => Failure::internal("keep the clone", error),
    }
}

/// Returns the failure of a tree that can't be listed, or copied into a workspace.
pub fn of_tree(error: &CopyError) -> Failure {
    let code = match error {
        CopyError::Directory(_) | CopyError::Write { .. } => DomainCode::ToolFailed,
        CopyError::TooMuch { .. } | CopyError::Full { .. } | CopyError::Canceled => DomainCode::LimitExceeded,
        CopyError::Exists { .. } => DomainCode::Conflict,
    };
    Failure::new(code, with_causes(error))
}

/// Returns the failure of a push. `approval_hint` says how a person approves files that are executed or trusted.
pub(super) fn of_pushing(error: &PushError, approval_hint: &str) -> Failure {
    let code = match error {
        PushError::Handoff { findings } => return of_findings(findings, approval_hint),
        PushError::Pin(error) => return of_pin(error),
        PushError::Git(error) | PushError::Commit(CommitError::Git(error)) => return of_git(error),
        PushError::Base(error) => return of_base(error),
        PushError::Book(_) | PushError::Note { .. } => return Failure::internal("record it", error),
        PushError::Tree(TreeError::TooMuch { .. } | TreeError::Canceled) => DomainCode::LimitExceeded,
        PushError::Tree(TreeError::Name { .. } | TreeError::Link { .. }) | PushError::Default { .. } => {
            DomainCode::PermissionDenied
        }
        PushError::Tree(_) => DomainCode::ToolFailed,
        PushError::Commit(_) | PushError::OnlyLeftOut { .. } | PushError::Taken { .. } => {
            DomainCode::Conflict
        }
        PushError::NoBase { .. } => DomainCode::NotFound,
        PushError::Busy => DomainCode::Unavailable,
    };
    Failure::new(code, with_causes(error))
}

fn of_pin(error: &PinError) -> Failure {
    let code = match error {
        PinError::Denied(_) => DomainCode::PermissionDenied,
        _ => DomainCode::Unavailable,
    };
    Failure::new(code, with_causes(error))
}

fn of_git(error: &GitError) -> Failure {
    let code = match error {
        GitError::Start { .. } => DomainCode::NotSupported,
        GitError::OutOfTime { .. } | GitError::TooMuch { .. } | GitError::OutOfMemory { .. } => {
            DomainCode::LimitExceeded
        }
        GitError::DiskFull { .. } => DomainCode::Unavailable,
        GitError::Canceled | GitError::Unreached { .. } => DomainCode::Unavailable,
        GitError::Watch { .. } | GitError::Feed { .. } | GitError::Unreadable { .. } => DomainCode::Internal,
        GitError::Failed { .. } => DomainCode::ToolFailed,
        GitError::Untrusted { .. } => DomainCode::PermissionDenied,
    };
    Failure::new(code, with_causes(error))
}

/// Returns the failure for findings that need an approval which agents can't give.
fn of_findings(findings: &[Finding], approval_hint: &str) -> Failure {
    let listed = findings.iter().take(MOST_NAMED);
    let listed: Vec<_> =
        listed.map(|Finding { path, kind, reason }| format!("{path} ({}: {reason})", kind.code())).collect();
    let further = findings.len().saturating_sub(MOST_NAMED);
    let more = if further == 0 { String::new() } else { format!(" and {further} more") };
    let message = format!(
        "nothing was pushed: these files are executed or trusted at their destination, and only a person can approve them: {}{more}. \
         {approval_hint}Otherwise leave these files unchanged",
        listed.join(", ")
    );
    Failure::new(DomainCode::PermissionDenied, message)
}
