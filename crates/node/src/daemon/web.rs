//! The web of a node, by a policy that is followed while the node runs.

use super::DaemonError;
use crate::metrics::Metrics;
use crate::web::NodeWeb;
use crate::web::policy_file::{Change, Following, OpenPolicy, PolicyFile};
use belljar_egress::proxy::Proxy;
use belljar_store::audit::{AuditLog, Event};
use std::sync::Arc;

/// Reads the policy, and begins to follow it. Without a file nothing is allowed, and whoever asks is told so.
pub(super) fn begin(
    file: Option<PolicyFile>,
    proxy: &Arc<Proxy>,
    audit: &Arc<AuditLog>,
    metrics: &Metrics,
) -> Result<(NodeWeb, Following), DaemonError> {
    let opened = file.map_or_else(|| Ok(OpenPolicy::of_nothing()), PolicyFile::open)?;
    let web = NodeWeb::new(Arc::clone(opened.live()), proxy, audit, metrics);
    opened.first().iter().for_each(|first| tell(first, audit, metrics));
    let (audit, metrics) = (Arc::clone(audit), metrics.clone());
    let following = opened.follow(move |change| tell(change, &audit, &metrics));
    Ok((web, following.map_err(|source| DaemonError::Threads { source })?))
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
    // A policy that allows less counts also where that can't be recorded; nobody is let through then anyway.
    let recorded = Event::new(change.kind(), None, change).map(|event| audit.append(event));
    match recorded {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::error!(error = crate::chain(&error), "a policy is not recorded"),
        Err(error) => tracing::error!(error = crate::chain(&error), "a policy is not recorded"),
    }
}
