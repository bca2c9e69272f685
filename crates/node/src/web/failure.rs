//! Whether a job failed for want of the web (`spec/1 §Canonical Failure Codes`), judged by what its proxy saw.
//!
//! What a program prints proves nothing: it may never have asked. What the proxy denied while the failing step ran is what
//! the step wanted and did not get, and is taken for the cause. Without a proxy nobody saw anything, and the runner's reading
//! of what programs print is all there is.

use super::noted::Seen;
use belljar_contract::egress::DeniedDestination;
use belljar_contract::failure::FailureCode;
use belljar_contract::result::{JobResult, StepStatus};
use jiff::Timestamp;

/// So many destinations are named in a message; all that are listed stand beside it.
const MOST_NAMED: usize = 5;

/// Says of a job of the runner's what its proxy saw, and judges its failure by that.
pub fn judge(result: &mut JobResult, seen: Seen) {
    if let Some(step) = result.steps.last_mut().filter(|step| step.status == StepStatus::Failure) {
        // The steps run one after the other, and the one that fails is the last. When it began says the runner.
        let began = step.started_at.unwrap_or(Timestamp::MAX);
        let failure = judged((result.failure_code, result.failure_message.as_deref()), &seen, began);
        if let Some((code, message)) = failure {
            if let Some(error) = &mut step.error {
                error.code = code;
                error.message.clone_from(&message);
            }
            (result.failure_code, result.failure_message) = (Some(code), Some(message));
        }
    }
    result.web = Some(seen.usage);
}

/// The failure that it is in view of what was denied from `began` on; nothing if it is what it says.
pub(crate) fn judged(
    (code, message): (Option<FailureCode>, Option<&str>),
    seen: &Seen,
    began: Timestamp,
) -> Option<(FailureCode, String)> {
    let message = message.unwrap_or_default();
    match (code?, seen.denied_since(began).as_slice()) {
        (FailureCode::ExtNetRequired, []) => Some((FailureCode::StepFailed, message.to_owned())),
        (FailureCode::StepFailed | FailureCode::ExtNetRequired, denied @ [_, ..]) => {
            Some((FailureCode::ExtNetRequired, format!("{} ({message})", needed(denied))))
        }
        _ => None,
    }
}

/// Which hosts and ports were not reached. It may be read inside: nothing of rules, and nothing of where names lead.
fn needed(denied: &[&DeniedDestination]) -> String {
    let named = denied.iter().take(MOST_NAMED).map(|one| format!("{}:{}", one.host, one.port));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match denied.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("needs {named}{more}, which this node does not let it reach")
}
