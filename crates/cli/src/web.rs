//! The web for what runs in a sandbox: the argument that asks for it, and the proxy that serves it.

use crate::configuration::{Configuration, found};
use crate::error::CliError;
use crate::output::Untrusted;
use crate::{obeyed, state};
use belljar_contract::egress::WebUsage;
use belljar_contract::id::RunId;
use belljar_egress::web::config::WebConfig;
use belljar_node::inspection::Inspection;
use belljar_node::run_journal::Book;
use belljar_node::serving::ServedWeb;
use belljar_node::web::Seen;
use belljar_node::web::policy_file::{Change, Following, OpenPolicy, PolicyFile, PolicyFileError};
use belljar_policy::access::compiled::{Compiled, WebTerms};
use belljar_policy::egress::EgressPolicy;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::Session;
use belljar_sandbox::state::State;
use belljar_tools::builtin::web::reach::Reach;
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
    /// The file with the policy is followed.
    _following: Following,
}

// === impl WebArguments ===

impl WebArguments {
    /// What may be reached, if anything may; checked before anything is made.
    pub(crate) fn policy(&self, workspace: &WorkspaceChoice) -> Result<Option<OpenPolicy>, CliError> {
        let Some(path) = &self.egress else { return Ok(None) };
        obeyed::check_outside(path, workspace)?;
        open(of_rules(path)?).map(Some)
    }

    /// The same for a job, which says itself whether it may reach anything: what was named, or what the configuration says, or
    /// nothing.
    pub(crate) fn policy_of_job(&self, workspace: &WorkspaceChoice) -> Result<OpenPolicy, CliError> {
        if let Some(policy) = self.policy(workspace)? {
            return Ok(policy);
        }
        let Some(path) = found(None) else { return Ok(OpenPolicy::of_nothing()) };
        obeyed::check_outside(&path, workspace)?;
        open(of_configuration(&path)?)
    }

    /// The file that was named, whatever the working directory will be; checked, too.
    pub(crate) fn file(&self, workspace: &WorkspaceChoice) -> Result<Option<PathBuf>, CliError> {
        let Some(path) = &self.egress else { return Ok(None) };
        self.policy(workspace)?;
        Ok(Some(of_rules(path)?.path().to_owned()))
    }
}

/// What a session reaches: what its file says, and what its level of access makes of that.
pub(crate) fn reached(session: &Session) -> Result<Option<OpenPolicy>, CliError> {
    match session.access.clone() {
        None => session.egress.as_deref().map(opened).transpose(),
        Some(compiled) => reached_by(session.egress.as_deref(), *compiled),
    }
}

/// What is reached by a file and what a level of access makes of that.
pub(crate) fn reached_by(egress: Option<&Path>, compiled: Compiled) -> Result<Option<OpenPolicy>, CliError> {
    if compiled.web == WebTerms::None {
        return Ok(None);
    }
    let by_level = move |config: WebConfig| {
        // Without a way out nothing is served, and so nothing is asked for.
        let policy = compiled.egress(&config.policy).unwrap_or_default();
        config.with_policy(policy)
    };
    match egress {
        None => Ok(Some(OpenPolicy::of(by_level(WebConfig::default())))),
        Some(path) => open(of_rules(path)?.then(by_level)).map(Some),
    }
}

/// A file that is a policy and nothing else.
pub(crate) fn of_rules(path: &Path) -> Result<PolicyFile, CliError> {
    PolicyFile::of_rules(path).map_err(|error| CliError::read(path, error))
}

/// The section of a configuration. Without it nothing is allowed.
pub(crate) fn of_configuration(path: &Path) -> Result<PolicyFile, CliError> {
    let read = |bytes: &[u8]| Ok(Configuration::parse(bytes)?.egress.unwrap_or_default());
    PolicyFile::new(path, Arc::new(read)).map_err(|error| CliError::read(path, error))
}

/// A policy of its own, read.
pub(crate) fn opened(path: &Path) -> Result<OpenPolicy, CliError> {
    open(of_rules(path)?)
}

/// Reads a policy of its own, for those who don't follow it.
pub(crate) fn read_policy(path: &Path) -> Result<EgressPolicy, CliError> {
    Ok(opened(path)?.live().current().config.policy.clone())
}

fn open(file: PolicyFile) -> Result<OpenPolicy, CliError> {
    // What other processes of the same state lend to sandboxes is known by it.
    state::open();
    file.open().map_err(|error| match error {
        PolicyFileError::Read { path, source } => CliError::read(&path, source),
        PolicyFileError::Mistakes { path, source } => CliError::Config { path, source },
    })
}

// === impl Served ===

impl Served {
    /// Serves it by a sandbox's sockets, and follows the policy from then on. There are threads from then on.
    pub(crate) fn begin(
        (policy, inspection): (OpenPolicy, Option<&Inspection>),
        run_id: &RunId,
        state: &State,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, CliError> {
        let book = Arc::new(Book::open(state.path())?);
        policy.first().iter().for_each(|first| book.note(first.kind(), Some(run_id), first));
        let web = ServedWeb::begin((policy.live(), inspection), run_id, &book, sockets)?;
        let (entered, id) = (Arc::clone(&book), run_id.clone());
        let following = policy.follow(move |change| {
            entered.note(change.kind(), Some(&id), change);
            tell(change);
        });
        Ok(Self { web, book, _following: following.map_err(|source| CliError::Runtime { source })? })
    }

    /// By what tools reach it.
    pub(crate) fn reach(&self) -> Reach {
        self.web.reach()
    }

    /// Ends what is under way, and tells what was denied, once all of it is recorded.
    pub(crate) fn end(self) -> Result<(), CliError> {
        let seen = self.finish()?;
        tell_denied(&seen.usage);
        Ok(())
    }

    /// Ends what is under way. What there has been, once all of it is recorded.
    pub(crate) fn finish(self) -> Result<Seen, CliError> {
        let seen = self.web.end();
        self.book.close("egress_end", None, &serde_json::json!({ "passages_recorded": true }))?;
        Ok(seen)
    }
}

/// Tells what was denied or not reached.
pub(crate) fn tell_denied(usage: &WebUsage) {
    for denied in &usage.denied {
        let needed =
            denied.rule_needed.as_ref().map_or(String::new(), |rule| format!("; it takes the rule {rule}"));
        let (host, port, reason) = (Untrusted(&denied.host), denied.port, &denied.reason);
        let became = if denied.is_unreached() { "not reached" } else { "denied" };
        crate::output::errln!("belljar: {host}:{port} was {became} ({reason}){}", Untrusted(&needed));
    }
    if usage.denied_unlisted > 0 {
        crate::output::errln!("belljar: {} more were denied; the audit has them", usage.denied_unlisted);
    }
}

/// Tells what has become of a policy's file.
pub(crate) fn tell(change: &Change) {
    match change {
        Change::Taken { path, generation, .. } => {
            crate::output::errln!(
                "belljar: {path} has changed, and counts from now on (generation {generation})"
            );
        }
        Change::Refused { path, why, .. } => {
            crate::output::errln!("belljar: {path} has changed, and doesn't count: {why}");
        }
    }
}
