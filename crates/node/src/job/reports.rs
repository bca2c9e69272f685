//! Status reports of a run by its hatch, and extensions of its time limit.

use super::NodeState;
use super::recorder::RunEvent;
use crate::daemon::{ExtensionError, Timeouts, WallClock};
use belljar_contract::id::{JobId, RunId};
use belljar_contract::result::JobResult;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::event::JobEventKind;
use belljar_contract::worker::status::{StatusAnswer, StatusReport};
use belljar_sandbox::run::Deadline;
use belljar_store::jobs::RunStart;
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Status reports of one run. They come from inside the sandbox, so they affect only the job's own time limit and record.
pub(crate) struct StatusReports {
    job_id: JobId,
    run_id: RunId,
    begun: Instant,
    deadline: Deadline,
    timeouts: Timeouts,
    clock: WallClock,
    /// Taken when the run is over: the recorder waits until this sender is dropped.
    heard: Mutex<Option<mpsc::UnboundedSender<RunEvent>>>,
    state: Mutex<StatusReportState>,
    workplace: Arc<NodeState>,
}

/// The job has sent too many reports.
#[derive(Debug, thiserror::Error)]
#[error("a job reports progress and asks for time {MOST_NOTED} times at most")]
pub(crate) struct TooManyError;

#[derive(Default)]
struct StatusReportState {
    has_started: bool,
    last: Option<u64>,
    granted: Option<Result<(), ExtensionError>>,
    noted: usize,
    result: Option<JobResult>,
}

/// Maximum number of reports with progress or a request for time.
const MOST_NOTED: usize = 1_000;

// === impl StatusReports ===

impl StatusReports {
    pub(super) fn new(
        workplace: &Arc<NodeState>,
        (job_id, run_id): (JobId, RunId),
        deadline: Deadline,
        heard: mpsc::UnboundedSender<RunEvent>,
    ) -> Self {
        let (timeouts, clock) = (workplace.settings.timeouts, WallClock::clone(&workplace.clock));
        Self {
            job_id,
            run_id,
            begun: Instant::now(),
            deadline,
            timeouts,
            clock,
            heard: Mutex::new(Some(heard)),
            state: Mutex::default(),
            workplace: Arc::clone(workplace),
        }
    }

    /// Returns the job that they are about.
    pub(crate) fn job_id(&self) -> &JobId {
        &self.job_id
    }

    /// Notes that the job has started, once.
    pub(super) fn started(&self) {
        if !std::mem::replace(&mut self.locked().has_started, true) {
            let (at, deadline) = ((self.clock)(), self.deadline().0);
            self.pass_on(RunEvent::Started(RunStart { run_id: self.run_id.clone(), at, deadline }));
        }
    }

    /// Accepts a report, and returns how long the job may continue.
    pub(crate) fn hear(&self, report: StatusReport) -> Result<StatusAnswer, TooManyError> {
        self.workplace.metrics.job_reported();
        let StatusReport { version: _, status, seq, result, progress, extension_request_seconds } = report;
        self.started();
        let mut state = self.locked();
        // The runner sends the final report when no step lives any more, so a step's sequence number can't outdate it.
        if status.is_final()
            && let Some(result) = result
        {
            state.result = serde_json::from_value(result).ok();
        }
        if seq.is_some() && seq <= state.last {
            let granted = state.granted.filter(|_| extension_request_seconds.is_some() && seq == state.last);
            return Ok(self.answer(granted));
        }
        state.noted += usize::from(progress.is_some()) + usize::from(extension_request_seconds.is_some());
        if state.noted > MOST_NOTED {
            return Err(TooManyError);
        }
        state.last = seq.or(state.last);
        if let Some(progress) = progress {
            self.say(JobEventKind::Progress(progress));
        }
        state.granted = extension_request_seconds.map(|seconds| self.extend(seconds));
        Ok(self.answer(state.granted))
    }

    /// Takes the job's last reported result.
    pub(super) fn take_result(&self) -> Option<JobResult> {
        self.locked().result.take()
    }

    fn extend(&self, asked_seconds: u32) -> Result<(), ExtensionError> {
        let asked = Duration::from_secs(asked_seconds.into());
        let is_over = Instant::now() >= self.deadline.at();
        let has = self.deadline.at().duration_since(self.begun);
        let granted = match is_over {
            true => Err(ExtensionError::Late),
            false => self.timeouts.extend(has, asked),
        };
        self.workplace.metrics.extension_asked(granted.is_ok());
        if granted.is_ok() {
            self.deadline.put_off(asked);
        }
        self.say(JobEventKind::Extension {
            asked_seconds,
            granted: granted.is_ok(),
            deadline: self.deadline().0,
            reason: granted.err().map(|why| why.to_string()),
        });
        granted
    }

    fn answer(&self, granted: Option<Result<(), ExtensionError>>) -> StatusAnswer {
        let (deadline, remaining) = self.deadline();
        StatusAnswer {
            version: ApiVersion,
            deadline,
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
            granted: granted.map(|granted| granted.is_ok()),
            reason: granted.and_then(Result::err).map(|why| why.to_string()),
        }
    }

    /// Returns the deadline by the wall clock, to the millisecond, and the time left.
    fn deadline(&self) -> (Timestamp, Duration) {
        let remaining = self.deadline.at().saturating_duration_since(Instant::now());
        let at = (self.clock)().checked_add(remaining).unwrap_or(Timestamp::MAX);
        (Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at), remaining)
    }

    fn say(&self, happening: JobEventKind) {
        self.pass_on(RunEvent::Happened((self.clock)(), happening));
    }

    /// Drops all further events.
    pub(super) fn close(&self) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn pass_on(&self, heard: RunEvent) {
        let sender = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        // The receiver is gone only if the whole runtime is shutting down.
        let _ = sender.as_ref().map(|sender| sender.send(heard));
    }

    fn locked(&self) -> MutexGuard<'_, StatusReportState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
