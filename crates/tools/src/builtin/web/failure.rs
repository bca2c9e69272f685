//! What is told of what the web has not answered, or not been asked.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use belljar_egress::web::fetch::FetchError;

/// What a rule may take besides a name.
const WHERE_IT_LEADS: &str = "the operator sees by `belljar egress why URL --policy FILE` where it leads, and which `networks` a rule for \
    it would take, if any can";

/// Why there is no answer.
pub(super) fn of(error: &FetchError) -> Failure {
    let said = error.to_string();
    match error {
        FetchError::Address { .. } | FetchError::Header { .. } => Failure::argument(said),
        FetchError::Denied { code: "bytes_used_up", .. }
        | FetchError::TooManyRedirects
        | FetchError::TooLarge { .. } => Failure::new(DomainCode::LimitExceeded, said),
        FetchError::Denied { code, needed, .. } => {
            // Where a name leads is for the operator to know; a rule without that would be refused again.
            let advice = match (needed, *code) {
                (Some(rule), _) if rule.contains("networks") => {
                    format!("; it would take the rule {rule} on this host")
                }
                (Some(rule), _) => format!("; it would take the rule {rule} on this host; {WHERE_IT_LEADS}"),
                (None, "address_not_allowed") => format!("; {WHERE_IT_LEADS}"),
                (None, _) => String::new(),
            };
            Failure::new(DomainCode::PermissionDenied, format!("{said} ({code}){advice}"))
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
