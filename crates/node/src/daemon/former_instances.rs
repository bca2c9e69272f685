//! Finds out which former instances of this node are gone, before their jobs are taken over.
//!
//! An instance that held this state directory's lock is gone, because this one holds the lock now. Any other instance of this
//! node at a shared database may be alive: a copied state directory has the same node id. Its heartbeat decides.

use super::DaemonError;
use super::heartbeat::LEASE;
use super::identity::Identity;
use belljar_store::database::Location;
use belljar_store::jobs::{Instance, Jobs};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Interval at which the heartbeats of possibly living instances are polled.
const LOOK: Duration = Duration::from_millis(250);

/// Returns the former instances of this node that are gone. Waits one lease for those whose end isn't known otherwise.
///
/// # Errors
/// [`DaemonError::Living`] as soon as one of them has another heartbeat.
pub(super) async fn gone(
    jobs: &Jobs,
    identity: &Identity,
    is_own_database: bool,
) -> Result<Vec<String>, DaemonError> {
    let former = of_node(jobs, identity).await?;
    let is_known = |id: &String| is_own_database || identity.gone.contains(id);
    let doubted: Vec<_> = former.iter().filter(|instance| !is_known(&instance.id)).cloned().collect();
    let begun = Instant::now();
    if let Some(first) = doubted.first() {
        let seconds = LEASE.as_secs();
        tracing::warn!(
            instance = first.id,
            seconds,
            "waiting for a sign of life of an instance of this node"
        );
    }
    while !doubted.is_empty() && begun.elapsed() < LEASE {
        tokio::time::sleep(LOOK).await;
        let now = of_node(jobs, identity).await?;
        let grows = |then: &&Instance| now.iter().any(|now| now.id == then.id && now.beat != then.beat);
        if let Some(living) = doubted.iter().find(grows) {
            let (node, instance) = (living.node.clone(), living.id.clone());
            return Err(DaemonError::Living { node, instance });
        }
        if !doubted.iter().any(|then| now.iter().any(|now| now.id == then.id)) {
            break;
        }
    }
    Ok(former.into_iter().map(|instance| instance.id).collect())
}

/// Warns if the database is missing or empty although the state directory was used before: its jobs, tokens, approvals and
/// trust are lost, while the audit log and artifacts are not.
pub(super) fn warn_of_lost_database(database: &Location, identity: &Identity) {
    let Location::File(path) = database else { return };
    let is_empty = path.metadata().is_ok_and(|file| file.len() == 0);
    if !identity.is_new && (is_empty || !path.exists()) {
        tracing::warn!(
            database = %path.display(),
            "the database is new or empty, but a node has used this state directory before: what it held of jobs, tokens, approvals and trust \
             is not there; put a backup back, or pass the --database that it had"
        );
    }
}

/// Returns true if the database is in the state directory, where no other instance can have it open.
pub(super) fn is_own(database: &Location, state: &Path) -> bool {
    matches!(database, Location::File(path) if path.parent() == Some(state))
}

async fn of_node(jobs: &Jobs, identity: &Identity) -> Result<Vec<Instance>, DaemonError> {
    let mut instances = jobs.instances().await?;
    instances.retain(|one| one.node == identity.owner.node && one.id != identity.owner.instance);
    Ok(instances)
}
