//! Session errors, as they are reported to clients.

use crate::error::CliError;
use belljar_contract::tool::DomainCode;
use belljar_sandbox::backend::with_causes;
use belljar_sandbox::session::{PathApproval, Refusal, SessionError};
use belljar_tools::answer::Failure;

/// Clients have none of that id.
pub(super) fn no_session(id: &str) -> Failure {
    let message = format!("there is no session {id}: it was closed or has ended; `open` makes one");
    Failure::new(DomainCode::NotFound, message)
}

/// A session can't be made.
pub(super) fn of_opening(error: &CliError) -> Failure {
    let code = match error {
        CliError::NoSession { lacks_backend: true, .. } => DomainCode::Unavailable,
        _ => DomainCode::ToolFailed,
    };
    Failure::new(code, error.chain())
}

/// Returns the failure for a session that can't be used.
pub(super) fn of_session(error: &SessionError) -> Failure {
    let code = match error {
        SessionError::NoSuch { .. } | SessionError::Ambiguous { .. } => DomainCode::NotFound,
        SessionError::Unreachable { .. } | SessionError::Unavailable { .. } => DomainCode::Unavailable,
        SessionError::NotStarted { .. } | SessionError::Failed { .. } => DomainCode::ToolFailed,
        SessionError::OutOfTime => DomainCode::LimitExceeded,
        SessionError::Refused(refusal) => return of_refusal(refusal),
    };
    Failure::new(code, with_causes(error))
}

fn of_refusal(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::Direct { .. } | Refusal::Shared { .. } | Refusal::Apart | Refusal::Empty => {
            DomainCode::NotSupported
        }
        Refusal::Busy { .. }
        | Refusal::Conflict { .. }
        | Refusal::Partly { .. }
        | Refusal::Stale { .. }
        | Refusal::Overtaken
        | Refusal::Uncommitted { .. } => DomainCode::Conflict,
        Refusal::Full { .. } => DomainCode::LimitExceeded,
        Refusal::Handoff { .. } | Refusal::Unshown { .. } => DomainCode::PermissionDenied,
        Refusal::Outside { .. } | Refusal::Unchanged { .. } => DomainCode::InvalidArgument,
    };
    Failure::new(code, refusal.to_string())
}

/// Returns the failure of an approval. If only a person can approve the changes, it lists them and the command to type.
pub(super) fn of_approval(id: &str, error: &SessionError) -> Failure {
    if let SessionError::Refused(refusal @ Refusal::Unshown { .. }) = error {
        let message = format!(
            "nothing was written: {refusal}; only a person can approve that, by reviewing them with `belljar session commit {id}`"
        );
        return Failure::new(DomainCode::PermissionDenied, message);
    }
    let SessionError::Refused(Refusal::Handoff { asking, further }) = error else {
        return of_session(error);
    };
    let listed: Vec<_> = asking
        .iter()
        .map(|PathApproval { path, kind, reason }| format!("{path} ({kind}: {reason})"))
        .collect();
    let more = if *further == 0 { String::new() } else { format!(" and {further} more") };
    let message = format!(
        "nothing was written: these files are executed or trusted at their destination, and only a person can approve them: \
         {}{more}. To review and approve them, a person types `belljar session commit {id}`",
        listed.join(", ")
    );
    Failure::new(DomainCode::PermissionDenied, message)
}
