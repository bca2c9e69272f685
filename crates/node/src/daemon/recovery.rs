//! Recovery at the start: destroys the sandboxes of instances that are gone, and gives up their jobs.

use super::{DaemonError, Settings};
use crate::images::Images;
use crate::job::NodeState;
use crate::machine;
use belljar_contract::id::JobId;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::native;
use belljar_sandbox::resumption;
use belljar_sandbox::state::StateDirectory;
use belljar_store::database::DatabaseError;
use belljar_store::jobs::{ChangeError, ReleaseReason};
use std::path::Path;

/// Removes the sandboxes and leftovers of former instances. It is idempotent.
///
/// This comes first, as it needs no space on the disk and frees some. A job that is begun again must not meet its former
/// attempt.
pub(super) async fn clear(settings: &Settings) -> Result<(), DaemonError> {
    let (state, images) = (settings.state.clone(), Images::of(settings)?);
    let cleared = tokio::task::spawn_blocking(move || clear_now(&state, &images)).await;
    cleared.map_err(|died| DaemonError::Clear(BackendError::Clear(died.into())))??;
    belljar_failpoint::reached("recovery.cleared");
    Ok(())
}

/// Gives up the jobs of former instances. It is idempotent.
pub(super) async fn recover(workplace: &NodeState, gone: &[String]) -> Result<(), DaemonError> {
    for instance in gone {
        give_up(workplace, instance).await?;
    }
    Ok(())
}

/// Removes the state that attempts of former instances kept for resumption, if no attempt will be made here: their jobs are
/// over, or another instance has them.
pub(super) async fn remove_unresumed(workplace: &NodeState) -> Result<(), DatabaseError> {
    let state = &workplace.settings.state;
    for (run_id, job_key) in resumption::waiting(state) {
        let job = match JobId::parse(&job_key) {
            Ok(job_id) => workplace.jobs.find(&job_id).await?,
            Err(_) => None,
        };
        let is_ours = |owner: &str| owner == workplace.owner.instance;
        let is_wanted =
            job.is_some_and(|job| !job.life.state.is_final() && job.owner.as_deref().is_none_or(is_ours));
        if !is_wanted {
            resumption::remove(state, &run_id);
        }
    }
    Ok(())
}

fn clear_now(state: &StateDirectory, images: &Images) -> Result<(), DaemonError> {
    // Before the folders, which containers may still work in. Containers end by themselves when their host's connection is
    // closed, so an unreachable engine doesn't keep the node from starting.
    if let Err(error) = images.reconcile() {
        tracing::warn!(error = crate::chain(&error), "containers are not cleared away");
    }
    native::reconcile(state).map_err(DaemonError::Clear)?;
    forget_where_full(state);
    remove_unfinished(&state.path().join("artifacts"));
    Ok(())
}

/// Removes the state kept for resumption if the disk is full: attempts then begin anew, as a node that can't write wouldn't
/// start.
fn forget_where_full(state: &StateDirectory) {
    if !machine::is_full(state.path()) {
        return;
    }
    for (run_id, _) in resumption::waiting(state) {
        tracing::warn!(%run_id, "the disk is full: what this attempt has left isn't kept for the next one");
        resumption::remove(state, &run_id);
    }
}

/// Removes incomplete artifacts. They can't be in use: only this node writes to its state directory.
fn remove_unfinished(artifacts: &Path) {
    let entries = std::fs::read_dir(artifacts).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".incoming-")) {
        // A file that can't be removed now is found by the next start.
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Gives up the jobs of an instance that is gone, and forgets the instance.
pub(super) async fn give_up(workplace: &NodeState, instance: &str) -> Result<(), DatabaseError> {
    for job in workplace.jobs.owned_by(instance).await? {
        match workplace.jobs.leave(&job.job_id, job.life.fence, ReleaseReason::Gone, workplace.now()).await {
            Ok(_) => workplace.hub.ring(&job.job_id),
            Err(ChangeError::Database(error)) => return Err(error),
            // Another instance has done it meanwhile.
            Err(_) => {}
        }
    }
    workplace.jobs.forget(instance).await.map(drop)
}
