//! Sessions: sandboxes that stay over many commands, each for as long as it may and somebody uses it.
//!
//! ```text
//! open ─► sandbox ─► exec, pty, … ─► ended: asked for │ too old │ idle │ the node stops │ its sandbox is gone
//! ```
//! A session lives in its node's memory, and its sandbox with its node: neither outlives it.

mod command;
pub(crate) mod pty;

use crate::daemon::{Settings, WallClock};
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_contract::id::{PtyId, RunId, SessionId};
use belljar_contract::worker::assignment::NATIVE_IMAGE;
use belljar_contract::worker::session::{OpenSessionRequest, Session as Told, SessionStatus};
use belljar_contract::worker::telemetry::ContainerKind;
use belljar_sandbox::backend::{Backend, BackendError, Execution, Sandbox, Wanted};
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_store::telemetry::{Made, Telemetry};
use jiff::Timestamp;
use pty::Pty;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The sessions of a node.
pub(crate) struct Sessions {
    backend: NativeBackend,
    settings: Arc<Settings>,
    telemetry: Arc<Telemetry>,
    clock: WallClock,
    open: Mutex<HashMap<String, Slot>>,
    room: Arc<Semaphore>,
}

/// One of them.
pub(crate) struct Session {
    request: OpenSessionRequest,
    run_id: RunId,
    created_at: Timestamp,
    begun: Instant,
    lifetime: Duration,
    idle: Duration,
    used: Mutex<Instant>,
    running: AtomicU64,
    /// Nothing from when it is ended.
    sandbox: Mutex<Option<Box<dyn Sandbox>>>,
    ptys: Mutex<HashMap<String, Arc<Pty>>>,
    /// Room for commands, which is the whole node's.
    room: Arc<Semaphore>,
}

/// Why something can't be done with a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("there is no session {0}, or it has ended")]
    Unknown(SessionId),
    #[error("session {0} is another one: it was opened with something else")]
    Other(SessionId),
    #[error("as many sessions are open as there may be: {0}")]
    TooMany(usize),
    #[error("as many commands run in the session as may: {0}")]
    TooManyCommands(u64),
    #[error("as many commands run in the node's sessions as may: {MOST_COMMANDS_OF_ALL}")]
    NoRoom,
    #[error("as many terminals are open in the session as may be: {0}")]
    TooManyTerminals(usize),
    #[error("there is no terminal {0} in the session")]
    UnknownTerminal(PtyId),
    #[error("the program can't be run")]
    NotStarted(#[source] BackendError),
    #[error("the sandbox can't be made or reached")]
    Sandbox(#[source] BackendError),
    #[error("the terminal can't be used")]
    Terminal(#[source] std::io::Error),
}

/// A place for a session. Who opens the same one at a time waits for the first.
type Slot = Arc<tokio::sync::OnceCell<Arc<Session>>>;

/// Something that is done in a session: while there is any, it is not idle.
pub(crate) struct Use {
    session: Arc<Session>,
}

/// Commands at a time in one session, terminals among them.
const MOST_COMMANDS: u64 = 16;

/// The same in all of them. Each has a thread.
pub const MOST_COMMANDS_OF_ALL: usize = 256;

/// How often it is looked which are over.
const LOOK: Duration = Duration::from_millis(500);

// === impl Sessions ===

impl Sessions {
    pub(crate) fn new(
        launcher: Arc<Launcher>,
        settings: Arc<Settings>,
        telemetry: Arc<Telemetry>,
        clock: WallClock,
    ) -> Self {
        let backend = NativeBackend::new(launcher, settings.state.clone());
        let room = Arc::new(Semaphore::new(MOST_COMMANDS_OF_ALL));
        Self { backend, settings, telemetry, clock, open: Mutex::default(), room }
    }

    /// Opens one, or gives the one that was opened so before; whether it is new.
    pub(crate) async fn open(
        self: &Arc<Self>,
        request: OpenSessionRequest,
    ) -> Result<(Arc<Session>, bool), SessionError> {
        let slot = self.slot(&request.session_id)?;
        let mut is_new = false;
        let made = slot
            .get_or_try_init(async || {
                is_new = true;
                let (sessions, request) = (Arc::clone(self), request.clone());
                let made = tokio::task::spawn_blocking(move || sessions.make(request)).await;
                made.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Create(died.into()))))
            })
            .await;
        let made = match made {
            Ok(session) => Arc::clone(session),
            Err(error) => {
                self.give_up(&request.session_id, &slot);
                return Err(error);
            }
        };
        match made.request == request {
            true => Ok((made, is_new)),
            false => Err(SessionError::Other(request.session_id)),
        }
    }

    /// One that is open.
    pub(crate) fn find(&self, session_id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let slot = self.locked().get(&session_id.key()).cloned();
        let found = slot.and_then(|slot| slot.get().cloned());
        found.ok_or_else(|| SessionError::Unknown(session_id.clone()))
    }

    /// All that are open, the last opened first.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<_> = self.locked().values().filter_map(|slot| slot.get().cloned()).collect();
        all.sort_by_key(|session| std::cmp::Reverse(session.begun));
        all
    }

    /// Ends one; back when nothing of it is left.
    pub(crate) async fn end(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), SessionError> {
        let (sessions, ending) = (Arc::clone(self), Arc::clone(session));
        let ended = tokio::task::spawn_blocking(move || sessions.destroy(&ending)).await;
        ended.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Clear(died.into()))))
    }

    /// Ends all; how many there were.
    pub(crate) async fn end_all(self: &Arc<Self>) -> u64 {
        let mut ended = 0;
        for session in self.all() {
            match self.end(&session).await {
                Ok(()) => ended += 1,
                Err(error) => tracing::warn!(error = crate::chain(&error), "a session is not cleared away"),
            }
        }
        ended
    }

    /// Ends those whose time is over, until it is stopped; then all.
    pub(crate) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            for session in self.all() {
                let Some(why) = session.why_over() else { continue };
                tracing::info!(session_id = %session.request.session_id, why, "a session is ended");
                if let Err(error) = self.end(&session).await {
                    tracing::warn!(error = crate::chain(&error), "a session is not cleared away");
                }
            }
        }
        self.end_all().await;
    }

    fn slot(&self, session_id: &SessionId) -> Result<Slot, SessionError> {
        let most = self.settings.sessions.max;
        let mut open = self.locked();
        let is_full = open.len() >= most;
        match open.entry(session_id.key()) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(Arc::clone(known.get())),
            std::collections::hash_map::Entry::Vacant(_) if is_full => Err(SessionError::TooMany(most)),
            std::collections::hash_map::Entry::Vacant(place) => Ok(Arc::clone(place.insert(Slot::default()))),
        }
    }

    /// Removes a place in which nobody has made anything.
    fn give_up(&self, session_id: &SessionId, slot: &Slot) {
        let mut open = self.locked();
        let is_empty = |known: &Slot| Arc::ptr_eq(known, slot) && known.get().is_none();
        if open.get(&session_id.key()).is_some_and(is_empty) {
            open.remove(&session_id.key());
        }
    }

    fn make(&self, request: OpenSessionRequest) -> Result<Arc<Session>, SessionError> {
        let settings = &self.settings;
        let mut env = request.env.clone();
        env.insert("CYNODE_TASK_ID".to_owned(), request.task_id.to_string());
        env.insert("CYNODE_SESSION_ID".to_owned(), request.session_id.to_string());
        env.insert("CYNODE_WORKSPACE_DIR".to_owned(), "/workspace".to_owned());
        let wanted = Wanted {
            workspace: WorkspaceChoice::Empty,
            lent: Vec::new(),
            env,
            limits: settings.limits,
            required: settings.required.clone(),
            hatches: Vec::new(),
        };
        let sandbox = self.backend.create(wanted).map_err(SessionError::Sandbox)?;
        let of = |asked: Option<u32>, usual: Duration, most: Duration| {
            asked.map_or(usual, |seconds| Duration::from_secs(seconds.into())).min(most)
        };
        let limits = settings.sessions;
        let (created_at, begun) = ((self.clock)(), Instant::now());
        let lifetime = of(request.max_lifetime_seconds, limits.max_lifetime, limits.max_lifetime);
        let session = Session {
            run_id: sandbox.id().clone(),
            created_at: Timestamp::from_millisecond(created_at.as_millisecond()).unwrap_or(created_at),
            begun,
            lifetime,
            idle: of(request.idle_timeout_seconds, limits.idle_timeout, lifetime),
            used: Mutex::new(begun),
            running: AtomicU64::new(0),
            sandbox: Mutex::new(Some(sandbox)),
            ptys: Mutex::default(),
            room: Arc::clone(&self.room),
            request,
        };
        self.telemetry.made(session.made());
        Ok(Arc::new(session))
    }

    fn destroy(&self, session: &Session) -> Result<(), SessionError> {
        // Whoever comes from here on finds none.
        let key = session.request.session_id.key();
        let mut open = self.locked();
        let is_it = |slot: &Slot| slot.get().is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), session));
        if open.get(&key).is_some_and(is_it) {
            open.remove(&key);
        }
        drop(open);
        session.ptys.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let sandbox = session.sandbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(sandbox) = sandbox else { return Ok(()) };
        let gone = sandbox.destroy().map_err(SessionError::Sandbox);
        self.telemetry.ended((self.clock)(), &session.run_id, 0);
        gone
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Session ===

impl Session {
    pub(crate) fn request(&self) -> &OpenSessionRequest {
        &self.request
    }

    /// As it is told of.
    pub(crate) fn told(&self, status: SessionStatus) -> Told {
        let lifetime = jiff::SignedDuration::try_from(self.lifetime).unwrap_or(jiff::SignedDuration::MAX);
        Told {
            task_id: self.request.task_id.clone(),
            session_id: self.request.session_id.clone(),
            run_id: self.run_id.clone(),
            status,
            created_at: self.created_at,
            expires_at: self.created_at.checked_add(lifetime).unwrap_or(Timestamp::MAX),
            idle_timeout_seconds: self.idle.as_secs(),
            running: self.running.load(Ordering::SeqCst),
        }
    }

    /// Begins to do something in it.
    fn begin(self: &Arc<Self>) -> Result<Use, SessionError> {
        // Counted first: of many who come at a time no more are let in than there is room for.
        let using = Use::of(self);
        match self.running.load(Ordering::SeqCst) > MOST_COMMANDS {
            true => Err(SessionError::TooManyCommands(MOST_COMMANDS)),
            false => Ok(using),
        }
    }

    /// Starts a program in it.
    fn start(
        &self,
        (argv, cwd): (Vec<String>, Option<String>),
        stdio: Stdio,
    ) -> Result<Box<dyn Execution>, SessionError> {
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner);
        let sandbox =
            sandbox.as_ref().ok_or_else(|| SessionError::Unknown(self.request.session_id.clone()))?;
        let argv = argv.into_iter().map(Into::into).collect();
        let program = Program { argv, directory: cwd.unwrap_or_else(|| "/workspace".to_owned()) };
        sandbox.exec(&program, stdio).map_err(|error| match error {
            BackendError::NotStarted { .. } => SessionError::NotStarted(error),
            other => SessionError::Sandbox(other),
        })
    }

    /// How much of its time is left.
    fn left(&self) -> Duration {
        self.lifetime.saturating_sub(self.begun.elapsed())
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Why it is to be ended, if it is.
    fn why_over(&self) -> Option<&'static str> {
        let idle_for = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        // A terminal at which nobody does anything is no use of it.
        let terminals = self.ptys.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        let is_idle = self.running.load(Ordering::SeqCst) <= terminals && idle_for >= self.idle;
        match (self.left().is_zero(), is_idle, self.is_gone()) {
            (true, ..) => Some("it was open for as long as it may be"),
            (_, true, _) => Some("nothing was done in it"),
            (.., true) => Some("its sandbox has ended"),
            _ => None,
        }
    }

    fn is_gone(&self) -> bool {
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner);
        sandbox.as_ref().is_some_and(|sandbox| sandbox.ended_by().is_some())
    }

    fn made(&self) -> Made {
        let Self { request, run_id, .. } = self;
        Made {
            at: self.created_at,
            run_id: run_id.clone(),
            name: format!("belljar-{run_id}"),
            kind: ContainerKind::Sandbox,
            runtime: "belljar-native",
            image: NATIVE_IMAGE.to_owned(),
            task_id: Some(request.task_id.clone()),
            job_id: None,
            labels: vec![
                ("cynodeai.task_id", request.task_id.to_string()),
                ("cynodeai.session_id", request.session_id.to_string()),
            ],
        }
    }
}

// === impl Use ===

impl Use {
    fn of(session: &Arc<Session>) -> Self {
        session.running.fetch_add(1, Ordering::SeqCst);
        session.touch();
        Self { session: Arc::clone(session) }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.session.touch();
        self.session.running.fetch_sub(1, Ordering::SeqCst);
    }
}
