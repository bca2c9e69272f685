//! The sessions that clients have: opened here or named when the server was started, and no others.

use super::failures;
use super::hatch::Queue;
use super::shipping::Shipping;
use super::web::OwnWeb;
use crate::backend::Quarters;
use crate::command::session::open;
use crate::programs::ProgramArguments;
use crate::state;
use belljar_confine::plan::HostPath;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_gateway::access::HouseAccess;
use belljar_policy::access::compiled::{Compiled, WorkspaceTerms};
use belljar_policy::handoff::Trust;
use belljar_sandbox::correlation::Correlation;
use belljar_sandbox::given;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::{self, Client, Session, Uncommitted};
use belljar_sandbox::spec::Lent;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// What clients may have.
pub(super) struct Offer {
    /// The sandboxes that each session has.
    pub(super) quarters: Quarters,
    /// The directories of which sessions may begin with a copy; the first is the usual one.
    pub(super) roots: Vec<Root>,
    pub(super) lent: Vec<Lent>,
    pub(super) env: BTreeMap<String, String>,
    /// The ids that programs inside find in variables: that of the agent, and in the end that of their session.
    pub(super) correlation: Correlation,
    /// What reports programs that tools have run.
    pub(super) shipping: Shipping,
    /// The file with the policy by which sessions reach the web.
    pub(super) egress: Option<PathBuf>,
    /// The only programs that can be started in them, where rules say nothing less.
    pub(super) programs: ProgramArguments,
    /// What the tools that are served run themselves.
    pub(super) own_programs: &'static [&'static str],
    pub(super) idle_limit: Duration,
    pub(super) lifetime_limit: Option<Duration>,
    /// What may gain trust by what a client approves; nothing if it may approve nothing.
    pub(super) approves: Option<Trust>,
    /// What may gain trust by what agents push.
    pub(super) pushes: Trust,
    /// Whether sessions stay when the server ends.
    pub(super) keeps: bool,
}

/// Whoever is served, with the rules by which they are judged.
pub(super) struct Ruled {
    pub(super) house: Arc<HouseAccess>,
    pub(super) identity: Identity,
}

/// A directory that was named when the server was started.
pub(super) struct Root {
    /// As it was named.
    pub(super) said: PathBuf,
    /// Where that has led, without links.
    pub(super) real: PathBuf,
}

/// Where clients come with what they want.
pub(crate) struct Desk {
    pub(super) offer: Offer,
    ruled: Option<Ruled>,
    held: Mutex<Held>,
    /// The id of the session in which the built-in tools work, once there is one.
    own: Mutex<Option<String>>,
    /// What its tools reach of the web.
    pub(super) web: OwnWeb,
    /// Where its tools wait for the host's git.
    pub(super) git: Queue,
    /// How many sandboxes there may still be.
    room: Arc<Semaphore>,
    /// How many calls there may still be at once.
    calls: Semaphore,
}

#[derive(Default)]
struct Held {
    /// Those that were opened here, each with its place.
    opened: BTreeMap<String, OwnedSemaphorePermit>,
    /// Those that were named.
    named: BTreeSet<String>,
    /// Whether the server is ending.
    is_over: bool,
}

/// As many calls are under way at once.
const MOST_CALLS: usize = 128;

/// As many sandboxes a server has at once, those of single commands included.
const MOST_SANDBOXES: usize = 16;

// === impl Desk ===

impl Desk {
    /// One that also knows the sessions of these ids.
    pub(super) fn new(offer: Offer, ruled: Option<Ruled>, named: Vec<String>) -> Arc<Self> {
        let held = Held { named: named.into_iter().collect(), ..Held::default() };
        let room = Arc::new(Semaphore::new(MOST_SANDBOXES));
        // Whoever names the one there is means that one.
        let own = held.named.first().filter(|_| held.named.len() == 1).cloned();
        Arc::new(Self {
            offer,
            ruled,
            held: Mutex::new(held),
            own: Mutex::new(own),
            web: OwnWeb::default(),
            git: Queue::default(),
            room,
            calls: Semaphore::new(MOST_CALLS),
        })
    }

    /// A place among the calls that are under way.
    pub(super) fn turn(&self) -> Result<SemaphorePermit<'_>, Failure> {
        let message = "too many calls are under way: wait for some";
        self.calls.try_acquire().map_err(|_| Failure::new(DomainCode::LimitExceeded, message))
    }

    /// The session in which the built-in tools work, for those of that category: the one that was named, or one of their own, opened
    /// when it is first needed.
    pub(super) fn own_session(&self, category: Category) -> Result<Client, Failure> {
        // Held while one is opened: those who call at once work in the same.
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = own.as_ref().and_then(|id| self.find(id).ok()) {
            return Ok(client.for_tools_of(category));
        }
        let client = self.open(None)?;
        *own = Some(client.session().id.clone());
        Ok(client.for_tools_of(category))
    }

    /// The session in which the built-in tools work, if there is one already.
    pub(super) fn own_living(&self) -> Option<Client> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        own.and_then(|id| self.find(&id).ok())
    }

    /// What a session begins with that would be opened now.
    pub(super) fn choice(&self, directory: Option<&str>) -> Result<WorkspaceChoice, Failure> {
        self.workspace(directory, self.terms().as_ref())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether tools may come to reach anything of the web: where rules say so, that may change.
    pub(super) fn may_reach_out(&self) -> bool {
        self.offer.egress.is_some() || self.ruled.is_some()
    }

    /// What the rules of whoever is served mean for sessions as of now, if there are any.
    fn terms(&self) -> Option<Compiled> {
        self.ruled.as_ref().map(Ruled::terms)
    }

    /// What tools of the web may reach as of now, where the agent's levels differ by category; otherwise it is what their session may.
    pub(super) fn web_terms(&self) -> Option<Compiled> {
        self.ruled.as_ref().and_then(Ruled::of_web_tools)
    }

    /// Opens a session on a copy of the directory that was named, or of the usual one.
    pub(super) fn open(&self, directory: Option<&str>) -> Result<Client, Failure> {
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
            let _ = client.end(Uncommitted::Kept);
            return Err(Failure::new(DomainCode::Unavailable, "the server is ending"));
        }
        held.opened.insert(session.id, place);
        Ok(client)
    }

    /// What a session begins with: one of the directories that whoever started the server has named, and nothing below one. What may
    /// gain trust in a directory is known by where it lies in it.
    fn workspace(
        &self,
        directory: Option<&str>,
        terms: Option<&Compiled>,
    ) -> Result<WorkspaceChoice, Failure> {
        let roots = &self.offer.roots;
        let root = match directory {
            None => roots.first(),
            Some(directory) => {
                let is_meant = |root: &&Root| {
                    [&root.said, &root.real].into_iter().any(|path| path == Path::new(directory))
                };
                Some(roots.iter().find(is_meant).ok_or_else(|| self.elsewhere(directory))?)
            }
        };
        let Some(root) = root else { return Ok(WorkspaceChoice::Empty) };
        if terms.is_some_and(|terms| terms.workspace == WorkspaceTerms::Empty) {
            return match directory {
                None => Ok(WorkspaceChoice::Empty),
                Some(directory) => {
                    let message = format!("{directory} is not for this agent: its workspaces begin empty");
                    Err(Failure::new(DomainCode::PermissionDenied, message))
                }
            };
        }
        // It may have been made anew since the server was started.
        let path = given::resolve(&root.real).ok().filter(HostPath::is_directory);
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

    /// The session of that id, if it is one of those that clients have.
    pub(super) fn find(&self, id: &str) -> Result<Client, Failure> {
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

    /// Sessions outlast rules: one that was made when its agent could do more is none for it any more.
    fn check(&self, session: &Session) -> Result<(), Failure> {
        let (Some(made_for), Some(terms)) = (&session.access, self.terms()) else { return Ok(()) };
        if made_for.is_within(&terms) {
            return Ok(());
        }
        let id = &session.id;
        let message = format!(
            "session {id} was made when this agent could do more: it is a person's now (`belljar session diff {id}`); open another"
        );
        Err(Failure::new(DomainCode::PermissionDenied, message))
    }

    /// Ends the sessions that were opened here, were made when their agent could do more, and in which something runs. Those in which nothing
    /// does hold what a person may want to look at, and do nothing. What is reached for one that is none any more ends in any case.
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
                    "its agent may do less by now: what runs there ends"
                );
                let _ = client.end(Uncommitted::Kept);
            }
        }
    }

    /// All of them that live.
    pub(super) fn all(&self) -> Vec<Client> {
        let living = session::list(&state::open());
        let held = self.held();
        let is_held = |client: &Client| {
            let id = &client.session().id;
            held.opened.contains_key(id) || held.named.contains(id)
        };
        living.into_iter().filter(is_held).collect()
    }

    /// Ends one that was opened here. Returns whether uncommitted changes are kept for a person.
    pub(super) fn close(&self, id: &str) -> Result<bool, Failure> {
        let client = self.find(id)?;
        if self.held().named.contains(id) {
            let message = "it was there before this server, and a person ends it: `belljar session end`";
            return Err(Failure::new(DomainCode::PermissionDenied, message));
        }
        let is_kept = client.end(Uncommitted::Kept).map_err(|error| failures::of_session(&error))?;
        self.web.end_unless(|own, _| own != id);
        self.held().opened.remove(id);
        Ok(is_kept)
    }

    /// Gives up the places of those that have ended by themselves.
    fn forget_ended(&self) {
        let living: BTreeSet<_> =
            session::list(&state::open()).iter().map(|client| client.session().id.clone()).collect();
        self.held().opened.retain(|id, _| living.contains(id));
    }

    /// Ends all that were opened here, unless they are kept, and lets nothing more be opened. How many are kept.
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
        // Whoever waits for the server to end has little patience.
        let ending: Vec<_> =
            ending.map(|client| std::thread::spawn(move || drop(client.end(Uncommitted::Kept)))).collect();
        ending.into_iter().for_each(|thread| drop(thread.join()));
        0
    }

    /// Waits until nothing is being opened or run any more, for as long as that.
    pub(super) async fn settled(&self, within: Duration) {
        let all = u32::try_from(MOST_SANDBOXES).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(within, self.room.acquire_many(all)).await;
    }
}

// === impl Ruled ===

impl Ruled {
    fn terms(&self) -> Compiled {
        Compiled::of_agent(&self.house.of(&self.identity).agent.permissions)
    }

    fn of_web_tools(&self) -> Option<Compiled> {
        let stood = self.house.of(&self.identity);
        let permissions = &stood.agent.permissions;
        (!permissions.by_category().is_empty()).then(|| Compiled::of_web_tools(permissions))
    }
}
