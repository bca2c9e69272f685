//! Models for programs in a sandbox: the arguments that select them, and the proxy that serves them.

use crate::configuration::{self, found};
use crate::error::CliError;
use crate::grants::{GrantArguments, GrantInputError, PresentedGrant};
use crate::usage_text;
use belljar_contract::id::RunId;
use belljar_contract::inference::CallOutcome;
use belljar_contract::job::Job;
use belljar_contract::job::context::InferenceSource;
use belljar_contract::worker::traceparent::TraceParent;
use belljar_egress::identity::{CallMetadata, Identity, is_plain};
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::grant::{ExecutionPermit, GrantError, GrantPresentation};
use belljar_journal::RunJournal;
use belljar_node::models::{ModelMismatch, of_job};
use belljar_sandbox::state::StateDirectory;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct ModelArguments {
    /// Model that programs inside can call, by its name in the configuration; can be given more than once
    #[arg(long = "model", value_name = "NAME", help_heading = HEADING)]
    models: Vec<String>,
    /// The configuration with models and their providers [default: BELLJAR_CONFIG, or config.yaml in the user's or the
    /// system's configuration]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    config: Option<PathBuf>,
    /// The account that pays for calls, as their provider knows it; it takes a grant of that account [default: that of the grant, else
    /// local]
    #[arg(long, value_name = "ACCOUNT", help_heading = HEADING)]
    billing_account: Option<String>,
    #[command(flatten)]
    grant: GrantArguments,
    #[command(flatten)]
    metadata: MetadataArguments,
}

/// Metadata that providers record with a call.
#[derive(Debug, Default, clap::Args)]
struct MetadataArguments {
    /// End user of the calls, as the provider records it [default: the user of the grant, if it names one]
    #[arg(long, value_name = "USER", help_heading = HEADING)]
    user_id: Option<String>,
    /// The trace that calls belong to, as their provider records it [default: the trace of the variable TRACEPARENT]
    #[arg(long, value_name = "TRACE", help_heading = HEADING)]
    trace_id: Option<String>,
    /// User of the trace, as the provider records it [default: that of --user-id]
    #[arg(long, value_name = "USER", help_heading = HEADING)]
    trace_user_id: Option<String>,
    /// The session that calls belong to [default: the id of the run]
    #[arg(long, value_name = "SESSION", help_heading = HEADING)]
    session_id: Option<String>,
}

/// Model proxy of a run. Dropping it ends its calls.
pub(crate) struct ModelProxy {
    models: belljar_execution::serving::ServedModels,
    book: Arc<RunJournal>,
    run_id: RunId,
}

/// Billing account of runs without a grant.
pub(crate) const LOCAL: &str = "local";

/// Graph id of a command in a sandbox.
pub(crate) const EXEC: &str = "sandbox:exec";

const HEADING: &str = "Models";

/// Decides whether a grant covers a run, and records the decision.
pub(crate) fn entitle(
    grant: PresentedGrant,
    graph_id: &str,
    run_id: &RunId,
    state: &StateDirectory,
) -> Result<ExecutionPermit, CliError> {
    state.create().map_err(|source| CliError::read(state.path(), source))?;
    let book = RunJournal::open(state.path())?;
    let (graph_id, run_id) = (graph_id.to_owned(), run_id.clone());
    let presented = GrantPresentation { grant, graph_id, run_id, now: Timestamp::now() };
    ExecutionPermit::of(presented, &book).map_err(|error| match error {
        GrantError::Refused { refusal } => CliError::NotGranted { refusal },
        GrantError::Book(error) => error.into(),
    })
}

/// Models of one sandbox, before they are served.
pub(crate) struct ModelService<'s> {
    /// Models that it may call.
    pub(crate) config: InferenceConfig,
    /// Graph that providers get.
    pub(crate) graph_id: &'s str,
    /// Permission by a grant, which sets the billing account.
    pub(crate) granted: Option<&'s ExecutionPermit>,
}

// === impl ModelArguments ===

impl ModelArguments {
    /// Returns the selected models with their configuration; `None` if none was selected. Credentials and metadata are checked here, before
    /// a sandbox is created.
    pub(crate) fn chosen(&self) -> Result<Option<InferenceConfig>, CliError> {
        if self.models.is_empty() {
            return Ok(None);
        }
        let (path, config) = configuration(self.config.as_ref())?;
        let models = config.models.only(&self.models).map_err(|unknown| {
            let known = unknown.known.join(", ");
            CliError::usage(format!(
                "{} has no model {:?}; it has: {known}",
                crate::output::path(&path),
                unknown.name
            ))
        })?;
        models.check_credentials()?;
        self.metadata.check()?;
        Ok(Some(InferenceConfig { models, ..config }))
    }

    /// Returns the metadata of the calls: user, trace and session.
    pub(crate) fn metadata(&self) -> CallMetadata {
        self.metadata.read()
    }

    /// Returns the model that was named first.
    pub(crate) fn first(&self) -> Option<&str> {
        self.models.first().map(String::as_str)
    }

    /// Returns the path of the configuration named by `--config`.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns the presented grant, if there is one. `--billing-account` and `--user-id` must agree with it.
    pub(crate) fn grant(&self) -> Result<Option<PresentedGrant>, GrantInputError> {
        let shown = self.grant.shown()?;
        let account = self.billing_account.as_deref();
        let refused = |message: String| Err(CliError::usage(message).into());
        let grant = match (&shown, account) {
            (None, None) | (Some(Err(_)), _) => return Ok(shown),
            (None, Some(account)) => {
                return refused(format!(
                    "--billing-account {account} takes a grant of that account: --grant ID, as `belljar grant issue` issues it"
                ));
            }
            (Some(Ok(grant)), _) => grant,
        };
        if let Some(account) = account.filter(|account| *account != grant.billing_account_id) {
            let of_grant = &grant.billing_account_id;
            return refused(format!("--billing-account {account}, but the grant is of {of_grant}"));
        }
        if let (Some(user), Some(of_grant)) = (&self.metadata.user_id, &grant.user_id)
            && user != of_grant.as_str()
        {
            return refused(format!("--user-id {user}, but the grant is used on behalf of {of_grant}"));
        }
        Ok(shown)
    }

    /// Returns the selected models, checked against the job before a sandbox is created. A model that the job doesn't allow is a usage
    /// error, and so is any model for a job without `inference`.
    pub(crate) fn chosen_of_job(&self, job: &Job) -> Result<Option<InferenceConfig>, CliError> {
        let Some(config) = self.chosen()? else { return Ok(None) };
        let refused = |why: String| CliError::usage(format!("--model: {why}"));
        let Some(wanted) = &job.inference else {
            return Err(refused("the job has no `inference`: it calls no models".to_owned()));
        };
        let models = of_job(&config.models, wanted).map_err(|unfit| match unfit {
            ModelMismatch::Unknown { .. } => {
                refused(format!("the job allows {} alone", wanted.allowed_models.join(", ")))
            }
            ModelMismatch::Elsewhere { source: InferenceSource::Worker } => refused(
                "the job wants models on this machine (`inference.source`: `worker`), and their providers are elsewhere".to_owned(),
            ),
            ModelMismatch::Elsewhere { source: InferenceSource::ApiEgress } => refused(
                "the job wants models elsewhere (`inference.source`: `api_egress`), and their providers are on this machine".to_owned(),
            ),
        })?;
        Ok(Some(InferenceConfig { models, ..config }))
    }

    /// Serves the models on a sandbox's sockets.
    pub(crate) fn serve(
        &self,
        service: ModelService<'_>,
        run_id: &RunId,
        state: &StateDirectory,
        sockets: Vec<OwnedFd>,
    ) -> Result<ModelProxy, CliError> {
        let ModelService { config, graph_id, granted } = service;
        let account = granted.map_or(LOCAL, ExecutionPermit::billing_account_id).to_owned();
        let user_id = granted.and_then(ExecutionPermit::user_id).map(str::to_owned);
        let identity = Identity::new(run_id.clone(), 0, account, graph_id.to_owned());
        let metadata = self.metadata();
        let user_id = user_id.or_else(|| metadata.user_id.clone());
        let identity = identity.with_metadata(CallMetadata { user_id, ..metadata });
        identity.check().map_err(|error| CliError::usage(error.to_string()))?;
        let book = Arc::new(RunJournal::open(state.path())?);
        let models = belljar_execution::serving::ServedModels::begin(config, identity, &book, sockets)?;
        Ok(ModelProxy { models, book, run_id: run_id.clone() })
    }
}

// === impl ModelProxy ===

impl ModelProxy {
    /// Ends calls in progress, reports the usage and failed calls, and closes the record.
    pub(crate) fn end(self) -> Result<(), CliError> {
        let Self { models, book, run_id } = self;
        models.end();
        let usage = book.usage();
        if usage.calls > 0 || usage.unended_calls > 0 {
            let (calls, amounts) = (usage_text::calls(&usage), usage_text::amounts(&usage));
            crate::output::errln!("belljar: {calls} of models, as reported: {amounts}");
        }
        tell_failed(&book);
        book.close("inference_end", Some(&run_id), &serde_json::json!({ "usage": usage }))?;
        Ok(())
    }
}

/// Reports calls that no provider answered, by error code. Until now only the sandbox has received these errors.
fn tell_failed(book: &RunJournal) {
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    for call in book.calls().listed {
        if let (CallOutcome::Failed { code }, None) = (&call.outcome, call.upstream_status) {
            *failed.entry(code.as_str().to_owned()).or_default() += 1;
        }
    }
    for (code, calls) in failed {
        let plural = if calls == 1 { "" } else { "s" };
        crate::output::errln!("belljar: {calls} call{plural} of models without an answer: {code}");
    }
}

// === impl MetadataArguments ===

impl MetadataArguments {
    /// Checks that each value is valid in a header: 1 to 256 visible ASCII characters.
    fn check(&self) -> Result<(), CliError> {
        let said = [
            ("--user-id", &self.user_id),
            ("--trace-id", &self.trace_id),
            ("--trace-user-id", &self.trace_user_id),
            ("--session-id", &self.session_id),
        ];
        for (flag, value) in said {
            if let Some(value) = value.as_ref().filter(|value| !is_plain(value)) {
                let message = format!("{flag}: {value:?} must be 1 to 256 visible characters of ASCII");
                return Err(CliError::usage(message));
            }
        }
        Ok(())
    }

    fn read(&self) -> CallMetadata {
        // W3C Trace Context: an invalid `traceparent` is ignored.
        let of_environment = || {
            let parent = std::env::var("TRACEPARENT").ok().and_then(|text| TraceParent::parse(&text).ok());
            parent.map(|parent| parent.trace_id().to_owned())
        };
        CallMetadata {
            user_id: self.user_id.clone(),
            existing_trace_id: self.trace_id.clone().or_else(of_environment),
            session_id: self.session_id.clone(),
            trace_user_id: self.trace_user_id.clone(),
        }
    }
}

/// Reads the section `inference` of the configuration in use. A missing file or section is a usage error.
pub(crate) fn configuration(named: Option<&PathBuf>) -> Result<(PathBuf, InferenceConfig), CliError> {
    let path = found(named.map(PathBuf::as_path)).ok_or_else(|| {
        CliError::usage("a configuration with model providers is needed: --config FILE".to_owned())
    })?;
    match configuration::read(&path)?.inference {
        Some(config) => Ok((path, config)),
        None => Err(CliError::usage(format!(
            "{} has no section `inference`, which configures model providers",
            crate::output::path(&path)
        ))),
    }
}
