//! A job that is watched, with the web that it may reach.

use crate::error::CliError;
use crate::progress::Progress;
use crate::web::Served;
use belljar_contract::event::LogLine;
use belljar_node::inspection::Inspection;
use belljar_node::web::Seen;
use belljar_node::web::policy_file::OpenPolicy;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::{Begun, Watch};
use belljar_sandbox::state::State;
use std::time::Duration;

/// Shows how a job goes on, and serves the web to it.
pub(super) struct Watched<'s> {
    progress: Progress,
    web: Option<(OpenPolicy, Option<Inspection>)>,
    served: Option<Result<Served, CliError>>,
    state: &'s State,
}

// === impl Watched ===

impl<'s> Watched<'s> {
    pub(super) fn new(
        progress: Progress,
        web: Option<(OpenPolicy, Option<Inspection>)>,
        state: &'s State,
    ) -> Self {
        Self { progress, web, served: None, state }
    }

    /// Ends what is served. What there has been of it, once all of it is recorded.
    pub(super) fn finish(mut self) -> Result<Option<Seen>, CliError> {
        self.progress.finish();
        self.served.transpose()?.map(Served::finish).transpose()
    }
}

impl Watch for Watched<'_> {
    fn begun(&mut self, begun: Begun) {
        for (hatch, sockets) in begun.hatches {
            if let (Hatch::Web, Some((policy, inspection))) = (hatch, self.web.take()) {
                let web = (policy, inspection.as_ref());
                self.served = Some(Served::begin(web, &begun.run, self.state, sockets));
            }
        }
    }

    fn heard(&mut self, line: &LogLine) {
        self.progress.heard(line);
    }

    fn tick(&mut self) {
        self.progress.tick();
    }

    fn is_to_stop(&self) -> Option<Duration> {
        // What can't be served can't be had, and nothing is done without it.
        let is_missing = matches!(self.served, Some(Err(_)));
        is_missing.then_some(Duration::ZERO).or_else(|| self.progress.is_to_stop())
    }
}
