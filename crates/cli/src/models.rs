//! Models for what runs in a sandbox: the arguments that ask for them, and the proxy that serves them.

use crate::error::CliError;
use belljar_contract::id::RunId;
use belljar_contract::yaml::{self, LARGEST_BYTES, Log, Members};
use belljar_egress::identity::Identity;
use belljar_egress::inference::budget::Spent;
use belljar_egress::inference::config::InferenceConfig;
use belljar_node::agent::catalogue::Catalogue;
use belljar_node::book::Book;
use belljar_sandbox::config::Config;
use belljar_sandbox::state::State;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
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
            CliError::usage(format!("{} has no model {:?}; it has: {known}", path.display(), unknown.name))
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

    /// Serves them by a sandbox's sockets.
    pub(crate) fn serve(
        &self,
        config: InferenceConfig,
        run_id: &RunId,
        state: &State,
        sockets: Vec<OwnedFd>,
    ) -> Result<Served, CliError> {
        let identity = Identity {
            run_id: run_id.clone(),
            attempt: 0,
            billing_account_id: self.billing_account().unwrap_or(LOCAL).to_owned(),
            graph_id: "sandbox:exec".to_owned(),
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
            anstream::eprintln!(
                "belljar: {calls} call{plural} of models, {tokens} tokens, ${cost:.6} as reported"
            );
        }
        self.book.close("inference_end", None, &serde_json::json!({ "calls_recorded": true }))?;
        Ok(())
    }
}

/// The configuration that was named, or that there is.
pub(crate) fn configuration(named: Option<&PathBuf>) -> Result<(PathBuf, InferenceConfig), CliError> {
    let path = named.cloned().or_else(found).ok_or_else(|| {
        CliError::usage("it takes a configuration that says who answers for models: --config FILE".to_owned())
    })?;
    let (config, _) = read(&path, true)?;
    Ok((path, config))
}

/// The configuration that there is.
fn found() -> Option<PathBuf> {
    let explicit = std::env::var_os("BELLJAR_CONFIG").map(PathBuf::from);
    let users = || {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        config.or_else(|| std::env::home_dir().map(|home| home.join(".config")))
    };
    let below = |folder: PathBuf| Some(folder.join("belljar/config.yaml")).filter(|path| path.exists());
    explicit.or_else(|| below(users()?)).or_else(|| below("/etc".into()))
}

/// Reads the sections about models and agents; the others are checked, too.
fn read(path: &Path, is_required: bool) -> Result<(InferenceConfig, Catalogue), CliError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| CliError::read(path, error))?;
    let read = file.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::read(path, error))?;
    let mut log = Log::default();
    let config = yaml::parse(&bytes, &mut log).and_then(|root| {
        let mut members = Members::open(&root, &mut log)?;
        Config::read_if_there(&mut members);
        let models = match is_required {
            true => members.required("inference", InferenceConfig::read),
            false => members.section("inference", InferenceConfig::read),
        };
        let agents = members.section("agents", Catalogue::read);
        members.finish();
        Some((models, agents))
    });
    let mistakes = |mistakes| CliError::Config { path: path.to_owned(), source: mistakes };
    log.finish().map_err(mistakes)?;
    Ok(config.unwrap_or_default())
}

/// The agents that there are: those of a configuration, which win, and those that are built in.
pub(crate) fn catalogue(config: Option<&Path>) -> Result<Catalogue, CliError> {
    let built_in = Catalogue::built_in();
    match config.map(Path::to_owned).or_else(found) {
        Some(path) => Ok(built_in.with(read(&path, false)?.1)),
        None => Ok(built_in),
    }
}
