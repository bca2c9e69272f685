//! Web hatch for programs in a sandbox: the argument that requests it, and the proxy that serves it.

use crate::configuration::{Configuration, found};
use crate::error::CliError;
use crate::output::Untrusted;
use crate::{state, trusted_files};
use belljar_contract::egress::WebUsage;
use belljar_contract::id::RunId;
use belljar_egress::web::config::WebConfig;
use belljar_execution::policy_file::{OpenPolicy, PolicyChange, PolicyFile, PolicyFileError, PolicyFollower};
use belljar_execution::serving::ServedWeb;
use belljar_execution::tls_interception::TlsInterception;
use belljar_execution::web::WebTotals;
use belljar_journal::RunJournal;
use belljar_policy::access::compiled::{SandboxAccess, WebAccess};
use belljar_policy::egress::EgressPolicy;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::Session;
use belljar_sandbox::state::StateDirectory;
use belljar_tools::builtin::web::reach::RunWebAccess;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct WebArguments {
    /// Policy file for network access from inside, through a proxy: a file with `rules` (docs/guides/web.md)
    #[arg(long, value_name = "FILE", help_heading = "Web")]
    egress: Option<PathBuf>,
}

/// Web proxy of a sandbox. Dropping it ends requests in progress.
pub(crate) struct SandboxWebProxy {
    web: ServedWeb,
    book: Arc<RunJournal>,
    /// Watches the policy file for changes.
    _following: PolicyFollower,
}

// === impl WebArguments ===

impl WebArguments {
    /// Returns the policy, if one was named. It is checked here, before a sandbox is created.
    pub(crate) fn policy(&self, workspace: &WorkspaceChoice) -> Result<Option<OpenPolicy>, CliError> {
        let Some(path) = &self.egress else { return Ok(None) };
        trusted_files::check_outside(path, workspace)?;
        open(of_rules(path)?).map(Some)
    }

    /// Returns the policy for a job: the named file, else the configuration's section, else one that allows nothing. The job itself
    /// states whether it may use the web.
    pub(crate) fn policy_of_job(&self, workspace: &WorkspaceChoice) -> Result<OpenPolicy, CliError> {
        if let Some(policy) = self.policy(workspace)? {
            return Ok(policy);
        }
        let Some(path) = found(None) else { return Ok(OpenPolicy::of_nothing()) };
        trusted_files::check_outside(&path, workspace)?;
        open(of_configuration(&path)?)
    }

    /// Returns the absolute path of the named file, after a check.
    pub(crate) fn file(&self, workspace: &WorkspaceChoice) -> Result<Option<PathBuf>, CliError> {
        let Some(path) = &self.egress else { return Ok(None) };
        self.policy(workspace)?;
        Ok(Some(of_rules(path)?.path().to_owned()))
    }
}

/// Returns the web policy of a session: its policy file, restricted by its access level.
pub(crate) fn reached(session: &Session) -> Result<Option<OpenPolicy>, CliError> {
    match session.access.clone() {
        None => session.egress.as_deref().map(opened).transpose(),
        Some(compiled) => reached_by(session.egress.as_deref(), *compiled),
    }
}

/// Returns the policy of a file, restricted by an access level.
pub(crate) fn reached_by(
    egress: Option<&Path>,
    compiled: SandboxAccess,
) -> Result<Option<OpenPolicy>, CliError> {
    if compiled.web == WebAccess::None {
        return Ok(None);
    }
    let by_level = move |config: WebConfig| {
        // Without a web hatch nothing is served, so nothing is requested.
        let policy = compiled.egress(&config.policy).unwrap_or_default();
        config.with_policy(policy)
    };
    match egress {
        None => Ok(Some(OpenPolicy::of(by_level(WebConfig::default())))),
        Some(path) => open(of_rules(path)?.then(by_level)).map(Some),
    }
}

/// Returns a policy file that contains only a policy.
pub(crate) fn of_rules(path: &Path) -> Result<PolicyFile, CliError> {
    PolicyFile::of_rules(path).map_err(|error| CliError::read(path, error))
}

/// Returns the section `egress` of a configuration as a policy. Without the section nothing is allowed.
pub(crate) fn of_configuration(path: &Path) -> Result<PolicyFile, CliError> {
    let read = |bytes: &[u8]| Ok(Configuration::parse(bytes)?.egress.unwrap_or_default());
    PolicyFile::new(path, Arc::new(read)).map_err(|error| CliError::read(path, error))
}

/// Opens a separate policy file.
pub(crate) fn opened(path: &Path) -> Result<OpenPolicy, CliError> {
    open(of_rules(path)?)
}

/// Reads a separate policy file once, without watching it for changes.
pub(crate) fn read_policy(path: &Path) -> Result<EgressPolicy, CliError> {
    Ok(opened(path)?.live().current().config.policy.clone())
}

fn open(file: PolicyFile) -> Result<OpenPolicy, CliError> {
    // The state records which paths other processes have mounted into sandboxes.
    state::open();
    file.open().map_err(|error| match error {
        PolicyFileError::Read { path, source } => CliError::read(&path, source),
        PolicyFileError::Mistakes { path, source } => CliError::Config { path, source },
    })
}

// === impl SandboxWebProxy ===

impl SandboxWebProxy {
    /// Serves the web on a sandbox's sockets and watches the policy file. Starts threads.
    pub(crate) fn begin(
        (policy, inspection): (OpenPolicy, Option<&TlsInterception>),
        run_id: &RunId,
        state: &StateDirectory,
        sockets: Vec<OwnedFd>,
    ) -> Result<Self, CliError> {
        let book = Arc::new(RunJournal::open(state.path())?);
        policy.first().iter().for_each(|first| book.note(first.kind(), Some(run_id), first));
        let web = ServedWeb::begin((policy.live(), inspection), run_id, &book, sockets)?;
        let (entered, id) = (Arc::clone(&book), run_id.clone());
        let following = policy.follow(move |change| {
            entered.note(change.kind(), Some(&id), change);
            tell(change);
        });
        Ok(Self { web, book, _following: following.map_err(|source| CliError::Runtime { source })? })
    }

    /// Returns the hatch that tools use.
    pub(crate) fn reach(&self) -> RunWebAccess {
        self.web.reach()
    }

    /// Ends requests in progress and, once all are recorded, reports the denied ones.
    pub(crate) fn end(self) -> Result<(), CliError> {
        let seen = self.finish()?;
        tell_denied(&seen.usage);
        Ok(())
    }

    /// Ends requests in progress. Returns the totals once all are recorded.
    pub(crate) fn finish(self) -> Result<WebTotals, CliError> {
        let seen = self.web.end();
        self.book.close("egress_end", None, &serde_json::json!({ "passages_recorded": true }))?;
        Ok(seen)
    }
}

/// Reports requests that were denied or failed to connect.
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

/// Reports a change of the policy file.
pub(crate) fn tell(change: &PolicyChange) {
    match change {
        PolicyChange::Taken { path, generation, .. } => {
            crate::output::errln!(
                "belljar: {path} has changed, and applies from now on (generation {generation})"
            );
        }
        PolicyChange::Refused { path, why, .. } => {
            crate::output::errln!(
                "belljar: {path} has changed, but can't be used; the previous policy still applies: {why}"
            );
        }
    }
}
