//! The ways out of a node's sandboxes: models, and the web by a policy that is followed while the node runs. Each run is served
//! by a thread of its own.

use super::{DaemonError, Settings};
use crate::metrics::Metrics;
use crate::models::NodeModels;
use crate::serving::HatchThread;
use crate::web::NodeWeb;
use crate::web::policy_file::{Change, Following, OpenPolicy, PolicyFile};
use belljar_store::audit::{AuditLog, Event};
use std::sync::Arc;

/// What the sandboxes of a node may reach.
pub(super) struct WaysOut {
    pub(super) models: NodeModels,
    pub(super) web: NodeWeb,
    /// The file with the policy is followed.
    pub(super) following: Following,
}

/// Takes from the settings what is said of them. Without a file with a policy nothing of the web is allowed, and whoever asks is
/// told so.
pub(super) fn begin(
    settings: &mut Settings,
    audit: &Arc<AuditLog>,
    (metrics, listed_calls): (&Metrics, usize),
) -> Result<WaysOut, DaemonError> {
    let threads = |source| DaemonError::Threads { source };
    let callers = Arc::new(HatchThread::start().map_err(threads)?);
    let account = settings.billing_account_id.clone();
    let models = NodeModels::new(settings.models.take(), account, audit, listed_calls);
    let policy = settings.egress.take().map_or_else(|| Ok(OpenPolicy::of_nothing()), PolicyFile::open)?;
    let web = NodeWeb::new(Arc::clone(policy.live()), &callers, audit, metrics, listed_calls);
    policy.first().iter().for_each(|first| tell(first, audit, metrics));
    let (audit, metrics) = (Arc::clone(audit), metrics.clone());
    let following = policy.follow(move |change| tell(change, &audit, &metrics)).map_err(threads)?;
    Ok(WaysOut { models, web, following })
}

fn tell(change: &Change, audit: &AuditLog, metrics: &Metrics) {
    match change {
        Change::Taken { path, sha256, generation, rules } => {
            tracing::info!(path, sha256, generation, rules, "this policy for the web counts from now on");
            metrics.web_policy_read(true, *generation);
        }
        Change::Refused { path, sha256, generation, why } => {
            tracing::error!(path, sha256, generation, why, "the former policy for the web goes on to count");
            metrics.web_policy_read(false, *generation);
        }
    }
    // What allows less doesn't wait for the disk. Whoever is let through by what allows more stands behind this in the audit.
    match Event::new(change.kind(), None, change) {
        Ok(event) => audit.submit(event, |written| {
            if let Err(error) = written {
                tracing::error!(error = crate::chain(&error), "a policy is not recorded");
            }
        }),
        Err(error) => tracing::error!(error = crate::chain(&error), "a policy is not recorded"),
    }
}
