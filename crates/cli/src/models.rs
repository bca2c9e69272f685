//! Models for what runs in a sandbox: the arguments that ask for them, and the proxy that serves them.

use crate::error::CliError;
use belljar_contract::id::RunId;
use belljar_contract::inference::{CALL, CallRecord};
use belljar_contract::yaml::{self, LARGEST_BYTES, Log, Members};
use belljar_egress::http1::limits::Times;
use belljar_egress::identity::Identity;
use belljar_egress::inference::budget::{Budget, Spent};
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::inference::ledger::Ledger;
use belljar_egress::inference::proxy::{Listener, Proxy, Serving};
use belljar_egress::inference::run::Run;
use belljar_sandbox::config::Config;
use belljar_sandbox::state::State;
use belljar_store::audit::{AuditLog, Event, folder_in};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, clap::Args)]
pub(crate) struct ModelArguments {
    /// A model that may be called from inside, as the configuration names it; may be said more than once
    #[arg(long = "model", value_name = "NAME", help_heading = HEADING)]
    models: Vec<String>,
    /// The configuration with models and their providers [default: BELLJAR_CONFIG, or config.yaml in the user's or the
    /// system's configuration]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    config: Option<PathBuf>,
    /// Who pays for calls, as their provider knows them
    #[arg(long, value_name = "ACCOUNT", default_value = "local", help_heading = HEADING)]
    billing_account: String,
}

/// Models that are served. Dropping it ends their calls.
pub(crate) struct Served {
    run: Arc<Run>,
    book: Arc<Book>,
    serving: Option<Serving>,
    _proxy: Proxy,
}

/// Writes calls into the audit.
struct Book {
    log: AuditLog,
    is_broken: Arc<AtomicBool>,
}

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
            billing_account_id: self.billing_account.clone(),
            graph_id: "sandbox:exec".to_owned(),
            user_id: None,
            existing_trace_id: None,
            session_id: None,
            trace_user_id: None,
        };
        identity.check().map_err(|error| CliError::usage(error.to_string()))?;
        let log = AuditLog::open(&folder_in(state.path()))?;
        let book = Arc::new(Book { log, is_broken: Arc::default() });
        let ledger = Arc::clone(&book) as Arc<dyn Ledger>;
        let budget = Budget::new(config.budget);
        let times = Times::default();
        let run = Arc::new(Run { identity, models: config.models, budget, times, ledger });
        let serve = |source| CliError::Serve { source };
        let sockets: Result<Vec<Listener>, _> = sockets.into_iter().map(Listener::from_descriptor).collect();
        let proxy = Proxy::start().map_err(serve)?;
        let serving = proxy.serve(Arc::clone(&run), sockets.map_err(serve)?).map_err(serve)?;
        Ok(Served { run, book, serving: Some(serving), _proxy: proxy })
    }
}

// === impl Served ===

impl Served {
    /// Ends what is under way, and tells what there has been, once all of it is recorded.
    pub(crate) fn end(mut self) -> Result<(), CliError> {
        if let Some(serving) = self.serving.take() {
            serving.end();
        }
        let Spent { calls, tokens, cost } = self.run.budget.spent();
        if calls > 0 {
            let plural = if calls == 1 { "" } else { "s" };
            anstream::eprintln!(
                "belljar: {calls} call{plural} of models, {tokens} tokens, ${cost:.6} as reported"
            );
        }
        self.book.finish()
    }
}

// === impl Book ===

impl Book {
    /// Waits until everything is on the disk.
    fn finish(&self) -> Result<(), CliError> {
        let marker = serde_json::json!({"calls_recorded": true});
        let event = Event::new("inference_end", None, &marker);
        let written = event.is_ok_and(|event| self.log.append(event).is_ok());
        match written && self.is_sound() {
            true => Ok(()),
            false => Err(CliError::NotRecorded),
        }
    }
}

impl Ledger for Book {
    fn record(&self, record: CallRecord) {
        let is_broken = Arc::clone(&self.is_broken);
        match Event::new(CALL, Some(&record.run_id), &record) {
            Ok(event) => self.log.submit(event, move |written| {
                if written.is_err() {
                    is_broken.store(true, Ordering::Relaxed);
                }
            }),
            Err(_) => is_broken.store(true, Ordering::Relaxed),
        }
    }

    fn is_sound(&self) -> bool {
        !self.is_broken.load(Ordering::Relaxed)
    }
}

/// The configuration that was named, or that there is.
pub(crate) fn configuration(named: Option<&PathBuf>) -> Result<(PathBuf, InferenceConfig), CliError> {
    let path = named.cloned().or_else(found).ok_or_else(|| {
        CliError::usage("it takes a configuration that says who answers for models: --config FILE".to_owned())
    })?;
    let config = read(&path)?;
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

/// Reads the section about models; the others are checked, too.
fn read(path: &Path) -> Result<InferenceConfig, CliError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| CliError::read(path, error))?;
    let read = file.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::read(path, error))?;
    let mut log = Log::default();
    let config = yaml::parse(&bytes, &mut log).and_then(|root| {
        let mut members = Members::open(&root, &mut log)?;
        Config::read_if_there(&mut members);
        let models = members.required("inference", InferenceConfig::read);
        members.finish();
        Some(models)
    });
    let mistakes = |mistakes| CliError::Config { path: path.to_owned(), source: mistakes };
    log.finish().map_err(mistakes)?;
    Ok(config.unwrap_or_default())
}
