//! Takes jobs as long as there is room for one more, and has each of them carried out.

use super::Workplace;
use super::attempt::{self, Stop, Why};
use belljar_contract::id::JobId;
use belljar_store::jobs::{ClaimError, Claimed};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The jobs that this instance has.
pub(crate) struct Dispatcher {
    workplace: Arc<Workplace>,
    room: Arc<Semaphore>,
    work: Notify,
    running: Mutex<HashMap<String, Stop>>,
}

/// So often it is looked for jobs that came by way of another node, or were given up by one.
const LOOK: Duration = Duration::from_secs(1);

// === impl Dispatcher ===

impl Dispatcher {
    pub(crate) fn new(workplace: Arc<Workplace>) -> Self {
        let room = Arc::new(Semaphore::new(workplace.settings.max_concurrency));
        Self { workplace, room, work: Notify::new(), running: Mutex::default() }
    }

    /// Says that a job waits.
    pub(crate) fn wake(&self) {
        self.work.notify_one();
    }

    /// Takes jobs until it is stopped; then it ends those that run, and is back when nothing of them is left.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut attempts = JoinSet::new();
        while !stop.is_cancelled() {
            let Some(claimed) = self.next(&stop).await else { break };
            let (claimed, room) = claimed;
            let dispatcher = Arc::clone(&self);
            attempts.spawn(async move {
                dispatcher.carry_out(claimed).await;
                drop(room);
            });
            while attempts.try_join_next().is_some() {}
        }
        self.stop_all(Why::Shutdown);
        while attempts.join_next().await.is_some() {}
    }

    /// The next job, with room for it; nothing when it is stopped.
    async fn next(&self, stop: &CancellationToken) -> Option<(Claimed, tokio::sync::OwnedSemaphorePermit)> {
        let room = tokio::select! {
            () = stop.cancelled() => return None,
            room = Arc::clone(&self.room).acquire_owned() => room.ok()?,
        };
        loop {
            match self.workplace.jobs.claim(&self.workplace.owner.instance).await {
                // There may be more, also if this one was told of in vain.
                Ok(Some(claimed)) => {
                    self.wake();
                    return Some((claimed, room));
                }
                Ok(None) => {}
                // The heart notices, and makes it known again.
                Err(ClaimError::GivenUp { .. }) => {}
                Err(ClaimError::Database(error)) => {
                    tracing::warn!(error = crate::chain(&error), "can't take a job");
                }
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = self.work.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    async fn carry_out(&self, claimed: Claimed) {
        let (key, stop) = (key(&claimed.job.job_id), Stop::default());
        self.locked().insert(key.clone(), stop.clone());
        attempt::carry_out(&self.workplace, claimed, &stop).await;
        self.locked().remove(&key);
    }

    /// Ends a job that runs here because somebody wants it to stop. Whether it runs here.
    pub(crate) fn cancel(&self, job_id: &JobId) -> bool {
        let running = self.locked();
        let stop = running.get(&key(job_id));
        stop.is_some_and(|stop| {
            stop.because(Why::Canceled);
            true
        })
    }

    /// Ends what runs here, for it is not this instance's any more.
    pub(crate) fn lose_all(&self) {
        self.stop_all(Why::Lost);
    }

    /// How many jobs run here.
    pub(crate) fn running(&self) -> usize {
        self.locked().len()
    }

    /// Looks what was asked for of its jobs by way of another node.
    pub(crate) async fn look(&self) {
        if self.running() == 0 {
            return;
        }
        let Ok(owned) = self.workplace.jobs.owned_by(&self.workplace.owner.instance).await else { return };
        for job in owned.iter().filter(|job| job.life.cancel_requested) {
            self.cancel(&job.job_id);
        }
    }

    fn stop_all(&self, why: Why) {
        self.locked().values().for_each(|stop| stop.because(why));
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Stop>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(job_id: &JobId) -> String {
    job_id.as_str().to_ascii_lowercase()
}
