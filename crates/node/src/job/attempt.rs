//! One attempt at a job, by the instance that has claimed it.
//!
//! ```text
//! claimed ─► thread: sandbox, watched ──────────────► ended ─┬─► recorded, until it is
//!               │                                            └─► folder removed
//!               └─ begun, steps, what is printed ─► recorder ─► events, in progress
//! ```
//! The run's folder waits for no record, nor for the recorder: it may be what fills the disk that they need.

use super::Workplace;
use super::outcome::Came;
use super::recorder::Recorder;
use super::run::{Run, run};
use crate::traces::{self, Anchor, Noted};
use crate::trust::NodeTrust;
use belljar_contract::failure::FailureCode;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::state::JobState;
use belljar_gateway::apart;
use belljar_sandbox::state::RunFolder;
use belljar_store::artifacts::ArtifactsError;
use belljar_store::database::{DatabaseError, Failing};
use belljar_store::jobs::{ChangeError, Claimed, Ended, Left, Report, Told};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

/// Says whether a job is to stop, why, and how long it may take.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<Mutex<Stopping>>);

#[derive(Debug, Default)]
struct Stopping {
    why: Option<Why>,
    grace: Duration,
}

/// Why a job is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody wants it to.
    Canceled,
    /// The node stops.
    Shutdown,
    /// Its agent has less, by now, than its sandbox was made with.
    Demoted,
    /// It is another's by now.
    Lost,
}

/// How long is waited before something is recorded once more that could not be.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// So long it is tried when the node stops; what is not recorded then is found by the next one to start.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Carries out what was claimed, and records how it ended; whether it is recorded, or another's to record.
pub(super) async fn carry_out(workplace: &Arc<Workplace>, claimed: Claimed, stop: &Stop) -> bool {
    let (job_id, fence) = (claimed.job.job_id.clone(), claimed.fence());
    let waited = workplace.now().duration_since(claimed.job.accepted_at).unsigned_abs();
    let (taken, _under_way) = (Instant::now(), workplace.metrics.job_taken(waited));
    let assignment = claimed.assignment.clone();
    let noted = Noted { job: claimed.job.clone(), taken, anchor: Anchor::new((workplace.clock)()) };
    let (heard, hears) = mpsc::unbounded_channel();
    let recorder = Recorder::new(Arc::clone(workplace), (job_id.clone(), fence), stop.clone());
    let about = Span::current();
    let recording = tokio::spawn(recorder.run(hears).instrument(about.clone()));
    let (place, thread_stop) = (Arc::clone(workplace), stop.clone());
    let ran =
        tokio::task::spawn_blocking(move || about.in_scope(|| run(&place, claimed, heard, &thread_stop)))
            .await;
    belljar_failpoint::reached("run.collected");
    let Run { came, folder, has_begun, ran } = ran.unwrap_or_else(|died| Run::of_fault(&died, true));
    let removed = folder.map(|folder| tokio::task::spawn_blocking(move || remove(folder)));
    // The thread is gone, and with it the other end of what the recorder hears. What it still has to record may wait for the room
    // that the folder takes.
    let untold = recording.await.unwrap_or_default();
    let (mut kept, failure) = (Instant::now(), came.outcome.failure_code);
    let mut ended_as = None;
    let recorded = match stop.why() {
        Some(Why::Lost) => Ok(()),
        Some(Why::Shutdown) if !has_begun => leave(workplace, (&job_id, fence), Left::Unbegun).await,
        Some(Why::Shutdown) if came.was_stopped() => leave(workplace, (&job_id, fence), Left::Gone).await,
        _ => {
            let came = with_files(workplace, &assignment, keep_artifacts(workplace, came).await).await;
            let Came { ending, outcome } = came;
            kept = Instant::now();
            // A job that was not begun says nothing of anybody.
            let earns = workplace.trust.is_earned() && has_begun;
            let trust = earns.then(|| NodeTrust::ended(&assignment, (ending, &outcome), workplace.now()));
            let report = Report { untold, ending, outcome, trust: trust.flatten() };
            // What came of it may be long, and is written down as one document.
            let (place, id) = (Arc::clone(workplace), job_id.clone());
            let recorded = apart(async move { end(&place, (&id, fence), report).await }).await;
            let recorded = recorded.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
            recorded.map(|state| {
                workplace.metrics.job_ended(state, Some(taken));
                ended_as = Some(state);
                let run_id = ran.as_ref().map(|ran| ran.run_id.to_string());
                let failure = failure.map(FailureCode::as_str);
                tracing::info!(run_id, state = state.as_str(), failure, "a job is over");
            })
        }
    };
    let told = traces::Ended { kept, recorded: Instant::now(), state: ended_as, failure };
    workplace.traces.tell(&noted, ran.as_ref(), &told);
    workplace.hub.ring(&job_id);
    if let Some(removed) = removed {
        // Until then the run counts as one that takes room.
        let _ = removed.await;
    }
    match recorded {
        Ok(()) | Err(ChangeError::Refused(_) | ChangeError::Unknown { .. }) => true,
        Err(error) => {
            tracing::error!(%job_id, error = crate::chain(&error), "it is not recorded how a job ended");
            false
        }
    }
}

/// Removes what a run has left in its folder. Nothing of it is needed any more: what is kept was taken out before.
fn remove(folder: RunFolder) {
    belljar_failpoint::reached("folder.before_removal");
    let run_id = folder.id().clone();
    if let Err(error) = folder.remove() {
        // The next run that begins here finds it by its name, and tries again.
        tracing::warn!(%run_id, error = crate::chain(&error), "the folder of a run is not removed");
    }
    belljar_failpoint::reached("folder.after_removal");
}

/// Puts what the job has left where it is kept, before anybody is told of it.
async fn keep_artifacts(workplace: &Workplace, came: Came) -> Came {
    for artifact in &came.outcome.artifacts {
        let keep = || workplace.artifacts.keep(&artifact.sha256);
        let is_passing = |error: &ArtifactsError| matches!(error, ArtifactsError::Reach { .. });
        if let Err(error) = insistently(&workplace.stop, is_passing, keep).await {
            tracing::warn!(error = crate::chain(&error), "an artifact is not kept");
            return Came::of_fault(&error);
        }
    }
    came
}

/// Adds the files that the job's agent has put into its task (`artifact.put`): they are what the job has left, too.
async fn with_files(workplace: &Workplace, assignment: &Assignment, came: Came) -> Came {
    // A command has no tools.
    if assignment.sandbox.job_spec.is_none() {
        return came;
    }
    let look = || workplace.tools.files().of_job(&assignment.task_id, &assignment.job_id);
    match insistently(&workplace.stop, |error: &DatabaseError| error.kind == Failing::Unavailable, look).await
    {
        Ok(files) => came.with_files(&files),
        Err(error) => {
            tracing::warn!(error = crate::chain(&error), "the files that a job has put can't be looked up");
            Came::of_fault(&error)
        }
    }
}

/// How it ended, as is recorded.
async fn end(
    workplace: &Workplace,
    (job_id, fence): Claim<'_>,
    report: Report,
) -> Result<JobState, ChangeError> {
    let now = workplace.now();
    let record = |report: Report| workplace.jobs.end(job_id, fence, report, now);
    let recorded = insistently(&workplace.stop, ChangeError::is_passing, || record(report.clone())).await;
    let Err(error @ ChangeError::Database(_)) = recorded else { return recorded.map(state) };
    if error.is_passing() {
        return Err(error);
    }
    // The database doesn't take what came of it, and won't later: then it takes that.
    let Came { ending, outcome } = Came::of_fault(&error);
    let instead = Report { untold: Told::default(), ending, outcome, trust: None };
    insistently(&workplace.stop, ChangeError::is_passing, || record(instead.clone())).await.map(state)
}

fn state(ended: Ended) -> JobState {
    let (Ended::Now(job) | Ended::Before(job)) = ended;
    job.life.state
}

/// It was ended because the node stops: it may be begun again elsewhere, or is over as a failure of the node.
async fn leave(workplace: &Workplace, (job_id, fence): Claim<'_>, left: Left) -> Result<(), ChangeError> {
    let now = workplace.now();
    let record = || workplace.jobs.leave(job_id, fence, left, now);
    insistently(&workplace.stop, ChangeError::is_passing, record).await.map(drop)
}

type Claim<'a> = (&'a belljar_contract::id::JobId, belljar_policy::lifecycle::Fence);

/// Does something as often as it takes, as long as what hinders it may pass: while the database can't be reached, what is
/// known is known here alone. When the node stops, it is tried for a little longer.
pub(super) async fn insistently<T, E: Error, F: Future<Output = Result<T, E>>>(
    stop: &CancellationToken,
    is_passing: impl Fn(&E) -> bool,
    mut act: impl FnMut() -> F,
) -> Result<T, E> {
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    loop {
        let error = match act().await {
            Err(error) if is_passing(&error) => error,
            done => return done,
        };
        tracing::warn!(error = crate::chain(&error), "trying again");
        if stop.is_cancelled()
            && *last.get_or_insert_with(|| Instant::now() + LAST_PATIENCE) <= Instant::now()
        {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(if stop.is_cancelled() { FIRST_PAUSE } else { LONGEST_PAUSE });
    }
}

// === impl Stop ===

impl Stop {
    /// At once. The first reason counts, but that it is another's by now counts more than any.
    pub(super) fn because(&self, why: Why) {
        let mut stopping = self.locked();
        if stopping.why.is_none() || why == Why::Lost {
            stopping.why = Some(why);
        }
        stopping.grace = Duration::ZERO;
    }

    /// By being asked to, and by force after so long; unless it is to stop already.
    pub(super) fn within(&self, grace: Duration, why: Why) {
        let mut stopping = self.locked();
        if stopping.why.is_none() {
            *stopping = Stopping { why: Some(why), grace };
        }
    }

    pub(super) fn why(&self) -> Option<Why> {
        self.locked().why
    }

    /// How long it may take to stop.
    pub(super) fn grace(&self) -> Duration {
        self.locked().grace
    }

    fn locked(&self) -> MutexGuard<'_, Stopping> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
