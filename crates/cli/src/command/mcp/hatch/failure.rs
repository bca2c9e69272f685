//! Errors of the host's git, as they are reported to agents.

use super::super::carrying::TreeTransferError;
use super::super::failures;
use super::watch::GitCallLimits;
use belljar_contract::tool::DomainCode;
use belljar_egress::git::PinError;
use belljar_git::clone::CloneError;
use belljar_git::{BaseError, CommitError, GitError, PushError, TreeError};
use belljar_policy::handoff::Finding;
use belljar_sandbox::backend::with_causes;
use belljar_tools::answer::Failure;
use belljar_tools::workbench::failure as of_refusal;

/// So many paths are named.
const MOST_NAMED: usize = 50;

/// It wasn't cloned.
pub(super) fn of_cloning(error: &CloneError, watch: &GitCallLimits<'_>) -> Failure {
    match error {
        CloneError::Pin(error) => of_pin(error),
        CloneError::Base(BaseError::Git(GitError::Canceled)) if watch.brings_too_much() => {
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

/// The host's own clone can't be used.
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

/// It wasn't carried in or out.
pub(super) fn of_carrying(error: &TreeTransferError) -> Failure {
    let code = match error {
        TreeTransferError::Session(error) => return failures::of_session(error),
        TreeTransferError::Refused(refused) => return of_refusal(refused.clone()),
        TreeTransferError::Directory(error) => return Failure::internal("read what was laid out", error),
        TreeTransferError::TooMuch { .. } | TreeTransferError::OutOfTime => DomainCode::LimitExceeded,
        TreeTransferError::Broken { .. } => DomainCode::Unavailable,
        TreeTransferError::NoTree => DomainCode::ToolFailed,
    };
    Failure::new(code, with_causes(error))
}

/// It wasn't pushed.
pub(super) fn of_pushing(error: &PushError) -> Failure {
    let code = match error {
        PushError::Handoff { findings } => return of_findings(findings),
        PushError::Pin(error) => return of_pin(error),
        PushError::Git(error) | PushError::Commit(CommitError::Git(error)) => return of_git(error),
        PushError::Base(error) => return of_base(error),
        PushError::Book(_) | PushError::Note { .. } => return Failure::internal("record it", error),
        PushError::Tree(TreeError::TooMuch { .. }) => DomainCode::LimitExceeded,
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
fn of_findings(findings: &[Finding]) -> Failure {
    let listed = findings.iter().take(MOST_NAMED);
    let listed: Vec<_> =
        listed.map(|Finding { path, kind, reason }| format!("{path} ({}: {reason})", kind.code())).collect();
    let further = findings.len().saturating_sub(MOST_NAMED);
    let more = if further == 0 { String::new() } else { format!(" and {further} more") };
    let message = format!(
        "nothing was pushed: these files are executed or trusted at their destination, and only a person can approve them: {}{more}. \
         The operator does so with `--trust PATH` when the tools are started; or leave these files unchanged",
        listed.join(", ")
    );
    Failure::new(DomainCode::PermissionDenied, message)
}
