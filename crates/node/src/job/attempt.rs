//! One attempt at a job, by the instance that has claimed it.
//!
//! ```text
//! claimed ─► thread: sandbox, watched ──────────────► ended ─► recorded, until it is ─► folder removed
//!               │ begun, steps, what is printed ─► recorder ─► events, in progress
//! ```
//! What came of it is in the database before the run's folder goes.

use super::Workplace;
use super::outcome::{self, Came};
use super::recorder::{Heard, Recorder};
use belljar_contract::event::{Event, LogLine};
use belljar_contract::id::RunId;
use belljar_contract::worker::event::{Happening, Stream};
use belljar_contract::worker::job::LARGEST_STREAM_BYTES;
use belljar_sandbox::run::command::{CommandRequest, CommandWatch, carry_out_command};
use belljar_sandbox::run::{self, Request, RunError, WorkspaceChoice};
use belljar_sandbox::state::RunFolder;
use belljar_store::artifacts::ArtifactsError;
use belljar_store::jobs::{ChangeError, Claimed, Left, Report, Told};
use jiff::Timestamp;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Says whether a job is to stop, and why.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicU8>);

/// Why a job is to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// Somebody wants it to.
    Canceled = 1,
    /// The node stops.
    Shutdown = 2,
    /// It is another's by now.
    Lost = 3,
}

/// A run that is over: what came of it, and what it has left.
struct Run {
    came: Came,
    folder: Option<RunFolder>,
    has_begun: bool,
}

/// Hears a run, on its thread, and passes on what is to be recorded.
struct Hearing {
    heard: mpsc::UnboundedSender<Heard>,
    stop: Stop,
    timeout: Duration,
    clock: crate::daemon::WallClock,
    run_id: Option<RunId>,
}

/// How long is waited before something is recorded once more that could not be.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// So long it is tried when the node stops; what is not recorded then is found by the next one to start.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// Carries out what was claimed, and records how it ended; whether it is recorded, or another's to record.
pub(super) async fn carry_out(workplace: &Arc<Workplace>, claimed: Claimed, stop: &Stop) -> bool {
    let (job_id, fence) = (claimed.job.job_id.clone(), claimed.fence());
    let (heard, hears) = mpsc::unbounded_channel();
    let recorder = Recorder::new(Arc::clone(workplace), (job_id.clone(), fence), stop.clone());
    let recording = tokio::spawn(recorder.run(hears));
    let (place, thread_stop) = (Arc::clone(workplace), stop.clone());
    let ran = tokio::task::spawn_blocking(move || run(&place, claimed, heard, thread_stop)).await;
    belljar_failpoint::reached("run.collected");
    // The thread is gone, and with it the other end of what the recorder hears.
    let untold = recording.await.unwrap_or_default();
    let Run { came, folder, has_begun } =
        ran.unwrap_or_else(|died| Run { came: Came::of_fault(&died), folder: None, has_begun: true });
    let recorded = match stop.why() {
        Some(Why::Lost) => Ok(()),
        Some(Why::Shutdown) if !has_begun => leave(workplace, (&job_id, fence), Left::Unbegun).await,
        Some(Why::Shutdown) if came.was_stopped() => leave(workplace, (&job_id, fence), Left::Gone).await,
        _ => {
            let Came { ending, outcome } = keep_artifacts(workplace, came).await;
            end(workplace, (&job_id, fence), Report { untold, ending, outcome }).await
        }
    };
    workplace.hub.ring(&job_id);
    belljar_failpoint::reached("folder.before_removal");
    if let Some(folder) = folder {
        // A leftover is found by its name, and cleared away by whoever begins the next run.
        let _ = tokio::task::spawn_blocking(move || folder.remove()).await;
        belljar_failpoint::reached("folder.after_removal");
    }
    match recorded {
        Ok(()) | Err(ChangeError::Refused(_) | ChangeError::Unknown { .. }) => true,
        Err(error) => {
            tracing::error!(%job_id, error = crate::chain(&error), "it is not recorded how a job ended");
            false
        }
    }
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

async fn end(workplace: &Workplace, (job_id, fence): Claim<'_>, report: Report) -> Result<(), ChangeError> {
    let now = workplace.now();
    let record = |report: Report| workplace.jobs.end(job_id, fence, report, now);
    let recorded = insistently(&workplace.stop, ChangeError::is_passing, || record(report.clone())).await;
    let Err(error @ ChangeError::Database(_)) = recorded else { return recorded.map(drop) };
    if error.is_passing() {
        return Err(error);
    }
    // The database doesn't take what came of it, and won't later: then it takes that.
    let Came { ending, outcome } = Came::of_fault(&error);
    let instead = Report { untold: Told::default(), ending, outcome };
    insistently(&workplace.stop, ChangeError::is_passing, || record(instead.clone())).await.map(drop)
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

/// On a thread of its own, from the first to the last of a sandbox.
fn run(workplace: &Workplace, claimed: Claimed, heard: mpsc::UnboundedSender<Heard>, stop: Stop) -> Run {
    let (settings, sandbox) = (&workplace.settings, claimed.assignment.sandbox);
    let timeout = settings.timeouts.allow(sandbox.timeout());
    let clock = Arc::clone(&workplace.clock);
    let mut hearing = Hearing { heard, stop, timeout, clock, run_id: None };
    if hearing.stop.why().is_some() {
        return Run { came: Came::of_stop(), folder: None, has_begun: false };
    }
    let done: Result<Run, RunError> = match sandbox.job_spec {
        Some(spec) => {
            let document = spec.document().into_bytes();
            hearing.timeout = timeout.min(spec.job.constraints.max_runtime());
            let request = Request {
                document,
                job: spec.job,
                workspace: WorkspaceChoice::Empty,
                lent: Vec::new(),
                env: sandbox.env,
                limits: settings.limits,
                required: settings.required.clone(),
                timeout: Some(timeout),
                runner: settings.runner.clone(),
            };
            let done = run::carry_out(request, &settings.state, Some(&workplace.launcher), &mut hearing);
            done.map(|finished| Run {
                came: outcome::of_job(finished.result),
                folder: finished.folder,
                has_begun: true,
            })
        }
        None => {
            let request = CommandRequest {
                job_id: claimed.assignment.job_id,
                task_id: claimed.assignment.task_id,
                argv: sandbox.command,
                lent: Vec::new(),
                env: sandbox.env,
                limits: settings.limits,
                required: settings.required.clone(),
                timeout,
                max_output_bytes: LARGEST_STREAM_BYTES,
            };
            let done = carry_out_command(request, &settings.state, &workplace.launcher, &mut hearing);
            done.map(|mut finished| {
                let came = outcome::of_command(&mut finished);
                Run { came, folder: Some(finished.folder), has_begun: true }
            })
        }
    };
    done.unwrap_or_else(|error| Run { came: Came::of_fault(&error), folder: None, has_begun: true })
}

// === impl Stop ===

impl Stop {
    /// The first reason counts, but that it is another's by now counts more than any.
    pub(super) fn because(&self, why: Why) {
        let first = self.0.compare_exchange(0, why as u8, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err() && why == Why::Lost {
            self.0.store(why as u8, Ordering::SeqCst);
        }
    }

    pub(super) fn why(&self) -> Option<Why> {
        let all = [Why::Canceled, Why::Shutdown, Why::Lost];
        all.into_iter().find(|why| *why as u8 == self.0.load(Ordering::SeqCst))
    }
}

// === impl Hearing ===

impl Hearing {
    fn say(&self, happening: Happening) {
        // Nobody hears it only if the whole runtime is going.
        let _ = self.heard.send(Heard::Happened((self.clock)(), happening));
    }

    fn started(&self) {
        let Some(run_id) = self.run_id.clone() else { return };
        let at = (self.clock)();
        let deadline = at.checked_add(self.timeout).unwrap_or(Timestamp::MAX);
        let _ = self.heard.send(Heard::Started(belljar_store::jobs::Started { run_id, at, deadline }));
    }
}

impl run::Watch for Hearing {
    fn begun(&mut self, run: &RunId) {
        self.run_id = Some(run.clone());
    }

    fn heard(&mut self, line: &LogLine) {
        if matches!(line.event, Event::JobStarted { .. }) {
            self.started();
        }
        if let Ok(line) = serde_json::to_value(line) {
            self.say(Happening::Step { line });
        }
    }

    fn tick(&mut self) {}

    fn is_canceled(&self) -> bool {
        self.stop.why().is_some()
    }
}

impl CommandWatch for Hearing {
    fn begun(&mut self, run: &RunId) {
        self.run_id = Some(run.clone());
        self.started();
    }

    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.say(Happening::Log { stream, text: String::from_utf8_lossy(bytes).into_owned() });
    }

    fn is_canceled(&self) -> bool {
        self.stop.why().is_some()
    }
}
