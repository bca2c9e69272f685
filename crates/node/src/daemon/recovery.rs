//! What a start finds of instances that are gone: their sandboxes are destroyed, and their jobs are given up.

use super::{DaemonError, Settings};
use crate::images::Images;
use crate::job::Workplace;
use crate::machine;
use belljar_contract::id::JobId;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::native;
use belljar_sandbox::resumption;
use belljar_sandbox::state::State;
use belljar_store::database::DatabaseError;
use belljar_store::jobs::{ChangeError, Left};
use std::path::Path;

/// Clears away the sandboxes of former instances, and what they have written. Nothing of it is done twice if it is done again.
///
/// This comes first of all, as it needs no room on the disk and makes some. And a job that is begun again must not meet itself.
pub(super) async fn clear(settings: &Settings) -> Result<(), DaemonError> {
    let (state, images) = (settings.state.clone(), Images::of(settings)?);
    let cleared = tokio::task::spawn_blocking(move || clear_now(&state, &images)).await;
    cleared.map_err(|died| DaemonError::Clear(BackendError::Clear(died.into())))??;
    belljar_failpoint::reached("recovery.cleared");
    Ok(())
}

/// Gives the jobs of former instances up. Nothing of it is done twice if it is done again.
pub(super) async fn recover(workplace: &Workplace, gone: &[String]) -> Result<(), DaemonError> {
    for instance in gone {
        give_up(workplace, instance).await?;
    }
    Ok(())
}

/// Removes what attempts of former instances have left to next ones that won't be made here: their jobs are over, or another
/// instance has them.
pub(super) async fn remove_unresumed(workplace: &Workplace) -> Result<(), DatabaseError> {
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

fn clear_now(state: &State, images: &Images) -> Result<(), DaemonError> {
    // Before the folders, which containers may still work in. Who has lost their host's end of the line ends by themselves:
    // an engine that is away keeps nobody from starting.
    if let Err(error) = images.reconcile() {
        tracing::warn!(error = crate::chain(&error), "containers are not cleared away");
    }
    native::reconcile(state).map_err(DaemonError::Clear)?;
    forget_where_full(state);
    remove_unfinished(&state.path().join("artifacts"));
    Ok(())
}

/// Removes what attempts have left to next ones where the disk has no room: these begin anew, and a node that can't write wouldn't start.
fn forget_where_full(state: &State) {
    if !machine::is_full(state.path()) {
        return;
    }
    for (run_id, _) in resumption::waiting(state) {
        tracing::warn!(%run_id, "the disk is full: what this attempt has left isn't kept for the next one");
        resumption::remove(state, &run_id);
    }
}

/// Removes files that were being stored as artifacts. Nobody else stores any: the state is this node's.
fn remove_unfinished(artifacts: &Path) {
    let entries = std::fs::read_dir(artifacts).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".incoming-")) {
        // What can't be removed now is found by the next one.
        let _ = std::fs::remove_file(entry.path());
    }
}

/// Gives the jobs of an instance up that is gone, and forgets it.
pub(super) async fn give_up(workplace: &Workplace, instance: &str) -> Result<(), DatabaseError> {
    for job in workplace.jobs.owned_by(instance).await? {
        match workplace.jobs.leave(&job.job_id, job.life.fence, Left::Gone, workplace.now()).await {
            Ok(_) => workplace.hub.ring(&job.job_id),
            Err(ChangeError::Database(error)) => return Err(error),
            // Somebody else has done it meanwhile.
            Err(_) => {}
        }
    }
    workplace.jobs.forget(instance).await.map(drop)
}
