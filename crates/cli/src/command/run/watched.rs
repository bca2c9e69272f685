//! A job that is watched, with the models that it may call and the web that it may reach.

use crate::error::CliError;
use crate::grants::PresentedGrant;
use crate::models::{self, ModelArguments, ModelService};
use crate::progress::Progress;
use crate::web;
use belljar_contract::event::LogLine;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::policy_file::OpenPolicy;
use belljar_execution::tls_interception::TlsInterception;
use belljar_execution::web::WebTotals;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::{JobWatch, StartedRun};
use belljar_sandbox::state::StateDirectory;
use std::time::Duration;

/// A policy for the web, with what it takes to look into connections.
type JobWebPolicy = (OpenPolicy, Option<TlsInterception>);

/// Models, with the arguments that request them and the grant that is presented.
type JobModels<'a> = ((InferenceConfig, Option<PresentedGrant>), &'a ModelArguments);

/// Shows how a job goes on, and serves models and the web to it.
pub(super) struct JobRunObserver<'s> {
    progress: Progress,
    web: Option<JobWebPolicy>,
    models: Option<JobModels<'s>>,
    served_web: Option<Result<web::SandboxWebProxy, CliError>>,
    served_models: Option<Result<models::ModelProxy, CliError>>,
    state: &'s StateDirectory,
}

/// Graph (calling program) that providers record with a job's model calls.
const GRAPH: &str = "sandbox:job";

// === impl JobRunObserver ===

impl<'s> JobRunObserver<'s> {
    pub(super) fn new(
        progress: Progress,
        (web, models): (Option<JobWebPolicy>, Option<JobModels<'s>>),
        state: &'s StateDirectory,
    ) -> Self {
        Self { progress, web, models, served_web: None, served_models: None, state }
    }

    /// Ends what is served. What there has been of the web, once all of it is recorded.
    pub(super) fn finish(mut self) -> Result<Option<WebTotals>, CliError> {
        self.progress.finish();
        self.served_models.transpose()?.map_or(Ok(()), models::ModelProxy::end)?;
        self.served_web.transpose()?.map(web::SandboxWebProxy::finish).transpose()
    }
}

impl JobWatch for JobRunObserver<'_> {
    fn begun(&mut self, begun: StartedRun) {
        for (hatch, sockets) in begun.hatches {
            match hatch {
                Hatch::Web => {
                    let Some((policy, inspection)) = self.web.take() else { continue };
                    let web = (policy, inspection.as_ref());
                    self.served_web = Some(web::SandboxWebProxy::begin(web, &begun.run, self.state, sockets));
                }
                Hatch::Inference => {
                    let Some(((config, grant), arguments)) = self.models.take() else { continue };
                    let entitle = |grant| models::entitle(grant, GRAPH, &begun.run, self.state);
                    let served = grant.map(entitle).transpose().and_then(|granted| {
                        let service = ModelService { config, graph_id: GRAPH, granted: granted.as_ref() };
                        arguments.serve(service, &begun.run, self.state, sockets)
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
        // If a hatch can't be served, the run stops.
        let is_missing =
            matches!(self.served_web, Some(Err(_))) || matches!(self.served_models, Some(Err(_)));
        is_missing.then_some(Duration::ZERO).or_else(|| self.progress.is_to_stop())
    }
}
