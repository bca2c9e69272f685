//! Hears a run, on its thread, and passes on what is to be recorded.

use super::Workplace;
use super::attempt::Stop;
use super::recorder::Heard;
use super::reports::Reports;
use crate::api::hatch::{self, Served};
use belljar_contract::event::LogLine;
use belljar_contract::id::JobId;
use belljar_contract::result::JobResult;
use belljar_contract::worker::event::{Happening, Stream};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::command::CommandWatch;
use belljar_sandbox::run::{Begun, Watch};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Hears a run. What it serves to its sandbox ends with it.
pub(super) struct Hearing {
    workplace: Arc<Workplace>,
    job_id: JobId,
    /// A command has nobody who would say that it has begun: it has when its sandbox stands.
    is_command: bool,
    heard: mpsc::UnboundedSender<Heard>,
    stop: Stop,
    begun: Option<(Arc<Reports>, Option<Served>)>,
}

// === impl Hearing ===

impl Hearing {
    pub(super) fn new(
        workplace: &Arc<Workplace>,
        (job_id, is_command): (JobId, bool),
        heard: mpsc::UnboundedSender<Heard>,
        stop: Stop,
    ) -> Self {
        Self { workplace: Arc::clone(workplace), job_id, is_command, heard, stop, begun: None }
    }

    fn say(&self, happening: Happening) {
        // Nobody hears it only if the whole runtime is going.
        let _ = self.heard.send(Heard::Happened((self.workplace.clock)(), happening));
    }

    fn stands(&mut self, begun: Begun) {
        let Begun { run, hatches, deadline } = begun;
        let reports =
            Arc::new(Reports::new(&self.workplace, (self.job_id.clone(), run), deadline, self.heard.clone()));
        if self.is_command {
            reports.started();
        }
        let served =
            hatches.into_iter().find(|(hatch, _)| *hatch == Hatch::Status).and_then(|(_, sockets)| {
                let served = hatch::serve(&Handle::current(), Arc::clone(&reports), sockets);
                // The runner says the same by a file.
                served.inspect_err(|error| tracing::warn!(%error, "a job's status can't be heard")).ok()
            });
        self.begun = Some((reports, served));
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

    fn is_canceled(&self) -> bool {
        self.stop.why().is_some()
    }
}

impl CommandWatch for Hearing {
    fn begun(&mut self, begun: Begun) {
        self.stands(begun);
    }

    fn printed(&mut self, stream: Stream, bytes: &[u8]) {
        self.say(Happening::Log { stream, text: String::from_utf8_lossy(bytes).into_owned() });
    }

    fn is_canceled(&self) -> bool {
        self.stop.why().is_some()
    }
}
