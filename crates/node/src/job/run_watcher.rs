//! Watches a run, on its thread, and passes on what has to be recorded.

use super::NodeState;
use super::attempt::{StopReason, StopRequest};
use super::recorder::RunEvent;
use super::reports::StatusReports;
use crate::access_rules::SandboxPermissions;
use crate::api::hatch::{self, ServedHatch};
use crate::images::Image;
use crate::models::{CallOwner, ModelCaller, ModelService, RunModels};
use crate::tools::{AgentSlot, RunOwnership};
use crate::traces::{AttemptRun, TracedStep};
use crate::web::{RunPolicy, RunWeb};
use belljar_confine::stage::Timings;
use belljar_contract::event::LogLine;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::result::JobResult;
use belljar_contract::usage::UsageTotals;
use belljar_contract::worker::event::{JobEventKind, Stream};
use belljar_contract::worker::job::NO_EXIT_CODE;
use belljar_contract::worker::telemetry::ContainerKind;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::serving::{HatchThread, ServeError};
use belljar_execution::web::WebTotals;
use belljar_journal::RunJournalError;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::command::CommandWatch;
use belljar_sandbox::run::{JobWatch, RunWorkspace, StartedRun};
use belljar_store::telemetry::SandboxRecord;
use jiff::Timestamp;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// The watcher of a run. Dropping it ends what it serves to the sandbox.
pub(super) struct RunWatcher {
    workplace: Arc<NodeState>,
    whose: RunIdentity,
    /// Models that it may call, until they are served.
    models: Option<InferenceConfig>,
    served: Option<Result<RunModels, ServeError>>,
    /// Web access, if the run has it.
    way: Option<RunPolicy>,
    web: Option<Result<RunWeb, ServeError>>,
    heard: mpsc::UnboundedSender<RunEvent>,
    stop: StopRequest,
    begun: Option<(Arc<StatusReports>, Option<ServedHatch>)>,
    taken: Instant,
    /// The run whose sandbox has started, and when it did.
    run: Option<RunId>,
    stood: Option<Instant>,
    /// Exit code of its program.
    pub(super) exit_code: i32,
}

/// Hatches of a run, before they are served.
pub(super) struct RunHatches {
    /// Models that it may call, if any.
    pub(super) models: Option<InferenceConfig>,
    /// Web access, if it has any.
    pub(super) way: Option<RunPolicy>,
}

/// Usage of a run, once it is over.
pub(super) struct HatchTotals {
    /// Model usage, if it could call any.
    pub(super) models: Option<Result<UsageTotals, RunJournalError>>,
    /// Web usage, if it had access.
    pub(super) web: Option<Result<WebTotals, RunJournalError>>,
    /// Timeline of the run, if it had a sandbox.
    pub(super) ran: Option<AttemptRun>,
}

/// Identity and terms of a run.
pub(super) struct RunIdentity {
    pub(super) task_id: TaskId,
    pub(super) job_id: JobId,
    pub(super) attempt: u32,
    pub(super) image: Image,
    /// True for a command, which has no runner to report its start: it counts as started when its sandbox is ready.
    pub(super) is_command: bool,
    /// Owners of its agent's tool calls.
    pub(super) given: RunOwnership,
    /// User and trace that its model calls are recorded for.
    pub(super) owner: CallOwner,
    /// Terms of its sandbox, if there are access rules.
    pub(super) terms: Option<SandboxPermissions>,
}

// === impl RunIdentity ===

impl RunIdentity {
    /// Returns the telemetry record of the run's sandbox.
    fn made(&self, run: &RunId, at: Timestamp) -> SandboxRecord {
        SandboxRecord {
            at,
            run_id: run.clone(),
            name: format!("belljar-{run}"),
            kind: ContainerKind::Sandbox,
            runtime: self.image.runtime(),
            image: self.image.name(),
            task_id: Some(self.task_id.clone()),
            job_id: Some(self.job_id.clone()),
            labels: vec![
                ("cynodeai.task_id", self.task_id.to_string()),
                ("cynodeai.job_id", self.job_id.to_string()),
                ("belljar.attempt", self.attempt.to_string()),
            ],
        }
    }
}

// === impl RunWatcher ===

impl RunWatcher {
    pub(super) fn new(
        workplace: &Arc<NodeState>,
        whose: RunIdentity,
        hatches: RunHatches,
        heard: mpsc::UnboundedSender<RunEvent>,
        stop: StopRequest,
    ) -> Self {
        let RunHatches { models, way } = hatches;
        let workplace = Arc::clone(workplace);
        let exit_code = NO_EXIT_CODE;
        let taken = Instant::now();
        let (served, web, begun, run, stood) = (None, None, None, None, None);
        Self { taken, workplace, whose, models, served, way, web, heard, stop, begun, run, stood, exit_code }
    }

    /// Ends what is served, and returns the run's usage and timeline.
    pub(super) fn end(&mut self, timings: Timings, steps: Vec<TracedStep>) -> HatchTotals {
        let ended = Instant::now();
        if let Some((reports, _)) = self.begun.take() {
            // The hatch's server may hold the reports for longer.
            reports.close();
        }
        let served = self.served.take().and_then(Result::ok);
        let (usage, calls) = served.map(RunModels::end).unzip();
        if let Some(Ok(usage)) = &usage {
            self.workplace.metrics.models_called(usage.calls);
        }
        let (web, passages) = self.web.take().and_then(Result::ok).map(RunWeb::end).unzip();
        let (calls, passages) = (calls.unwrap_or_default(), passages.unwrap_or_default());
        let runtime = self.whose.image.runtime();
        let stood = self.run.clone().zip(self.stood);
        let ran = stood.map(|(run_id, stood)| AttemptRun {
            run_id,
            runtime,
            stood,
            ended,
            timings,
            steps,
            calls,
            passages,
        });
        HatchTotals { models: usage, web, ran }
    }

    fn say(&self, happening: JobEventKind) {
        // The receiver is gone only if the whole runtime is shutting down.
        let _ = self.heard.send(RunEvent::Happened((self.workplace.clock)(), happening));
    }

    fn stands(&mut self, begun: StartedRun) {
        let StartedRun { run, hatches, deadline, workspace } = begun;
        self.run = Some(run.clone());
        self.stood = Some(Instant::now());
        self.workplace.metrics.sandbox_stands(self.taken);
        self.workplace.telemetry.made(self.whose.made(&run, self.workplace.now()));
        let job_id = self.whose.job_id.clone();
        let reports =
            StatusReports::new(&self.workplace, (job_id, run.clone()), deadline, self.heard.clone());
        let reports = Arc::new(reports);
        if self.whose.is_command {
            reports.started();
        }
        let statuses = match HatchThread::start() {
            Ok(thread) => self.serve((&run, &reports), &Arc::new(thread), hatches, workspace),
            Err(error) => {
                // Without a thread the sockets are closed, and the job's calls by them fail.
                tracing::error!(%error, "the hatches of a job can't be served");
                None
            }
        };
        self.begun = Some((reports, statuses));
    }

    /// Serves each hatch, all of them on one thread. Returns the server of status reports, if there is one.
    fn serve(
        &mut self,
        (run, reports): (&RunId, &Arc<StatusReports>),
        thread: &Arc<HatchThread>,
        hatches: Vec<(Hatch, Vec<OwnedFd>)>,
        mut workspace: Option<RunWorkspace>,
    ) -> Option<ServedHatch> {
        let mut statuses = None;
        for (hatch, sockets) in hatches {
            match hatch {
                Hatch::Status => {
                    let seated = self.seat(run, workspace.take());
                    let served = hatch::serve(thread, (Arc::clone(reports), seated), sockets);
                    // The runner reports the same by a file.
                    statuses = served
                        .inspect_err(|error| tracing::warn!(%error, "a job's status can't be heard"))
                        .ok();
                }
                Hatch::Inference => self.serve_models(thread, run, sockets),
                Hatch::Web => self.serve_web(thread, run, sockets),
            }
        }
        statuses
    }

    fn serve_models(&mut self, thread: &Arc<HatchThread>, run: &RunId, sockets: Vec<OwnedFd>) {
        let Some(config) = self.models.take() else { return };
        let owner = self.whose.owner.clone();
        let service = ModelService { caller: self.caller(), config, owner };
        let served = self.workplace.models.serve(thread, service, run, sockets);
        // If they can't be served, the sockets are closed: the job's calls are refused.
        self.served =
            Some(served.inspect_err(|error| tracing::error!(error = crate::chain(error), "no models")));
    }
}

impl RunWatcher {
    fn caller(&self) -> ModelCaller {
        ModelCaller::Job { job_id: self.whose.job_id.clone(), attempt: self.whose.attempt }
    }

    /// Returns the grace period if the run is to stop: a stop was requested, or its agent's permissions no longer cover the
    /// sandbox's terms.
    fn is_over(&self) -> Option<Duration> {
        let house = self.workplace.tools.house();
        if let (None, Some(house), Some(terms)) = (self.stop.why(), house, &self.whose.terms)
            && !house.still_allows(terms)
        {
            self.stop.because(StopReason::Demoted);
        }
        self.stop.why().map(|_| self.stop.grace())
    }

    /// Returns the caller slot of its agent's tool calls; `None` for a command.
    fn seat(&self, run: &RunId, workspace: Option<RunWorkspace>) -> Option<AgentSlot> {
        let RunIdentity { task_id, job_id, is_command, given, .. } = &self.whose;
        let tools = &self.workplace.tools;
        (!is_command).then(|| tools.seat((task_id, job_id, run), given, workspace))
    }

    fn serve_web(&mut self, thread: &Arc<HatchThread>, run: &RunId, sockets: Vec<OwnedFd>) {
        let Some(way) = &self.way else { return };
        let served = self.workplace.web.serve((thread, self.caller()), (run, way), sockets);
        // If it can't be served, the sockets are closed: the job's requests are refused.
        self.web = Some(served.inspect_err(|error| tracing::error!(error = crate::chain(error), "no web")));
    }
}

impl Drop for RunWatcher {
    fn drop(&mut self) {
        // However the run ended, its program is gone.
        if let Some(run) = &self.run {
            self.workplace.telemetry.ended(self.workplace.now(), run, self.exit_code);
        }
    }
}

impl JobWatch for RunWatcher {
    fn begun(&mut self, begun: StartedRun) {
        self.stands(begun);
    }

    fn started(&mut self) {
        if let Some((reports, _)) = &self.begun {
            reports.started();
        }
    }

    fn reported(&mut self) -> Option<JobResult> {
        let (reports, served) = self.begun.as_mut()?;
        // The status hatch is closed first, so that no report changes the result any more.
        served.take();
        reports.take_result()
    }

    fn heard(&mut self, line: &LogLine) {
        if let Ok(line) = serde_json::to_value(line) {
            self.say(JobEventKind::Step { line });
        }
    }

    fn tick(&mut self) {}

    fn is_to_stop(&self) -> Option<Duration> {
        self.is_over()
    }
}

impl CommandWatch for RunWatcher {
    fn begun(&mut self, begun: StartedRun) {
        self.stands(begun);
    }

    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.say(JobEventKind::Log { stream, text: String::from_utf8_lossy(bytes).into_owned() });
    }

    fn is_to_stop(&self) -> Option<Duration> {
        self.is_over()
    }
}
