//! Takes jobs as long as there is room for one more, and has each of them carried out.

use super::Workplace;
use super::abilities::Choice;
use super::attempt::{self, Stop, Why};
use super::queue::Queue;
use belljar_contract::id::JobId;
use belljar_policy::lifecycle::Fence;
use belljar_store::jobs::{ClaimError, Claimed, Fits, JobRecord, Left};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The jobs that this instance has.
pub(crate) struct Dispatcher {
    workplace: Arc<Workplace>,
    /// Which jobs it claims, where other nodes may run those that it can't; all of them if `None`.
    choice: Option<Arc<dyn Fits>>,
    room: Arc<Semaphore>,
    queue: Queue,
    held: Mutex<HashMap<Claim, Held>>,
    /// Claims in the database that nobody here knew of when it was last looked.
    strange: Mutex<HashSet<Claim>>,
    /// Claims that are under way, and may be in the database already.
    claims: AtomicU32,
}

/// A job, and the number of the claim by which it is held.
type Claim = (String, Fence);

/// How a claim is held.
#[derive(Debug, Clone)]
enum Held {
    /// The job is carried out.
    Running(Stop),
    /// It was, and it could not be recorded how it ended.
    Unrecorded,
}

// === impl Dispatcher ===

impl Dispatcher {
    pub(crate) fn new(workplace: Arc<Workplace>) -> Self {
        let choice = || Arc::new(Choice::new(Arc::clone(&workplace))) as Arc<dyn Fits>;
        let choice = workplace.shares_database.then(choice);
        let room = Arc::new(Semaphore::new(workplace.settings.max_concurrency));
        let (queue, held, strange) = (Queue::default(), Mutex::default(), Mutex::default());
        Self { workplace, choice, room, queue, held, strange, claims: AtomicU32::new(0) }
    }

    /// Says that a job waits.
    pub(crate) fn wake(&self) {
        self.queue.add();
    }

    /// Takes jobs until it is stopped; then it ends those that run, and is back when nothing of them is left.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut attempts = JoinSet::new();
        while !stop.is_cancelled() {
            let Some(claimed) = self.next(&stop).await else { break };
            let (claimed, room) = claimed;
            let (claim, held) = ((claimed.job.job_id.key(), claimed.fence()), Stop::default());
            // Before anybody may ask for it to stop, or look whether it is known.
            self.locked().insert(claim.clone(), Held::Running(held.clone()));
            self.claims.fetch_sub(1, Ordering::SeqCst);
            let dispatcher = Arc::clone(&self);
            attempts.spawn(async move {
                dispatcher.carry_out(claim, claimed, held).await;
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
                // The heart notices, and makes it known again.
                Err(ClaimError::GivenUp { .. }) => self.queue.is_empty(known),
                Err(ClaimError::Database(error)) => {
                    tracing::warn!(error = crate::chain(&error), "can't take a job");
                    self.queue.is_empty(known);
                }
            }
        }
    }

    async fn claim(&self) -> Result<Option<Claimed>, ClaimError> {
        let Workplace { jobs, owner, .. } = &*self.workplace;
        let now = self.workplace.now();
        match &self.choice {
            Some(choice) => jobs.claim_fitting(&owner.instance, Arc::clone(choice), now).await,
            None => jobs.claim(&owner.instance, now).await,
        }
    }

    async fn carry_out(&self, claim: Claim, claimed: Claimed, stop: Stop) {
        let workplace = Arc::clone(&self.workplace);
        // Whatever goes wrong in there, it is known here that it is over.
        let (job_id, attempt) = (&claimed.job.job_id, claimed.job.life.attempt);
        // Whatever is told of it names it, also where only errors are told.
        let about = tracing::error_span!("job", %job_id, attempt);
        let attempt = async move { attempt::carry_out(&workplace, claimed, &stop).await };
        let attempt = tokio::spawn(attempt.instrument(about));
        let is_recorded = attempt.await.unwrap_or(false);
        let mut held = self.locked();
        match is_recorded {
            true => held.remove(&claim),
            false => held.insert(claim, Held::Unrecorded),
        };
    }

    /// Ends a job that runs here because somebody wants it to stop: at once, or when it hasn't ended by itself within that
    /// time.
    pub(crate) fn cancel(&self, job_id: &JobId, grace: Option<Duration>) {
        let key = job_id.key();
        let held = self.locked();
        for (_, held) in held.iter().filter(|((job, _), _)| *job == key) {
            if let Held::Running(stop) = held {
                match grace {
                    Some(grace) => stop.within(grace, Why::Canceled),
                    None => stop.because(Why::Canceled),
                }
            }
        }
    }

    /// Ends what runs here, for it is not this instance's any more.
    pub(crate) fn lose_all(&self) {
        self.stop_all(Why::Lost);
    }

    /// Holds what this instance has in the database against what it knows of: hears what was asked for by way of another
    /// node, and gives up what it has without knowing, or without being able to say how it ended.
    pub(crate) async fn look(&self) {
        // One that is under way may be there already, and not be known here yet.
        let may_be_strange = self.claims.load(Ordering::SeqCst) == 0;
        let Ok(owned) = self.workplace.jobs.owned_by(&self.workplace.owner.instance).await else { return };
        let mut strange = HashSet::new();
        for job in &owned {
            let claim = (job.job_id.key(), job.life.fence);
            let held = self.locked().get(&claim).cloned();
            match held {
                // One that has been asked already has its time.
                Some(Held::Running(stop)) if job.life.cancel_requested => {
                    stop.within(Duration::ZERO, Why::Canceled);
                }
                Some(Held::Running(_)) => {}
                Some(Held::Unrecorded) => self.leave(job, Left::Gone).await,
                // One whose claim was committed while the connection broke. What was claimed just now is known by the next
                // time.
                None if may_be_strange && self.strange().contains(&claim) => {
                    self.leave(job, Left::Unbegun).await;
                }
                None if may_be_strange => {
                    strange.insert(claim);
                }
                None => {}
            }
        }
        let owned: HashSet<_> = owned.iter().map(|job| (job.job_id.key(), job.life.fence)).collect();
        self.locked().retain(|claim, held| matches!(held, Held::Running(_)) || owned.contains(claim));
        *self.strange() = strange;
    }

    async fn leave(&self, job: &JobRecord, left: Left) {
        let Workplace { jobs, hub, .. } = &*self.workplace;
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

    fn stop_all(&self, why: Why) {
        for held in self.locked().values() {
            if let Held::Running(stop) = held {
                stop.because(why);
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Claim, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn strange(&self) -> MutexGuard<'_, HashSet<Claim>> {
        self.strange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
