//! A single attempt at a job, by the instance that claimed it.
//!
//! ```text
//! claimed ─► thread: sandbox, watched ──────────────► ended ─┬─► recorded, until it is
//!               │                                            └─► folder removed
//!               └─ begun, steps, output ─► recorder ─► events, in progress
//! ```
//! The run's folder is removed without waiting for a record or the recorder: it may be what fills the disk that they need.

use super::NodeState;
use super::outcome::RunOutcome;
use super::recorder::JobRecorder;
use super::run::{FinishedRun, run};
use crate::traces::{self, AttemptStart, ClockAnchor};
use crate::trust::NodeTrust;
use belljar_contract::failure::FailureCode;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::state::JobState;
use belljar_gateway::apart;
use belljar_sandbox::state::RunFolder;
use belljar_store::artifacts::ArtifactsError;
use belljar_store::database::{DatabaseError, FailureKind};
use belljar_store::jobs::{ChangeError, ClaimedJob, FinalReport, JobEnd, JobNews, ReleaseReason};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

/// A request to stop a job, with its reason and grace period.
#[derive(Debug, Clone, Default)]
pub(super) struct StopRequest(Arc<Mutex<StopState>>);

#[derive(Debug, Default)]
struct StopState {
    why: Option<StopReason>,
    grace: Duration,
}

/// Reasons to stop a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    /// A client has canceled it.
    Canceled,
    /// The node is stopping.
    Shutdown,
    /// Its agent's current permissions no longer cover the sandbox's terms.
    Demoted,
    /// Another instance has taken over the job.
    Lost,
}

/// Backoff between attempts to write a record, from the first pause up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Maximum time for writing records when the node stops. The next start finds jobs whose end is not recorded then.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Runs a claimed job, and records its end. Returns true if the end is recorded, or is another instance's to record.
pub(super) async fn carry_out(workplace: &Arc<NodeState>, claimed: ClaimedJob, stop: &StopRequest) -> bool {
    let (job_id, fence) = (claimed.job.job_id.clone(), claimed.fence());
    let waited = workplace.now().duration_since(claimed.job.accepted_at).unsigned_abs();
    let (taken, _under_way) = (Instant::now(), workplace.metrics.job_taken(waited));
    let assignment = claimed.assignment.clone();
    let noted =
        AttemptStart { job: claimed.job.clone(), taken, anchor: ClockAnchor::new((workplace.clock)()) };
    let (heard, hears) = mpsc::unbounded_channel();
    let recorder = JobRecorder::new(Arc::clone(workplace), (job_id.clone(), fence), stop.clone());
    let about = Span::current();
    let recording = tokio::spawn(recorder.run(hears).instrument(about.clone()));
    let (place, thread_stop) = (Arc::clone(workplace), stop.clone());
    let ran =
        tokio::task::spawn_blocking(move || about.in_scope(|| run(&place, claimed, heard, &thread_stop)))
            .await;
    belljar_failpoint::reached("run.collected");
    let FinishedRun { came, folder, has_begun, ran } =
        ran.unwrap_or_else(|died| FinishedRun::of_fault(&died, true));
    let removed = folder.map(|folder| tokio::task::spawn_blocking(move || remove(folder)));
    // The run's thread has ended and closed its channel to the recorder. The recorder's last events may wait for the disk
    // space that the folder takes.
    let untold = recording.await.unwrap_or_default();
    let (mut kept, failure) = (Instant::now(), came.outcome.failure_code);
    let mut ended_as = None;
    let recorded = match stop.why() {
        Some(StopReason::Lost) => Ok(()),
        Some(StopReason::Shutdown) if !has_begun => {
            leave(workplace, (&job_id, fence), ReleaseReason::Unbegun).await
        }
        Some(StopReason::Shutdown) if came.was_stopped() => {
            leave(workplace, (&job_id, fence), ReleaseReason::Gone).await
        }
        _ => {
            let came = with_files(workplace, &assignment, keep_artifacts(workplace, came).await).await;
            let RunOutcome { ending, outcome } = came;
            kept = Instant::now();
            // A job that was not begun says nothing about its agent.
            let earns = workplace.trust.is_earned() && has_begun;
            let trust = earns.then(|| NodeTrust::ended(&assignment, (ending, &outcome), workplace.now()));
            let report = FinalReport { untold, ending, outcome, trust: trust.flatten() };
            // An outcome may be long, and is written as one document.
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
    let told = traces::AttemptEnd { kept, recorded: Instant::now(), state: ended_as, failure };
    workplace.traces.tell(&noted, ran.as_ref(), &told);
    workplace.hub.ring(&job_id);
    if let Some(removed) = removed {
        // Until then the run counts as one that uses the disk.
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

/// Removes a run's folder. Artifacts were taken out before.
fn remove(folder: RunFolder) {
    belljar_failpoint::reached("folder.before_removal");
    let run_id = folder.id().clone();
    if let Err(error) = folder.remove() {
        // The next run that begins here finds the folder by its name, and tries again.
        tracing::warn!(%run_id, error = crate::chain(&error), "the folder of a run is not removed");
    }
    belljar_failpoint::reached("folder.after_removal");
}

/// Stores the job's artifacts, before they are reported.
async fn keep_artifacts(workplace: &NodeState, came: RunOutcome) -> RunOutcome {
    for artifact in &came.outcome.artifacts {
        let keep = || workplace.artifacts.keep(&artifact.sha256);
        let is_passing = |error: &ArtifactsError| matches!(error, ArtifactsError::Reach { .. });
        if let Err(error) = insistently(&workplace.stop, is_passing, keep).await {
            tracing::warn!(error = crate::chain(&error), "an artifact is not kept");
            return RunOutcome::of_fault(&error);
        }
    }
    came
}

/// Adds the files that the job's agent has put into its task (`artifact.put`): they are artifacts of the job, too.
async fn with_files(workplace: &NodeState, assignment: &Assignment, came: RunOutcome) -> RunOutcome {
    // A job that is a command has no tools.
    if assignment.sandbox.job_spec.is_none() {
        return came;
    }
    let look = || workplace.tools.files().of_job(&assignment.task_id, &assignment.job_id);
    match insistently(&workplace.stop, |error: &DatabaseError| error.kind == FailureKind::Unavailable, look)
        .await
    {
        Ok(files) => came.with_files(&files),
        Err(error) => {
            tracing::warn!(error = crate::chain(&error), "the files that a job has put can't be looked up");
            RunOutcome::of_fault(&error)
        }
    }
}

/// Records the end of a job, and returns the recorded state.
async fn end(
    workplace: &NodeState,
    (job_id, fence): ClaimRef<'_>,
    report: FinalReport,
) -> Result<JobState, ChangeError> {
    let now = workplace.now();
    let record = |report: FinalReport| workplace.jobs.end(job_id, fence, report, now);
    let recorded = insistently(&workplace.stop, ChangeError::is_passing, || record(report.clone())).await;
    let Err(error @ ChangeError::Database(_)) = recorded else { return recorded.map(state) };
    if error.is_passing() {
        return Err(error);
    }
    // The database rejects this outcome, and will reject it later: a failure of the node is recorded instead.
    let RunOutcome { ending, outcome } = RunOutcome::of_fault(&error);
    let instead = FinalReport { untold: JobNews::default(), ending, outcome, trust: None };
    insistently(&workplace.stop, ChangeError::is_passing, || record(instead.clone())).await.map(state)
}

fn state(ended: JobEnd) -> JobState {
    let (JobEnd::Now(job) | JobEnd::Before(job)) = ended;
    job.life.state
}

/// Records that a job was ended because the node stops: another attempt is made, or the job has failed because of the node.
async fn leave(
    workplace: &NodeState,
    (job_id, fence): ClaimRef<'_>,
    left: ReleaseReason,
) -> Result<(), ChangeError> {
    let now = workplace.now();
    let record = || workplace.jobs.leave(job_id, fence, left, now);
    insistently(&workplace.stop, ChangeError::is_passing, record).await.map(drop)
}

type ClaimRef<'a> = (&'a belljar_contract::id::JobId, belljar_policy::lifecycle::Fence);

/// Retries an action with backoff, while its error may pass. While the database can't be reached, the result is known only
/// here. When the node stops, it is tried for [`LAST_PATIENCE`] longer.
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

// === impl StopRequest ===

impl StopRequest {
    /// Requests an immediate stop. The first reason is kept, except that [`StopReason::Lost`] replaces any other.
    pub(super) fn because(&self, why: StopReason) {
        let mut stopping = self.locked();
        if stopping.why.is_none() || why == StopReason::Lost {
            stopping.why = Some(why);
        }
        stopping.grace = Duration::ZERO;
    }

    /// Requests a stop with a grace period before the kill. If a stop was requested before, it only shortens that period.
    pub(super) fn within(&self, grace: Duration, why: StopReason) {
        let mut stopping = self.locked();
        match stopping.why {
            None => *stopping = StopState { why: Some(why), grace },
            Some(_) => stopping.grace = stopping.grace.min(grace),
        }
    }

    pub(super) fn why(&self) -> Option<StopReason> {
        self.locked().why
    }

    /// Returns the grace period.
    pub(super) fn grace(&self) -> Duration {
        self.locked().grace
    }

    fn locked(&self) -> MutexGuard<'_, StopState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
