//! The ways out of the sandbox of a command: models and the web, each served if it was asked for.

use crate::error::CliError;
use crate::grants::PresentedGrant;
use crate::models::{self, ModelArguments, ModelService};
use crate::web;
use belljar_contract::id::RunId;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::grant::ExecutionPermit;
use belljar_execution::policy_file::OpenPolicy;
use belljar_execution::tls_interception::TlsInterception;
use belljar_sandbox::hatch::{Hatch, by_hatch};
use belljar_sandbox::state::StateDirectory;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// Requested hatches.
pub(super) struct RequestedHatches<'a> {
    pub(super) models: Option<InferenceConfig>,
    pub(super) arguments: &'a ModelArguments,
    /// The grant that is shown, if one is.
    pub(super) grant: Option<PresentedGrant>,
    /// That models may be called with it, once that is decided.
    pub(super) granted: Option<ExecutionPermit>,
    pub(super) web: Option<OpenPolicy>,
    /// TLS interception, once it is set up.
    pub(super) inspection: Option<TlsInterception>,
}

/// Running hatches. Dropping them ends their open connections.
pub(super) struct RunningHatches {
    models: Option<models::ModelProxy>,
    web: Option<web::SandboxWebProxy>,
}

// === impl RequestedHatches ===

impl RequestedHatches<'_> {
    /// The hatches that it takes.
    pub(super) fn hatches(&self) -> Vec<Hatch> {
        let wanted = [(Hatch::Inference, self.models.is_some()), (Hatch::Web, self.web.is_some())];
        wanted.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(hatch, _)| hatch).collect()
    }

    /// Adds what network access needs inside the sandbox: the trusted CA for TLS interception, if the policy inspects connections.
    pub(super) fn furnish(
        &mut self,
        env: &mut BTreeMap<String, String>,
        home: &mut BTreeMap<String, String>,
    ) -> Result<(), CliError> {
        let of = |policy: &OpenPolicy| TlsInterception::of(&policy.live().current().config);
        self.inspection = self.web.as_ref().map(of).transpose()?.flatten();
        if let Some(inspection) = &self.inspection {
            inspection.furnish(env, home);
        }
        Ok(())
    }

    /// Decides whether the grant that is shown covers the run, and records that; before anything runs.
    pub(super) fn entitle(&mut self, run_id: &RunId, state: &StateDirectory) -> Result<(), CliError> {
        let Some(grant) = self.grant.take() else { return Ok(()) };
        self.granted = Some(models::entitle(grant, models::EXEC, run_id, state)?);
        Ok(())
    }

    /// Serves them by the sockets of these hatches, in their order.
    pub(super) fn serve(
        self,
        run_id: &RunId,
        state: &StateDirectory,
        sockets: Vec<OwnedFd>,
    ) -> Result<RunningHatches, CliError> {
        let hatches = self.hatches();
        let Self { mut models, arguments, granted, grant: _, mut web, inspection } = self;
        let mut served = RunningHatches { models: None, web: None };
        for (hatch, sockets) in by_hatch(&hatches, sockets) {
            match hatch {
                Hatch::Inference => {
                    let granted = granted.as_ref();
                    let service = |config| ModelService { config, graph_id: models::EXEC, granted };
                    let serve = |config| arguments.serve(service(config), run_id, state, sockets);
                    served.models = models.take().map(serve).transpose()?;
                }
                Hatch::Web => {
                    let inspection = inspection.as_ref();
                    let serve =
                        |policy| web::SandboxWebProxy::begin((policy, inspection), run_id, state, sockets);
                    served.web = web.take().map(serve).transpose()?;
                }
                Hatch::Status => {}
            }
        }
        Ok(served)
    }
}

// === impl RunningHatches ===

impl RunningHatches {
    /// Ends what is under way, and tells what there has been, once all of it is recorded.
    pub(super) fn end(self) -> Result<(), CliError> {
        self.models.map_or(Ok(()), models::ModelProxy::end)?;
        self.web.map_or(Ok(()), web::SandboxWebProxy::end)
    }
}
