//! Hears a run, on its thread, and passes on what is to be recorded.

use super::Workplace;
use super::attempt::{Stop, Why};
use super::recorder::Heard;
use super::reports::Reports;
use crate::api::hatch::{self, Served};
use crate::book::BookError;
use crate::house::Terms;
use crate::images::Image;
use crate::models::{CallOwner, Caller, RunModels};
use crate::serving::{HatchThread, ServeError};
use crate::tools::{Given, Seated};
use crate::traces::{Ran, Step};
use crate::web::{RunWeb, Seen, Way};
use belljar_confine::stage::Timings;
use belljar_contract::event::LogLine;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::result::JobResult;
use belljar_contract::usage::UsageTotals;
use belljar_contract::worker::event::{Happening, Stream};
use belljar_contract::worker::job::NO_EXIT_CODE;
use belljar_contract::worker::telemetry::ContainerKind;
use belljar_egress::inference::config::InferenceConfig;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::command::CommandWatch;
use belljar_sandbox::run::{Begun, Watch};
use belljar_store::telemetry::Made;
use jiff::Timestamp;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Hears a run. What it serves to its sandbox ends with it.
pub(super) struct Hearing {
    workplace: Arc<Workplace>,
    whose: Whose,
    /// Models that it may call, until they are served.
    models: Option<InferenceConfig>,
    served: Option<Result<RunModels, ServeError>>,
    /// By which way it reaches the web, if it may.
    way: Option<Way>,
    web: Option<Result<RunWeb, ServeError>>,
    heard: mpsc::UnboundedSender<Heard>,
    stop: Stop,
    begun: Option<(Arc<Reports>, Option<Served>)>,
    taken: Instant,
    /// The run whose sandbox stands, and since when.
    run: Option<RunId>,
    stood: Option<Instant>,
    /// What its program has ended with.
    pub(super) exit_code: i32,
}

/// What a run has had, once nothing of it runs any more.
pub(super) struct Had {
    /// Of models, if it might call any.
    pub(super) models: Option<Result<UsageTotals, BookError>>,
    /// Of the web, if it might reach any.
    pub(super) web: Option<Result<Seen, BookError>>,
    /// How it went, where a sandbox stood.
    pub(super) ran: Option<Ran>,
}

/// Whose run it is.
pub(super) struct Whose {
    pub(super) task_id: TaskId,
    pub(super) job_id: JobId,
    pub(super) attempt: u32,
    pub(super) image: Image,
    /// A command has nobody who would say that it has begun: it has when its sandbox stands.
    pub(super) is_command: bool,
    /// What its agent is given.
    pub(super) given: Given,
    /// The person and the trace that its calls of models are recorded for.
    pub(super) owner: CallOwner,
    /// What its sandbox was made with, where its agent is judged.
    pub(super) terms: Option<Terms>,
}

// === impl Whose ===

impl Whose {
    /// The sandbox of that run, as it is told of.
    fn made(&self, run: &RunId, at: Timestamp) -> Made {
        Made {
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

// === impl Hearing ===

impl Hearing {
    pub(super) fn new(
        workplace: &Arc<Workplace>,
        whose: Whose,
        (models, way): (Option<InferenceConfig>, Option<Way>),
        heard: mpsc::UnboundedSender<Heard>,
        stop: Stop,
    ) -> Self {
        let workplace = Arc::clone(workplace);
        let exit_code = NO_EXIT_CODE;
        let taken = Instant::now();
        let (served, web, begun, run, stood) = (None, None, None, None, None);
        Self { taken, workplace, whose, models, served, way, web, heard, stop, begun, run, stood, exit_code }
    }

    /// Ends what is served, and says what it has had of it, and how it went.
    pub(super) fn end(&mut self, timings: Timings, steps: Vec<Step>) -> Had {
        let ended = Instant::now();
        if let Some((reports, _)) = self.begun.take() {
            // What serves the hatch may hold them for longer.
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
        let ran = stood.map(|(run_id, stood)| Ran {
            run_id,
            runtime,
            stood,
            ended,
            timings,
            steps,
            calls,
            passages,
        });
        Had { models: usage, web, ran }
    }

    fn say(&self, happening: Happening) {
        // Nobody hears it only if the whole runtime is going.
        let _ = self.heard.send(Heard::Happened((self.workplace.clock)(), happening));
    }

    fn stands(&mut self, begun: Begun) {
        let Begun { run, hatches, deadline } = begun;
        self.run = Some(run.clone());
        self.stood = Some(Instant::now());
        self.workplace.metrics.sandbox_stands(self.taken);
        self.workplace.telemetry.made(self.whose.made(&run, self.workplace.now()));
        let job_id = self.whose.job_id.clone();
        let reports = Reports::new(&self.workplace, (job_id, run.clone()), deadline, self.heard.clone());
        let reports = Arc::new(reports);
        if self.whose.is_command {
            reports.started();
        }
        let statuses = match HatchThread::start() {
            Ok(thread) => self.serve((&run, &reports), &Arc::new(thread), hatches),
            Err(error) => {
                // Without a thread the sockets are closed. What the job needs of them it can't have.
                tracing::error!(%error, "the hatches of a job can't be served");
                None
            }
        };
        self.begun = Some((reports, statuses));
    }

    /// Serves each hatch, all of them on one thread. What hears the job's status, if anything does.
    fn serve(
        &mut self,
        (run, reports): (&RunId, &Arc<Reports>),
        thread: &Arc<HatchThread>,
        hatches: Vec<(Hatch, Vec<OwnedFd>)>,
    ) -> Option<Served> {
        let mut statuses = None;
        for (hatch, sockets) in hatches {
            match hatch {
                Hatch::Status => {
                    let seated = self.seat(run);
                    let served = hatch::serve(thread, (Arc::clone(reports), seated), sockets);
                    // The runner says the same by a file.
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
        let served = self.workplace.models.serve((thread, self.caller()), (config, owner), run, sockets);
        // Without anybody who serves them the sockets are closed: a call is refused, and the job told so by that.
        self.served =
            Some(served.inspect_err(|error| tracing::error!(error = crate::chain(error), "no models")));
    }
}

impl Hearing {
    fn caller(&self) -> Caller {
        Caller::Job { job_id: self.whose.job_id.clone(), attempt: self.whose.attempt }
    }

    /// Whether it is to stop: somebody wants it to, or its agent has less by now than its sandbox was made with.
    fn is_over(&self) -> Option<Duration> {
        let house = self.workplace.tools.house();
        if let (None, Some(house), Some(terms)) = (self.stop.why(), house, &self.whose.terms)
            && !house.still_allows(terms)
        {
            self.stop.because(Why::Demoted);
        }
        self.stop.why().map(|_| self.stop.grace())
    }

    /// Where its agent calls tools from. A command has none.
    fn seat(&self, run: &RunId) -> Option<Seated> {
        let Whose { task_id, job_id, is_command, given, .. } = &self.whose;
        let tools = &self.workplace.tools;
        (!is_command).then(|| tools.seat((task_id, job_id, run), given))
    }

    fn serve_web(&mut self, thread: &Arc<HatchThread>, run: &RunId, sockets: Vec<OwnedFd>) {
        let Some(way) = &self.way else { return };
        let served = self.workplace.web.serve((thread, self.caller()), (run, way), sockets);
        // The same.
        self.web = Some(served.inspect_err(|error| tracing::error!(error = crate::chain(error), "no web")));
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        // However that came about, nothing of it runs any more.
        if let Some(run) = &self.run {
            self.workplace.telemetry.ended(self.workplace.now(), run, self.exit_code);
        }
    }
}

impl Watch for Hearing {
    fn begun(&mut self, begun: Begun) {
        self.stands(begun);
    }

    fn started(&mut self) {
        if let Some((reports, _)) = &self.begun {
            reports.started();
        }
    }

    fn reported(&mut self) -> Option<JobResult> {
        let (reports, served) = self.begun.as_mut()?;
        // Whatever comes from here on comes from nobody.
        served.take();
        reports.take_result()
    }

    fn heard(&mut self, line: &LogLine) {
        if let Ok(line) = serde_json::to_value(line) {
            self.say(Happening::Step { line });
        }
    }

    fn tick(&mut self) {}

    fn is_to_stop(&self) -> Option<Duration> {
        self.is_over()
    }
}

impl CommandWatch for Hearing {
    fn begun(&mut self, begun: Begun) {
        self.stands(begun);
    }

    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.say(Happening::Log { stream, text: String::from_utf8_lossy(bytes).into_owned() });
    }

    fn is_to_stop(&self) -> Option<Duration> {
        self.is_over()
    }
}
