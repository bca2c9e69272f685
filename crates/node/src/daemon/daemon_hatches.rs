//! The hatches of a node's sandboxes to models and the web. The web policy is followed while the node runs. Each run is
//! served by a thread of its own.

use super::{DaemonError, Settings};
use crate::metrics::Metrics;
use crate::models::NodeModels;
use crate::web::NodeWeb;
use belljar_execution::policy_file::{OpenPolicy, PolicyChange, PolicyFile, PolicyFollower};
use belljar_execution::serving::HatchThread;
use belljar_store::audit::{AuditLog, Event};
use std::sync::Arc;

/// Models and web access of a node's sandboxes.
pub(super) struct NodeHatches {
    pub(super) models: NodeModels,
    pub(super) web: NodeWeb,
    /// Follows the policy file.
    pub(super) following: PolicyFollower,
}

/// Sets up models and web access from the settings. Without a policy file every request to the web is denied, and the denial
/// gives that reason.
pub(super) fn begin(
    settings: &mut Settings,
    audit: &Arc<AuditLog>,
    (metrics, listed_calls): (&Metrics, usize),
) -> Result<NodeHatches, DaemonError> {
    let threads = |source| DaemonError::Threads { source };
    let callers = Arc::new(HatchThread::start().map_err(threads)?);
    let account = settings.billing_account_id.clone();
    let models = NodeModels::new(settings.models.take(), account, audit, listed_calls);
    let policy = settings.egress.take().map_or_else(|| Ok(OpenPolicy::of_nothing()), PolicyFile::open)?;
    let web = NodeWeb::new(Arc::clone(policy.live()), &callers, audit, metrics, listed_calls);
    policy.first().iter().for_each(|first| tell(first, audit, metrics));
    let (audit, metrics) = (Arc::clone(audit), metrics.clone());
    let following = policy.follow(move |change| tell(change, &audit, &metrics)).map_err(threads)?;
    Ok(NodeHatches { models, web, following })
}

fn tell(change: &PolicyChange, audit: &AuditLog, metrics: &Metrics) {
    match change {
        PolicyChange::Taken { path, sha256, generation, rules } => {
            tracing::info!(path, sha256, generation, rules, "this policy for the web counts from now on");
            metrics.web_policy_read(true, *generation);
        }
        PolicyChange::Refused { path, sha256, generation, why } => {
            tracing::error!(path, sha256, generation, why, "the former policy for the web goes on to count");
            metrics.web_policy_read(false, *generation);
        }
    }
    // A stricter policy takes effect without waiting for the disk. Requests that a wider policy allows are recorded after this
    // event.
    match Event::new(change.kind(), None, change) {
        Ok(event) => audit.submit(event, |written| {
            if let Err(error) = written {
                tracing::error!(error = crate::chain(&error), "a policy is not recorded");
            }
        }),
        Err(error) => tracing::error!(error = crate::chain(&error), "a policy is not recorded"),
    }
}
