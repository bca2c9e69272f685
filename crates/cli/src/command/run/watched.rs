//! A job that is watched, with the models that it may call and the web that it may reach.

use crate::error::CliError;
use crate::grants::PresentedGrant;
use crate::models::{self, ModelArguments};
use crate::progress::Progress;
use crate::web;
use belljar_contract::event::LogLine;
use belljar_egress::inference::config::InferenceConfig;
use belljar_node::inspection::Inspection;
use belljar_node::web::Seen;
use belljar_node::web::policy_file::OpenPolicy;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::{Begun, Watch};
use belljar_sandbox::state::State;
use std::time::Duration;

/// A policy for the web, with what it takes to look into connections.
type JobWebPolicy = (OpenPolicy, Option<Inspection>);

/// Models, with the arguments that request them and the grant that is presented.
type JobModels<'a> = ((InferenceConfig, Option<PresentedGrant>), &'a ModelArguments);

/// Shows how a job goes on, and serves models and the web to it.
pub(super) struct Watched<'s> {
    progress: Progress,
    web: Option<JobWebPolicy>,
    models: Option<JobModels<'s>>,
    served_web: Option<Result<web::Served, CliError>>,
    served_models: Option<Result<models::Served, CliError>>,
    state: &'s State,
}

/// What calls of models have as the thing that calls, at their provider.
const GRAPH: &str = "sandbox:job";

// === impl Watched ===

impl<'s> Watched<'s> {
    pub(super) fn new(
        progress: Progress,
        (web, models): (Option<JobWebPolicy>, Option<JobModels<'s>>),
        state: &'s State,
    ) -> Self {
        Self { progress, web, models, served_web: None, served_models: None, state }
    }

    /// Ends what is served. What there has been of the web, once all of it is recorded.
    pub(super) fn finish(mut self) -> Result<Option<Seen>, CliError> {
        self.progress.finish();
        self.served_models.transpose()?.map_or(Ok(()), models::Served::end)?;
        self.served_web.transpose()?.map(web::Served::finish).transpose()
    }
}

impl Watch for Watched<'_> {
    fn begun(&mut self, begun: Begun) {
        for (hatch, sockets) in begun.hatches {
            match hatch {
                Hatch::Web => {
                    let Some((policy, inspection)) = self.web.take() else { continue };
                    let web = (policy, inspection.as_ref());
                    self.served_web = Some(web::Served::begin(web, &begun.run, self.state, sockets));
                }
                Hatch::Inference => {
                    let Some(((config, grant), arguments)) = self.models.take() else { continue };
                    let entitle = |grant| models::entitle(grant, GRAPH, &begun.run, self.state);
                    let served = grant.map(entitle).transpose().and_then(|granted| {
                        let owner = (GRAPH, granted.as_ref());
                        arguments.serve((config, owner), &begun.run, self.state, sockets)
                    });
                    self.served_models = Some(served);
                }
                // A job on one machine asks for no other.
                Hatch::Status => {}
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
        let is_missing =
            matches!(self.served_web, Some(Err(_))) || matches!(self.served_models, Some(Err(_)));
        is_missing.then_some(Duration::ZERO).or_else(|| self.progress.is_to_stop())
    }
}
