//! Retention: removes old jobs, artifacts that only they reference, and containers that an engine could not remove when their
//! runs ended.

use super::{Retention, recovery};
use crate::job::NodeState;
use belljar_store::database::DatabaseError;
use jiff::{SignedDuration, Timestamp};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// Interval at which old records are removed.
const INTERVAL: Duration = Duration::from_secs(600);

/// Interval at which containers of ended runs are removed: the daemon isn't notified when an engine comes back.
const OF_CONTAINERS: Duration = Duration::from_secs(5);

/// Minimum age of a removed artifact: it may belong to a job that is not recorded yet. Storing the same content again renews
/// its age.
const YOUNG: Duration = Duration::from_secs(86_400);

/// Retention of expired tokens, so that a denial can be recorded with its reason.
const TOKENS_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Removes old records at each interval, until it is stopped.
pub(super) async fn expire(workplace: Arc<NodeState>, stop: CancellationToken) {
    loop {
        let round = async {
            if let Err(error) = once(&workplace).await {
                tracing::warn!(error = crate::chain(&error), "can't remove what is old");
            }
            tokio::time::sleep(INTERVAL).await;
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = round => {}
        }
    }
}

/// Removes containers of ended runs at each interval, until it is stopped. Nothing has run in them since the host closed
/// their connection.
pub(super) async fn remove_containers(workplace: Arc<NodeState>, stop: CancellationToken) {
    let mut was_told = false;
    while !stop.is_cancelled() {
        let place = Arc::clone(&workplace);
        let removed = tokio::task::spawn_blocking(move || place.images.reconcile()).await;
        match removed {
            // Logged once per outage of the engine.
            Ok(Err(error)) if !was_told => {
                was_told = true;
                tracing::warn!(error = crate::chain(&error), "containers are not cleared away");
            }
            Ok(Err(_)) | Err(_) => {}
            Ok(Ok(())) => was_told = false,
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(OF_CONTAINERS) => {}
        }
    }
}

async fn once(workplace: &Arc<NodeState>) -> Result<(), DatabaseError> {
    let Retention { acknowledged, unacknowledged } = workplace.settings.retention;
    let now = workplace.now();
    let before = |age: Duration| {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        now.checked_sub(age).unwrap_or(Timestamp::MIN)
    };
    let retention = belljar_store::jobs::RetentionCutoffs {
        acknowledged_before: before(acknowledged),
        ended_before: before(unacknowledged),
    };
    while workplace.jobs.expire(retention).await? > 0 {}
    // A task's artifacts are removed after its last job.
    while workplace.tools.files().expire(before(YOUNG)).await? > 0 {}
    recovery::remove_unresumed(workplace).await?;
    // Removing a revoked or expired token doesn't make it valid: unknown tokens are denied, too.
    while workplace.tokens.purge(before(TOKENS_KEPT)).await? > 0 {}
    let answered = workplace.settings.approvals.retention;
    while workplace.tools.approvals().purge(before(answered)).await? > 0 {}
    if let Err(error) = workplace.telemetry.expire(now).await {
        tracing::warn!(error = crate::chain(&error), "can't remove what is old of the telemetry");
    }
    let state = workplace.settings.state.clone();
    let old = tokio::task::spawn_blocking(move || old_artifacts(&state.path().join("artifacts"))).await;
    for sha256 in old.unwrap_or_default() {
        let is_wanted = workplace.jobs.is_referenced(&sha256).await?;
        if is_wanted {
            continue;
        }
        // A job or a task may have stored the same content again meanwhile.
        let young = SystemTime::now() - YOUNG;
        if let Err(error) = workplace.artifacts.remove_older(&sha256, young).await {
            tracing::warn!(error = crate::chain(&error), "can't remove an artifact");
        }
    }
    Ok(())
}

/// Returns the digests of artifacts that are older than [`YOUNG`].
fn old_artifacts(store: &Path) -> Vec<String> {
    let shelves = std::fs::read_dir(store).into_iter().flatten().flatten();
    let files = shelves.flat_map(|shelf| std::fs::read_dir(shelf.path()).into_iter().flatten().flatten());
    let old =
        files.filter(|entry| is_old(&entry.path())).filter_map(|entry| entry.file_name().into_string().ok());
    old.filter(|name| name.len() == 64).collect()
}

fn is_old(file: &Path) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= YOUNG))
}
