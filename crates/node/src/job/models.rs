//! Models for jobs: which a job may call, and who answers in its sandbox.

use crate::book::{Book, BookError};
use crate::daemon::DaemonError;
use crate::serving::{ServeError, Served};
use belljar_contract::id::{JobId, RunId};
use belljar_contract::worker::assignment::SandboxOrder;
use belljar_contract::worker::job::InferenceUsage;
use belljar_egress::identity::Identity;
use belljar_egress::inference::budget::Spent;
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::inference::proxy::Proxy;
use belljar_sandbox::state::State;
use belljar_store::audit::{AuditLog, folder_in};
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Models for jobs. One proxy serves all of them, and every call is in the audit of the node's state.
pub(crate) struct JobModels {
    config: InferenceConfig,
    billing_account_id: String,
    proxy: Arc<Proxy>,
    audit: Arc<AuditLog>,
}

/// Models that one run may call, by sockets that are its own.
pub(super) struct RunModels {
    job_id: JobId,
    attempt: u32,
    run_id: RunId,
    served: Served,
    book: Arc<Book>,
}

/// A job can't have the models that it asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoModels {
    /// There are none.
    #[error("{place}: this node has no models: its configuration has no `inference`")]
    None { place: &'static str },
    /// None of those that it names.
    #[error("{place}: this node has none of these models; it has: {known}")]
    Unknown { place: &'static str, known: String },
}

/// How a run's calls end in the audit.
#[derive(Serialize)]
struct RunEnded<'e> {
    job_id: &'e str,
    attempt: u32,
    usage: &'e InferenceUsage,
}

/// The kind under which the end of a job's run stands in the audit.
const ENDED: &str = "job_run_ended";

/// What is run, as those know it who bill it.
const GRAPH: &str = "sandbox:job";

// === impl JobModels ===

impl JobModels {
    pub(crate) fn start(
        config: InferenceConfig,
        billing_account_id: String,
        state: &State,
    ) -> Result<Self, DaemonError> {
        let audit = AuditLog::open(&folder_in(state.path())).map_err(DaemonError::Audit)?;
        let proxy = Proxy::start().map_err(|source| DaemonError::Threads { source })?;
        Ok(Self { config, billing_account_id, proxy: Arc::new(proxy), audit: Arc::new(audit) })
    }

    /// Those that a job may call: all of them for a command that asks for models, and for the runner's job those of the list
    /// that are here.
    pub(crate) fn allowed(
        models: Option<&Self>,
        sandbox: &SandboxOrder,
    ) -> Result<Option<InferenceConfig>, NoModels> {
        let listed = sandbox.job_spec.as_ref().and_then(|spec| spec.job.inference.as_ref());
        let place = match listed {
            Some(_) => "$.sandbox.job_spec.inference.allowed_models",
            None if sandbox.use_inference => "$.sandbox.use_inference",
            None => return Ok(None),
        };
        let Some(Self { config, .. }) = models else { return Err(NoModels::None { place }) };
        let Some(listed) = listed else { return Ok(Some(config.clone())) };
        let is_listed = |name: &str| listed.allowed_models.iter().any(|listed| listed == name);
        let all: Vec<_> = config.models.iter().collect();
        let allowed: Vec<_> =
            all.iter().filter(|model| is_listed(&model.name)).map(|model| (*model).clone()).collect();
        if allowed.is_empty() {
            let known: Vec<_> = all.iter().map(|model| model.name.as_str()).collect();
            return Err(NoModels::Unknown { place, known: known.join(", ") });
        }
        Ok(Some(InferenceConfig { models: allowed.into_iter().collect(), ..config.clone() }))
    }

    /// Serves models by a sandbox's sockets.
    pub(super) fn serve(
        &self,
        config: InferenceConfig,
        (job_id, attempt): (&JobId, u32),
        run_id: &RunId,
        sockets: Vec<OwnedFd>,
    ) -> Result<RunModels, ServeError> {
        let identity = Identity {
            run_id: run_id.clone(),
            attempt,
            billing_account_id: self.billing_account_id.clone(),
            graph_id: GRAPH.to_owned(),
            user_id: None,
            existing_trace_id: None,
            session_id: Some(job_id.to_string()),
            trace_user_id: None,
        };
        let book = Arc::new(Book::of(&self.audit));
        let served = Served::begin_by(&self.proxy, config, identity, &book, sockets)?;
        Ok(RunModels { job_id: job_id.clone(), attempt, run_id: run_id.clone(), served, book })
    }
}

// === impl RunModels ===

impl RunModels {
    /// Ends what is under way, and tells what there has been, once all of it is recorded.
    ///
    /// # Errors
    /// [`BookError`] when not all of it is.
    pub(super) fn end(self) -> Result<InferenceUsage, BookError> {
        let Self { job_id, attempt, run_id, served, book } = self;
        let Spent { calls, tokens, cost } = served.end();
        let usage = InferenceUsage { calls, tokens, cost_usd: cost };
        book.close(ENDED, Some(&run_id), &RunEnded { job_id: job_id.as_str(), attempt, usage: &usage })?;
        Ok(usage)
    }
}
