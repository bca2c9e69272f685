//! Models for what runs in a sandbox: the arguments that ask for them, and the proxy that serves them.

use crate::configuration::{Configuration, found};
use crate::error::CliError;
use belljar_contract::id::RunId;
use belljar_contract::job::Job;
use belljar_contract::job::context::InferenceSource;
use belljar_egress::identity::Identity;
use belljar_egress::inference::budget::Spent;
use belljar_egress::inference::config::InferenceConfig;
use belljar_node::book::Book;
use belljar_node::models::{Unfit, of_job};
use belljar_sandbox::state::State;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct ModelArguments {
    /// A model that may be called from inside, as the configuration names it; may be said more than once
    #[arg(long = "model", value_name = "NAME", help_heading = HEADING)]
    models: Vec<String>,
    /// The configuration with models and their providers [default: BELLJAR_CONFIG, or config.yaml in the user's or the
    /// system's configuration]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    config: Option<PathBuf>,
    /// Who pays for calls, as their provider knows them [default: local]
    #[arg(long, value_name = "ACCOUNT", help_heading = HEADING)]
    billing_account: Option<String>,
}

/// Models that are served. Dropping it ends their calls.
pub(crate) struct Served {
    models: belljar_node::serving::Served,
    book: Arc<Book>,
}

/// Who pays where nobody is named.
pub(crate) const LOCAL: &str = "local";

const HEADING: &str = "Models";

// === impl ModelArguments ===

impl ModelArguments {
    /// The models that were asked for, if any were; checked before anything is made.
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
        Ok(Some(InferenceConfig { models, ..config }))
    }

    /// The one that was named first.
    pub(crate) fn first(&self) -> Option<&str> {
        self.models.first().map(String::as_str)
    }

    /// The configuration that was named.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Who pays, if that was said.
    pub(crate) fn billing_account(&self) -> Option<&str> {
        self.billing_account.as_deref()
    }

    /// The models that were asked for and that a job may call; checked before anything is made. A job without `inference` calls none.
    pub(crate) fn chosen_of_job(&self, job: &Job) -> Result<Option<InferenceConfig>, CliError> {
        let Some(config) = self.chosen()? else { return Ok(None) };
        let refused = |why: String| CliError::usage(format!("--model: {why}"));
        let Some(wanted) = &job.inference else {
            return Err(refused("the job has no `inference`: it calls no models".to_owned()));
        };
        let models = of_job(&config.models, wanted).map_err(|unfit| match unfit {
            Unfit::Unknown { .. } => {
                refused(format!("the job allows {} alone", wanted.allowed_models.join(", ")))
            }
            Unfit::Elsewhere { source: InferenceSource::Worker } => refused(
                "the job wants models on this machine (`inference.source`: `worker`), and their providers are elsewhere".to_owned(),
            ),
            Unfit::Elsewhere { source: InferenceSource::ApiEgress } => refused(
                "the job wants models elsewhere (`inference.source`: `api_egress`), and their providers are on this machine".to_owned(),
            ),
        })?;
        Ok(Some(InferenceConfig { models, ..config }))
    }

    /// Serves them by a sandbox's sockets to what is known to their provider by that name.
    pub(crate) fn serve(
        &self,
        (config, graph_id): (InferenceConfig, &str),
        run_id: &RunId,
        state: &State,
        sockets: Vec<OwnedFd>,
    ) -> Result<Served, CliError> {
        let identity = Identity {
            run_id: run_id.clone(),
            attempt: 0,
            billing_account_id: self.billing_account().unwrap_or(LOCAL).to_owned(),
            graph_id: graph_id.to_owned(),
            user_id: None,
            existing_trace_id: None,
            session_id: None,
            trace_user_id: None,
        };
        identity.check().map_err(|error| CliError::usage(error.to_string()))?;
        let book = Arc::new(Book::open(state.path())?);
        let models = belljar_node::serving::Served::begin(config, identity, &book, sockets)?;
        Ok(Served { models, book })
    }
}

// === impl Served ===

impl Served {
    /// Ends what is under way, and tells what there has been, once all of it is recorded.
    pub(crate) fn end(self) -> Result<(), CliError> {
        let Spent { calls, tokens, cost } = self.models.end();
        if calls > 0 {
            let plural = if calls == 1 { "" } else { "s" };
            crate::output::errln!(
                "belljar: {calls} call{plural} of models, {tokens} tokens, ${cost:.6} as reported"
            );
        }
        self.book.close("inference_end", None, &serde_json::json!({ "calls_recorded": true }))?;
        Ok(())
    }
}

/// Who answers for models, by the configuration that was named or that there is.
pub(crate) fn configuration(named: Option<&PathBuf>) -> Result<(PathBuf, InferenceConfig), CliError> {
    let path = found(named.map(PathBuf::as_path)).ok_or_else(|| {
        CliError::usage("it takes a configuration that says who answers for models: --config FILE".to_owned())
    })?;
    match Configuration::read(&path)?.inference {
        Some(config) => Ok((path, config)),
        None => Err(CliError::usage(format!(
            "{} has no section `inference`, which says who answers for models",
            crate::output::path(&path)
        ))),
    }
}
