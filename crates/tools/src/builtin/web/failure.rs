//! Failures of web requests.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use belljar_egress::web::fetch::FetchError;

/// Advice for a rule that may need more than a host name.
const WHERE_IT_LEADS: &str = "the operator can run `belljar egress why URL --policy FILE` to see where \
    the host resolves to, and which `networks` a rule would need, if any can";

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
                    format!("; the rule {rule} on this host would allow it")
                }
                (Some(rule), _) => format!(
                    "; the rule {rule} on this host would allow it; \
    {WHERE_IT_LEADS}"
                ),
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
