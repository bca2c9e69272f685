//! The web for what runs in a sandbox: the argument that asks for it, and the proxy that serves it.

use crate::configuration::read_bytes;
use crate::error::CliError;
use belljar_contract::id::RunId;
use belljar_contract::yaml::{self, Log};
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::live::LivePolicy;
use belljar_node::book::Book;
use belljar_node::inspection::Inspection;
use belljar_node::serving::ServedWeb;
use belljar_sandbox::state::State;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct WebArguments {
    /// What may be reached of the web from inside, by a proxy; a file with `rules` (docs/egress.md)
    #[arg(long, value_name = "FILE", help_heading = "Web")]
    egress: Option<PathBuf>,
}

/// The web that is served. Dropping it ends what is under way.
pub(crate) struct Served {
    web: ServedWeb,
    book: Arc<Book>,
}

// === impl WebArguments ===

impl WebArguments {
    /// What may be reached, if anything may; checked before anything is made.
    pub(crate) fn policy(&self) -> Result<Option<WebConfig>, CliError> {
        self.egress.as_deref().map(read_policy).transpose()
    }
}

/// Reads a policy of its own.
pub(crate) fn read_policy(path: &Path) -> Result<WebConfig, CliError> {
    let bytes = File::open(path).and_then(read_bytes).map_err(|error| CliError::read(path, error))?;
    let mut log = Log::default();
    let policy = yaml::parse(&bytes, &mut log).map(|node| WebConfig::read(&node, &mut log));
    log.finish().map_err(|source| CliError::Config { path: path.to_owned(), source })?;
    // Nothing is read of a document that is none, and that has been noted.
    Ok(policy.unwrap_or_default())
}

// === impl Served ===

impl Served {
    pub(crate) fn begin(
        (config, inspection): (WebConfig, Option<&Inspection>),
        run_id: &RunId,
        state: &State,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, CliError> {
        let book = Arc::new(Book::open(state.path())?);
        let web = ServedWeb::begin((&Arc::new(LivePolicy::new(config)), inspection), run_id, &book, sockets)?;
        Ok(Self { web, book })
    }

    /// Ends what is under way, and tells what was denied, once all of it is recorded.
    pub(crate) fn end(self) -> Result<(), CliError> {
        let denials = self.web.end();
        for denial in &denials.listed {
            let needed =
                denial.needed.as_ref().map_or(String::new(), |rule| format!("; it takes the rule {rule}"));
            anstream::eprintln!("belljar: {} was denied ({}){needed}", denial.destination, denial.reason);
        }
        if denials.unlisted > 0 {
            anstream::eprintln!("belljar: {} more were denied; the audit has them", denials.unlisted);
        }
        self.book.close("egress_end", None, &serde_json::json!({ "passages_recorded": true }))?;
        Ok(())
    }
}
