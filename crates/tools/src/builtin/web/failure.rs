//! Failures of web requests.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use belljar_egress::web::fetch::FetchError;

/// Advice for a rule that may need more than a host name.
const WHERE_IT_LEADS: &str = "the operator sees by `belljar egress why URL --policy FILE` where it leads, and which `networks` a rule for \
    it would take, if any can";

/// Returns the failure for an error.
pub(super) fn of(error: &FetchError) -> Failure {
    let said = error.to_string();
    match error {
        FetchError::Address { .. } | FetchError::Header { .. } => Failure::argument(said),
        FetchError::Denied { code: "bytes_used_up", .. }
        | FetchError::TooManyRedirects
        | FetchError::TooLarge { .. } => Failure::new(DomainCode::LimitExceeded, said),
        FetchError::Denied { code, needed, .. } => {
            // Only the operator should learn resolved addresses; a rule without the network would be refused again.
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
