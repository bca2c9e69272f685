//! Models for jobs and sessions: the models that each may call, and the proxy that serves them in its sandbox.

use belljar_contract::id::{JobId, RunId, SessionId, UserId};
use belljar_contract::inference::CallRecord;
use belljar_contract::job::context::{Inference, InferenceSource};
use belljar_contract::usage::UsageTotals;
use belljar_contract::worker::assignment::SandboxRequest;
use belljar_contract::worker::session::OpenSessionRequest;
use belljar_egress::identity::{CallMetadata, Identity};
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::inference::models::Models;
use belljar_execution::serving::{HatchThread, ServeError, ServedModels};
use belljar_journal::{RunJournal, RunJournalError};
use belljar_store::audit::AuditLog;
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError, RwLock};

/// The models of a node, if it has any. Every call is in the audit of the node's state.
pub(crate) struct NodeModels {
    /// Replaced when the configuration is read again. Runs keep the models that they began with.
    config: RwLock<Option<Arc<InferenceConfig>>>,
    billing_account_id: String,
    audit: Arc<AuditLog>,
    /// Maximum number of calls of a run that are listed one by one.
    listed_calls: usize,
}

/// Models that one run may call, served on its own sockets.
pub(crate) struct RunModels {
    caller: ModelCaller,
    run_id: RunId,
    served: ServedModels,
    book: Arc<RunJournal>,
}

/// Owner of a run.
#[derive(Debug, Clone)]
pub(crate) enum ModelCaller {
    Job { job_id: JobId, attempt: u32 },
    Session { session_id: SessionId },
}

/// The person that a run's calls are made for, and the trace that they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CallOwner {
    pub(crate) user_id: Option<UserId>,
    pub(crate) trace_id: Option<String>,
}

/// Reasons why the requested models can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModelsError {
    /// The node has no models.
    #[error("{place}: this node has no models: its configuration has no `inference`")]
    None { place: &'static str },
    /// The node has none of the models that the job allows.
    #[error("{place}: this node has none of these models; it has: {known}")]
    Unknown { place: &'static str, known: String },
    /// None of the models that the job allows has the source that it requires.
    #[error(
        "$.sandbox.job_spec.inference.source: none of the models that the job allows has a provider {}",
        match .wanted { InferenceSource::Worker => "on this node (`worker`)", InferenceSource::ApiEgress => "elsewhere (`api_egress`)" }
    )]
    Elsewhere { wanted: InferenceSource },
    /// The node lacks the credential of a provider of these models. The node's log has the reason.
    #[error("this node has no credential for the provider {provider:?} of these models")]
    NoCredential { provider: String },
}

/// Audit record of a run's end, with its usage.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum RunEnded<'e, U> {
    Job { job_id: &'e str, attempt: u32, usage: &'e U },
    Session { session_id: &'e str, usage: &'e U },
}

/// Reasons why a job can call none of the configured models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelMismatch {
    /// The job allows none of them.
    Unknown {
        /// Names of the configured models.
        known: String,
    },
    /// The models that the job allows have another source than it requires.
    Elsewhere {
        /// The required source.
        source: InferenceSource,
    },
}

/// Returns the models that a job may call: those that it allows, of the source that it requires.
///
/// # Errors
/// [`ModelMismatch`] if there is none.
pub fn of_job(all: &Models, wanted: &Inference) -> Result<Models, ModelMismatch> {
    let is_allowed = |name: &str| wanted.allowed_models.iter().any(|allowed| allowed == name);
    let allowed: Models = all.iter().filter(|model| is_allowed(&model.name)).cloned().collect();
    if allowed.iter().next().is_none() {
        let known: Vec<_> = all.iter().map(|model| model.name.as_str()).collect();
        return Err(ModelMismatch::Unknown { known: known.join(", ") });
    }
    let Some(source) = wanted.source else { return Ok(allowed) };
    let models = allowed.of_source(source);
    if models.iter().next().is_some() { Ok(models) } else { Err(ModelMismatch::Elsewhere { source }) }
}

/// Models of one run, before they are served.
pub(crate) struct ModelService {
    /// Caller of the models.
    pub(crate) caller: ModelCaller,
    /// Models that it may call.
    pub(crate) config: InferenceConfig,
    /// User and trace of its calls.
    pub(crate) owner: CallOwner,
}

// === impl NodeModels ===

impl NodeModels {
    pub(crate) fn new(
        config: Option<InferenceConfig>,
        billing_account_id: String,
        audit: &Arc<AuditLog>,
        listed_calls: usize,
    ) -> Self {
        let (config, audit) = (RwLock::new(config.map(Arc::new)), Arc::clone(audit));
        Self { config, billing_account_id, audit, listed_calls }
    }

    /// Replaces the models. Runs that have begun keep theirs.
    pub(crate) fn replace(&self, config: Option<InferenceConfig>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config.map(Arc::new);
    }

    /// The names of all models, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        let config = self.current();
        config.iter().flat_map(|config| config.models.iter()).map(|model| model.name.clone()).collect()
    }

    /// Returns the models that a sandbox may call: all of them for a command that requests models; for a runner's job, those
    /// on its list that the node has, of the source that it requires.
    pub(crate) fn allowed(&self, sandbox: &SandboxRequest) -> Result<Option<InferenceConfig>, ModelsError> {
        let listed = sandbox.job_spec.as_ref().and_then(|spec| spec.job.inference.as_ref());
        let place = match listed {
            Some(_) => "$.sandbox.job_spec.inference.allowed_models",
            None if sandbox.use_inference => "$.sandbox.use_inference",
            None => return Ok(None),
        };
        let config = self.all(place)?;
        let Some(listed) = listed else { return Ok(Some((*config).clone())) };
        let models = of_job(&config.models, listed).map_err(|unfit| match unfit {
            ModelMismatch::Unknown { known } => ModelsError::Unknown { place, known },
            ModelMismatch::Elsewhere { source } => ModelsError::Elsewhere { wanted: source },
        })?;
        Ok(Some(InferenceConfig { models, ..(*config).clone() }))
    }

    /// Returns the models that a session may call: all of them, if it requests models.
    pub(crate) fn allowed_in_session(
        &self,
        request: &OpenSessionRequest,
    ) -> Result<Option<InferenceConfig>, ModelsError> {
        match request.use_inference {
            true => self.all("$.use_inference").map(|config| Some((*config).clone())),
            false => Ok(None),
        }
    }

    /// Checks that the node has the credentials of these models, before a sandbox is made for a run that calls them. Waits
    /// for a credential that comes from a command.
    pub(crate) fn check_credentials(config: Option<&InferenceConfig>) -> Result<(), ModelsError> {
        let checked = config.map_or(Ok(()), |config| config.models.check_credentials());
        checked.map_err(|error| {
            tracing::error!(error = crate::chain(&error), "models can't be called");
            ModelsError::NoCredential { provider: error.provider }
        })
    }

    fn all(&self, place: &'static str) -> Result<Arc<InferenceConfig>, ModelsError> {
        self.current().ok_or(ModelsError::None { place })
    }

    fn current(&self) -> Option<Arc<InferenceConfig>> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Serves models on a sandbox's sockets, on the thread of its run.
    pub(crate) fn serve(
        &self,
        thread: &Arc<HatchThread>,
        service: ModelService,
        run_id: &RunId,
        sockets: Vec<OwnedFd>,
    ) -> Result<RunModels, ServeError> {
        let ModelService { caller, config, owner } = service;
        let account = self.billing_account_id.clone();
        let identity = Identity::new(run_id.clone(), caller.attempt(), account, caller.graph().to_owned());
        let metadata = CallMetadata {
            user_id: owner.user_id.map(String::from),
            existing_trace_id: owner.trace_id.or_else(|| caller.trace_id()),
            session_id: Some(caller.id()),
            trace_user_id: None,
        };
        let identity = identity.with_metadata(metadata);
        let book = Arc::new(RunJournal::of(&self.audit, self.listed_calls));
        let served = ServedModels::begin_on(thread, (config, identity), &book, sockets)?;
        Ok(RunModels { caller, run_id: run_id.clone(), served, book })
    }
}

// === impl RunModels ===

impl RunModels {
    /// Ends calls that are under way. Returns the usage once all of it is recorded, or an error if it could not be; and the
    /// calls up to the listing limit.
    pub(crate) fn end(self) -> (Result<UsageTotals, RunJournalError>, Vec<CallRecord>) {
        let Self { caller, run_id, served, book } = self;
        served.end();
        let usage = book.usage();
        let calls = book.calls().listed;
        let closed = book.close(caller.end_kind(), Some(&run_id), &caller.ended(&usage));
        (closed.map(|_| usage), calls)
    }
}

// === impl ModelCaller ===

impl ModelCaller {
    /// Returns the graph name that billing records have.
    fn graph(&self) -> &'static str {
        match self {
            Self::Job { .. } => "sandbox:job",
            Self::Session { .. } => "sandbox:session",
        }
    }

    /// Returns the kind of the audit record of the run's end.
    fn end_kind(&self) -> &'static str {
        match self {
            Self::Job { .. } => "job_run_ended",
            Self::Session { .. } => "session_ended",
        }
    }

    fn id(&self) -> String {
        match self {
            Self::Job { job_id, .. } => job_id.to_string(),
            Self::Session { session_id } => session_id.to_string(),
        }
    }

    /// Returns the id of the trace that the node makes of a job, in hexadecimal; `None` for sessions, which have no trace.
    fn trace_id(&self) -> Option<String> {
        match self {
            Self::Job { job_id, .. } => Some(job_id.key().replace('-', "")),
            Self::Session { .. } => None,
        }
    }

    fn attempt(&self) -> u32 {
        match self {
            Self::Job { attempt, .. } => *attempt,
            Self::Session { .. } => 1,
        }
    }

    pub(crate) fn ended<'e, U>(&'e self, usage: &'e U) -> RunEnded<'e, U> {
        match self {
            Self::Job { job_id, attempt } => {
                RunEnded::Job { job_id: job_id.as_str(), attempt: *attempt, usage }
            }
            Self::Session { session_id } => RunEnded::Session { session_id: session_id.as_str(), usage },
        }
    }
}
