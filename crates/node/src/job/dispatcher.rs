//! Claims jobs while there is capacity, and runs each of them.

use super::NodeState;
use super::attempt::{self, StopReason, StopRequest};
use super::queue::WaitingJobs;
use super::runnable_jobs::JobSelector;
use belljar_contract::id::JobId;
use belljar_policy::lifecycle::Fence;
use belljar_store::jobs::{ClaimError, ClaimedJob, JobFilter, JobRecord, ReleaseReason};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The jobs of this instance.
pub(crate) struct Dispatcher {
    workplace: Arc<NodeState>,
    /// Filter of the jobs to claim, if other nodes share the database; `None` to claim all of them.
    choice: Option<Arc<dyn JobFilter>>,
    room: Arc<Semaphore>,
    queue: WaitingJobs,
    held: Mutex<HashMap<JobClaim, ClaimState>>,
    /// Claims in the database that this instance didn't know at the last check.
    strange: Mutex<HashSet<JobClaim>>,
    /// Number of claims that are being made, and may be in the database already.
    claims: AtomicU32,
}

/// A job's key, and the fencing token of its claim.
type JobClaim = (String, Fence);

/// State of a claim.
#[derive(Debug, Clone)]
enum ClaimState {
    /// The job is running.
    Running(StopRequest),
    /// The job has ended, but its end could not be recorded.
    Unrecorded,
}

// === impl Dispatcher ===

impl Dispatcher {
    pub(crate) fn new(workplace: Arc<NodeState>) -> Self {
        let choice = || Arc::new(JobSelector::new(Arc::clone(&workplace))) as Arc<dyn JobFilter>;
        let choice = workplace.shares_database.then(choice);
        let room = Arc::new(Semaphore::new(workplace.settings.max_concurrency));
        let (queue, held, strange) = (WaitingJobs::default(), Mutex::default(), Mutex::default());
        Self { workplace, choice, room, queue, held, strange, claims: AtomicU32::new(0) }
    }

    /// Notifies the dispatcher of a waiting job.
    pub(crate) fn wake(&self) {
        self.queue.add();
    }

    /// Runs jobs until it is stopped; then it ends running jobs, and returns when all of them are over.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut attempts = JoinSet::new();
        while !stop.is_cancelled() {
            let Some(claimed) = self.next(&stop).await else { break };
            let (claimed, room) = claimed;
            let (claim, held) = ((claimed.job.job_id.key(), claimed.fence()), StopRequest::default());
            // Before the job can be canceled, or its claim be checked.
            self.locked().insert(claim.clone(), ClaimState::Running(held.clone()));
            self.claims.fetch_sub(1, Ordering::SeqCst);
            let dispatcher = Arc::clone(&self);
            attempts.spawn(async move {
                dispatcher.carry_out(claim, claimed, held).await;
                drop(room);
            });
            while attempts.try_join_next().is_some() {}
        }
        self.stop_all(StopReason::Shutdown);
        while attempts.join_next().await.is_some() {}
    }

    /// Waits for the next job and the capacity for it; `None` when stopped.
    async fn next(
        &self,
        stop: &CancellationToken,
    ) -> Option<(ClaimedJob, tokio::sync::OwnedSemaphorePermit)> {
        let room = tokio::select! {
            () = stop.cancelled() => return None,
            room = Arc::clone(&self.room).acquire_owned() => room.ok()?,
        };
        loop {
            let known = tokio::select! {
                () = stop.cancelled() => return None,
                known = self.queue.has_some() => known,
            };
            self.claims.fetch_add(1, Ordering::SeqCst);
            let claimed = self.claim().await;
            if !matches!(claimed, Ok(Some(_))) {
                self.claims.fetch_sub(1, Ordering::SeqCst);
            }
            match claimed {
                Ok(Some(claimed)) => {
                    self.queue.took_one();
                    return Some((claimed, room));
                }
                Ok(None) => self.queue.is_empty(known),
                // The heartbeat notices the claim, and returns the job to the queue.
                Err(ClaimError::GivenUp { .. }) => self.queue.is_empty(known),
                Err(ClaimError::Database(error)) => {
                    tracing::warn!(error = crate::chain(&error), "can't take a job");
                    self.queue.is_empty(known);
                }
            }
        }
    }

    async fn claim(&self) -> Result<Option<ClaimedJob>, ClaimError> {
        let NodeState { jobs, owner, .. } = &*self.workplace;
        let now = self.workplace.now();
        match &self.choice {
            Some(choice) => jobs.claim_fitting(&owner.instance, Arc::clone(choice), now).await,
            None => jobs.claim(&owner.instance, now).await,
        }
    }

    async fn carry_out(&self, claim: JobClaim, claimed: ClaimedJob, stop: StopRequest) {
        let workplace = Arc::clone(&self.workplace);
        // In a task of its own, so that its end is noticed here even if it panics.
        let (job_id, attempt) = (&claimed.job.job_id, claimed.job.life.attempt);
        // An error-level span, so that the log names the job at every log level.
        let about = tracing::error_span!("job", %job_id, attempt);
        let attempt = async move { attempt::carry_out(&workplace, claimed, &stop).await };
        let attempt = tokio::spawn(attempt.instrument(about));
        let is_recorded = attempt.await.unwrap_or(false);
        let mut held = self.locked();
        match is_recorded {
            true => held.remove(&claim),
            false => held.insert(claim, ClaimState::Unrecorded),
        };
    }

    /// Cancels a job that runs here: at once, or with a grace period before the kill.
    pub(crate) fn cancel(&self, job_id: &JobId, grace: Option<Duration>) {
        let key = job_id.key();
        let held = self.locked();
        for (_, held) in held.iter().filter(|((job, _), _)| *job == key) {
            if let ClaimState::Running(stop) = held {
                match grace {
                    Some(grace) => stop.within(grace, StopReason::Canceled),
                    None => stop.because(StopReason::Canceled),
                }
            }
        }
    }

    /// Stops all running jobs, because they belong to other instances now.
    pub(crate) fn lose_all(&self) {
        self.stop_all(StopReason::Lost);
    }

    /// Compares this instance's claims in the database with those that it holds. Picks up cancellations that came by other
    /// nodes, and gives up claims that it doesn't hold, or whose end it could not record.
    pub(crate) async fn look(&self) {
        // A claim that is being made may be in the database already, but not held here yet.
        let may_be_strange = self.claims.load(Ordering::SeqCst) == 0;
        let Ok(owned) = self.workplace.jobs.owned_by(&self.workplace.owner.instance).await else { return };
        let mut strange = HashSet::new();
        for job in &owned {
            let claim = (job.job_id.key(), job.life.fence);
            let held = self.locked().get(&claim).cloned();
            match held {
                Some(ClaimState::Running(stop)) if job.life.cancel_requested => {
                    stop.within(job.grace, StopReason::Canceled);
                }
                Some(ClaimState::Running(_)) => {}
                Some(ClaimState::Unrecorded) => self.leave(job, ReleaseReason::Gone).await,
                // A claim that was committed while the connection broke. A claim made just now is held here by the next check.
                None if may_be_strange && self.strange().contains(&claim) => {
                    self.leave(job, ReleaseReason::Unbegun).await;
                }
                None if may_be_strange => {
                    strange.insert(claim);
                }
                None => {}
            }
        }
        let owned: HashSet<_> = owned.iter().map(|job| (job.job_id.key(), job.life.fence)).collect();
        self.locked().retain(|claim, held| matches!(held, ClaimState::Running(_)) || owned.contains(claim));
        *self.strange() = strange;
    }

    async fn leave(&self, job: &JobRecord, left: ReleaseReason) {
        let NodeState { jobs, hub, .. } = &*self.workplace;
        match jobs.leave(&job.job_id, job.life.fence, left, self.workplace.now()).await {
            Ok(_) => {
                hub.ring(&job.job_id);
                self.wake();
            }
            Err(error) => {
                tracing::warn!(job_id = %job.job_id, error = crate::chain(&error), "can't give a job up");
            }
        }
    }

    fn stop_all(&self, why: StopReason) {
        for held in self.locked().values() {
            if let ClaimState::Running(stop) = held {
                stop.because(why);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<JobClaim, ClaimState>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn strange(&self) -> MutexGuard<'_, HashSet<JobClaim>> {
        self.strange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
