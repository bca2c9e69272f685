//! Registry of the sessions that MCP clients can use: those opened by this server and those named when it was started.

use super::failures;
use super::log_shipping::ProgramLogShipper;
use super::web::SessionWebCache;
use crate::backend::SessionSandboxes;
use crate::command::session::open;
use crate::programs::ProgramArguments;
use crate::state;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_files::host_path::HostPath;
use belljar_gateway::access::RuleBasedAccess;
use belljar_policy::access::compiled::{SandboxAccess, WorkspaceAccess};
use belljar_policy::handoff::ApprovedPaths;
use belljar_sandbox::correlation::Correlation;
use belljar_sandbox::lent_paths;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::{self, Session, SessionClient, UncommittedChanges};
use belljar_sandbox::spec::Lent;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Settings of the sessions that clients can open, and what their approvals and pushes may affect.
pub(super) struct SessionOffer {
    /// Sandboxes that make up each session.
    pub(super) quarters: SessionSandboxes,
    /// Directories that a session's workspace can be copied from; the first is the default.
    pub(super) roots: Vec<WorkspaceRoot>,
    pub(super) lent: Vec<Lent>,
    pub(super) env: BTreeMap<String, String>,
    /// Correlation ids that programs in the sandbox find in environment variables: the agent's, and finally their session's.
    pub(super) correlation: Correlation,
    /// Reports programs that tools have run to the server's log.
    pub(super) shipping: ProgramLogShipper,
    /// Policy file for the network access of sessions, if they have any.
    pub(super) egress: Option<PathBuf>,
    /// Allowlist of programs that can be started in sessions, unless the agent's rules are stricter.
    pub(super) programs: ProgramArguments,
    /// Programs that the served tools themselves run.
    pub(super) own_programs: &'static [&'static str],
    pub(super) idle_limit: Duration,
    pub(super) lifetime_limit: Option<Duration>,
    /// Trust that a client's approvals can confer; `None` if clients can't approve anything.
    pub(super) approves: Option<ApprovedPaths>,
    /// Trust that pushes by agents can confer.
    pub(super) pushes: ApprovedPaths,
    /// True if sessions are kept when the server ends.
    pub(super) keeps: bool,
}

/// The agent identity that is served, with the access rules that apply to it.
pub(super) struct ServedIdentity {
    pub(super) house: Arc<RuleBasedAccess>,
    pub(super) identity: Identity,
}

/// Directory that was named when the server was started.
pub(super) struct WorkspaceRoot {
    /// Path as the operator gave it.
    pub(super) said: PathBuf,
    /// Path with symlinks resolved at that time.
    pub(super) real: PathBuf,
}

/// Sessions of an MCP server, and the limits and queues that its clients share.
pub(crate) struct McpSessions {
    pub(super) offer: SessionOffer,
    ruled: Option<ServedIdentity>,
    held: Mutex<KnownSessions>,
    /// Id of the session in which the built-in tools work; `None` until one is opened or named.
    own: Mutex<Option<String>>,
    /// Network access of the server's own web tools.
    pub(super) web: SessionWebCache,
    /// Permits for further sandboxes, of [`MOST_SANDBOXES`].
    room: Arc<Semaphore>,
    /// Permits for further concurrent calls, of [`MOST_CALLS`].
    calls: Semaphore,
}

#[derive(Default)]
struct KnownSessions {
    /// Sessions opened by this server, by id, each with its sandbox permit.
    opened: BTreeMap<String, OwnedSemaphorePermit>,
    /// Ids of the sessions named when the server was started.
    named: BTreeSet<String>,
    /// True once the server is ending: no further session is opened.
    is_over: bool,
}

/// Maximum number of concurrent calls.
const MOST_CALLS: usize = 128;

/// Maximum number of concurrent sandboxes of a server, including those of single commands.
const MOST_SANDBOXES: usize = 16;

// === impl McpSessions ===

impl McpSessions {
    /// Creates a registry that also serves the existing sessions with the ids in `named`.
    pub(super) fn new(offer: SessionOffer, ruled: Option<ServedIdentity>, named: Vec<String>) -> Arc<Self> {
        let held = KnownSessions { named: named.into_iter().collect(), ..KnownSessions::default() };
        let room = Arc::new(Semaphore::new(MOST_SANDBOXES));
        // If exactly one session was named, the built-in tools work in it.
        let own = held.named.first().filter(|_| held.named.len() == 1).cloned();
        Arc::new(Self {
            offer,
            ruled,
            held: Mutex::new(held),
            own: Mutex::new(own),
            web: SessionWebCache::default(),
            room,
            calls: Semaphore::new(MOST_CALLS),
        })
    }

    /// Takes a permit for a call; fails with `LimitExceeded` if [`MOST_CALLS`] calls are in progress.
    pub(super) fn turn(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let message = "too many concurrent calls: wait until some have ended";
        self.calls.try_acquire().map_err(|_| Failure::new(DomainCode::LimitExceeded, message))
    }

    /// Returns a client of the session in which the built-in tools work, for tools of `category`. This is the session that was named,
    /// or one that is opened on first use.
    pub(super) fn own_session(&self, category: Category) -> Result<SessionClient, Failure> {
        // The lock is held while a session is opened, so that concurrent callers share one session.
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = own.as_ref().and_then(|id| self.find(id).ok()) {
            return Ok(client.for_tools_of(category));
        }
        let client = self.open(None)?;
        *own = Some(client.session().id.clone());
        Ok(client.for_tools_of(category))
    }

    /// Returns the session in which the built-in tools work, if it exists already.
    pub(super) fn own_living(&self) -> Option<SessionClient> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        own.and_then(|id| self.find(&id).ok())
    }

    /// Returns the initial workspace that a session opened now would get.
    pub(super) fn choice(&self, directory: Option<&str>) -> Result<WorkspaceChoice, Failure> {
        self.workspace(directory, self.terms().as_ref())
    }

    fn held(&self) -> MutexGuard<'_, KnownSessions> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if tools have, or may later get, network access. Access rules can change while the server runs, so their presence
    /// counts as access.
    pub(super) fn may_reach_out(&self) -> bool {
        self.offer.egress.is_some() || self.ruled.is_some()
    }

    /// Returns the session terms that follow from the served agent's current rules, if there are rules.
    fn terms(&self) -> Option<SandboxAccess> {
        self.ruled.as_ref().map(ServedIdentity::terms)
    }

    /// Returns the current terms of web tools if the agent's levels differ by category; otherwise `None`: the session's terms apply.
    pub(super) fn web_terms(&self) -> Option<SandboxAccess> {
        self.ruled.as_ref().and_then(ServedIdentity::of_web_tools)
    }

    /// Opens a session on a copy of `directory`, or of the default directory.
    pub(super) fn open(&self, directory: Option<&str>) -> Result<SessionClient, Failure> {
        let terms = self.terms();
        let workspace = self.workspace(directory, terms.as_ref())?;
        self.forget_ended();
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            let message = format!("{MOST_SANDBOXES} sandboxes are there already: `close` one first");
            return Err(Failure::new(DomainCode::LimitExceeded, message));
        };
        let session = self
            .offer
            .opening(workspace, terms)
            .and_then(open)
            .map_err(|error| failures::of_opening(&error))?;
        let client =
            session::find(&state::open(), &session.id).map_err(|error| failures::of_session(&error))?;
        let mut held = self.held();
        if held.is_over {
            drop(held);
            let _ = client.end(UncommittedChanges::Kept);
            return Err(Failure::new(DomainCode::Unavailable, "the server is ending"));
        }
        held.opened.insert(session.id, place);
        Ok(client)
    }

    /// Returns the initial workspace of a session: a directory that was named when the server was started, but no subdirectory of one.
    /// Trust of a file depends on its path relative to the directory.
    fn workspace(
        &self,
        directory: Option<&str>,
        terms: Option<&SandboxAccess>,
    ) -> Result<WorkspaceChoice, Failure> {
        let roots = &self.offer.roots;
        let root = match directory {
            None => roots.first(),
            Some(directory) => {
                let is_meant = |root: &&WorkspaceRoot| {
                    [&root.said, &root.real].into_iter().any(|path| path == Path::new(directory))
                };
                Some(roots.iter().find(is_meant).ok_or_else(|| self.elsewhere(directory))?)
            }
        };
        let Some(root) = root else { return Ok(WorkspaceChoice::Empty) };
        if terms.is_some_and(|terms| terms.workspace == WorkspaceAccess::Empty) {
            return match directory {
                None => Ok(WorkspaceChoice::Empty),
                Some(directory) => {
                    let message = format!("{directory} is not for this agent: its workspaces begin empty");
                    Err(Failure::new(DomainCode::PermissionDenied, message))
                }
            };
        }
        // The directory may have been recreated since the server was started.
        let path = lent_paths::resolve(&root.real).ok().filter(HostPath::is_directory);
        path.map(WorkspaceChoice::Copy).ok_or_else(|| {
            let message = format!("{} is no directory any more", crate::output::path(&root.real));
            Failure::new(DomainCode::Unavailable, message)
        })
    }

    fn elsewhere(&self, directory: &str) -> Failure {
        let named: Vec<_> =
            self.offer.roots.iter().map(|root| belljar_policy::untrusted::name(&root.real)).collect();
        let there_are = match named.as_slice() {
            [] => "it was given none (`belljar mcp --workspace DIR`)".to_owned(),
            named => format!("those are {}", named.join(", ")),
        };
        let message = format!("{directory} is none of this server's directories: {there_are}");
        Failure::new(DomainCode::PermissionDenied, message)
    }

    /// Returns the session with this id if clients of this server can use it.
    pub(super) fn find(&self, id: &str) -> Result<SessionClient, Failure> {
        let is_held = {
            let held = self.held();
            held.opened.contains_key(id) || held.named.contains(id)
        };
        if !is_held {
            return Err(failures::no_session(id));
        }
        let client = session::find(&state::open(), id).map_err(|_| {
            self.held().opened.remove(id);
            failures::no_session(id)
        })?;
        self.check(client.session())?;
        Ok(client)
    }

    /// Checks that the agent's current rules still cover the session. Sessions outlive rule changes: the agent loses a session that was
    /// created with more permissions than it has now.
    fn check(&self, session: &Session) -> Result<(), Failure> {
        let (Some(made_for), Some(terms)) = (&session.access, self.terms()) else { return Ok(()) };
        if made_for.is_within(&terms) {
            return Ok(());
        }
        let id = &session.id;
        let message = format!(
            "session {id} was opened with more permissions than the agent has now, so only a person can use it (`belljar session diff {id}`); open another one"
        );
        Err(Failure::new(DomainCode::PermissionDenied, message))
    }

    /// Ends sessions opened here that exceed the agent's current rules and in which a program runs. Idle sessions are kept: they do
    /// nothing, and a person may want to review their changes. Network access ends for any session that is no longer available.
    pub(super) fn enforce(&self) {
        let terms = self.web_terms();
        self.web.end_unless(|id, served_by| served_by == terms.as_ref() && self.find(id).is_ok());
        let opened: Vec<_> = self.held().opened.keys().cloned().collect();
        let state = state::open();
        for client in opened.iter().filter_map(|id| session::find(&state, id).ok()) {
            let is_at_work = || client.describe().is_ok_and(|described| described.running > 0);
            if self.check(client.session()).is_err() && is_at_work() {
                tracing::warn!(
                    session = client.session().id,
                    "the agent's permissions were reduced: programs in the session are killed"
                );
                let _ = client.end(UncommittedChanges::Kept);
            }
        }
    }

    /// Returns all live sessions that clients of this server can use.
    pub(super) fn all(&self) -> Vec<SessionClient> {
        let living = session::list(&state::open());
        let held = self.held();
        let is_held = |client: &SessionClient| {
            let id = &client.session().id;
            held.opened.contains_key(id) || held.named.contains(id)
        };
        living.into_iter().filter(is_held).collect()
    }

    /// Ends a session that was opened here. Returns whether uncommitted changes are kept for a person.
    pub(super) fn close(&self, id: &str) -> Result<bool, Failure> {
        let client = self.find(id)?;
        if self.held().named.contains(id) {
            let message = "it was opened before this server started, and only a person can end it: `belljar session end`";
            return Err(Failure::new(DomainCode::PermissionDenied, message));
        }
        let is_kept = client.end(UncommittedChanges::Kept).map_err(|error| failures::of_session(&error))?;
        self.web.end_unless(|own, _| own != id);
        self.held().opened.remove(id);
        Ok(is_kept)
    }

    /// Releases the permits of sessions that have ended by themselves.
    fn forget_ended(&self) {
        let living: BTreeSet<_> =
            session::list(&state::open()).iter().map(|client| client.session().id.clone()).collect();
        self.held().opened.retain(|id, _| living.contains(id));
    }

    /// Ends all sessions that were opened here, unless they are to be kept, and refuses further ones. Returns the number of kept
    /// sessions.
    pub(super) fn end(&self) -> usize {
        let opened = {
            let mut held = self.held();
            held.is_over = true;
            std::mem::take(&mut held.opened)
        };
        self.web.end_unless(|_, _| false);
        if self.offer.keeps {
            return opened.len();
        }
        let state = state::open();
        let ending = opened.keys().filter_map(|id| session::find(&state, id).ok());
        // Sessions end in parallel, so that the server's shutdown is short.
        let ending: Vec<_> = ending
            .map(|client| std::thread::spawn(move || drop(client.end(UncommittedChanges::Kept))))
            .collect();
        ending.into_iter().for_each(|thread| drop(thread.join()));
        0
    }

    /// Waits, for at most `within`, until all sandbox permits are free.
    pub(super) async fn settled(&self, within: Duration) {
        let all = u32::try_from(MOST_SANDBOXES).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(within, self.room.acquire_many(all)).await;
    }
}

// === impl ServedIdentity ===

impl ServedIdentity {
    fn terms(&self) -> SandboxAccess {
        SandboxAccess::of_agent(&self.house.of(&self.identity).agent.permissions)
    }

    fn of_web_tools(&self) -> Option<SandboxAccess> {
        let stood = self.house.of(&self.identity);
        let permissions = &stood.agent.permissions;
        (!permissions.by_category().is_empty()).then(|| SandboxAccess::of_web_tools(permissions))
    }
}
