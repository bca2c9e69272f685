//! What is told of what the web has not answered, or not been asked.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use belljar_egress::web::fetch::FetchError;

/// Why there is no answer.
pub(super) fn of(error: &FetchError) -> Failure {
    let said = error.to_string();
    match error {
        FetchError::Address { .. } | FetchError::Header { .. } => Failure::argument(said),
        FetchError::Denied { code: "bytes_used_up", .. }
        | FetchError::TooManyRedirects
        | FetchError::TooLarge { .. } => Failure::new(DomainCode::LimitExceeded, said),
        FetchError::Denied { code, needed, .. } => {
            let needed = needed.as_ref().map(|rule| format!("; it would take the rule {rule} on this host"));
            Failure::new(
                DomainCode::PermissionDenied,
                format!("{said} ({code}){}", needed.unwrap_or_default()),
            )
        }
        FetchError::Redirect { .. }
        | FetchError::Failed {
            code: "answer_malformed" | "credential_repeated" | "upstream_untrusted",
            ..
        } => Failure::new(DomainCode::ToolFailed, said),
        FetchError::Failed { .. } | FetchError::OutOfTime { .. } | FetchError::Over => {
            Failure::new(DomainCode::Unavailable, said)
        }
    }
}
