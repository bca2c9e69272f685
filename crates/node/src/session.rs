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
use belljar_sandbox::limits::Limit;
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Program;
use belljar_store::telemetry::{Made, Telemetry};
use jiff::Timestamp;
use pty::Pty;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The sessions of a node.
pub(crate) struct Sessions {
    backend: NativeBackend,
    settings: Arc<Settings>,
    telemetry: Arc<Telemetry>,
    clock: WallClock,
    table: Mutex<Table>,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct Table {
    slots: HashMap<String, Slot>,
    /// Nothing is opened any more.
    is_closed: bool,
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
    /// Its sandbox has ended by itself.
    is_gone: AtomicBool,
    /// Nothing from when it is ended. Held only to take it out: whoever starts a program holds it for themselves.
    sandbox: Mutex<Option<Arc<Enclosed>>>,
    /// The same.
    ptys: Mutex<Option<HashMap<String, Arc<Pty>>>>,
    /// Whoever ends it holds this until it is gone.
    ending: tokio::sync::Mutex<()>,
    /// Room for commands, which is the whole node's.
    room: Arc<Semaphore>,
}

/// A sandbox that is shared for as long as programs are started in it.
struct Enclosed(Box<dyn Sandbox>);

/// Why something can't be done with a session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("there is no session {0}, or it has ended")]
    Unknown(SessionId),
    #[error("the node is stopping")]
    Stopping,
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

/// A program that is just being started when its session is ended is waited for no longer.
const LONGEST_START: Duration = Duration::from_secs(60);

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
        Self { backend, settings, telemetry, clock, table: Mutex::default(), room }
    }

    /// Opens one, or gives the one that was opened so before; whether it is new. It is opened to the end, also when nobody
    /// waits for it any more: then it is idle, and ended for that.
    pub(crate) async fn open(
        self: &Arc<Self>,
        request: OpenSessionRequest,
    ) -> Result<(Arc<Session>, bool), SessionError> {
        let sessions = Arc::clone(self);
        let opened = tokio::spawn(async move { sessions.open_to_the_end(request).await }).await;
        opened.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Create(died.into()))))
    }

    async fn open_to_the_end(
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
            .await
            .map(Arc::clone);
        let made = match made {
            Ok(session) => session,
            Err(error) => {
                self.give_up(&request.session_id, slot);
                return Err(error);
            }
        };
        if is_new && self.locked().is_closed {
            // Everything was ended while it was made.
            self.end(&made).await?;
            return Err(SessionError::Stopping);
        }
        match made.request == request {
            true => Ok((made, is_new)),
            false => Err(SessionError::Other(request.session_id)),
        }
    }

    /// One that is open.
    pub(crate) fn find(&self, session_id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let slot = self.locked().slots.get(&session_id.key()).cloned();
        let found = slot.and_then(|slot| slot.get().cloned());
        found.ok_or_else(|| SessionError::Unknown(session_id.clone()))
    }

    /// All that are open, the last opened first.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<_> = self.locked().slots.values().filter_map(|slot| slot.get().cloned()).collect();
        all.sort_by_key(|session| std::cmp::Reverse(session.begun));
        all
    }

    /// Ends one; back when nothing of it is left, whoever has begun to end it.
    pub(crate) async fn end(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), SessionError> {
        let (sessions, session) = (Arc::clone(self), Arc::clone(session));
        // To the end, also when nobody waits for it any more.
        let ended = tokio::spawn(async move {
            let _ending = session.ending.lock().await;
            let ending = Arc::clone(&session);
            let gone = tokio::task::spawn_blocking(move || sessions.destroy(&ending)).await;
            gone.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Clear(died.into()))))
        });
        let ended = ended.await;
        ended.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Clear(died.into()))))
    }

    /// Ends all, at the same time; how many there were.
    pub(crate) async fn end_all(self: &Arc<Self>) -> u64 {
        let mut ending = JoinSet::new();
        for session in self.all() {
            let sessions = Arc::clone(self);
            ending.spawn(async move { sessions.end(&session).await });
        }
        let mut ended = 0;
        while let Some(gone) = ending.join_next().await {
            match gone {
                Ok(Ok(())) => ended += 1,
                Ok(Err(error)) => {
                    tracing::warn!(error = crate::chain(&error), "a session is not cleared away");
                }
                Err(died) => tracing::warn!(error = crate::chain(&died), "a session is not cleared away"),
            }
        }
        ended
    }

    /// Ends those whose time is over, until it is stopped; then all, and those that are just being made end when they are.
    pub(crate) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            for session in self.all() {
                let Some(why) = session.why_over() else { continue };
                tracing::info!(session_id = %session.request.session_id, why, "a session is ended");
                let sessions = Arc::clone(&self);
                // One that takes its time keeps no other waiting.
                tokio::spawn(async move {
                    if let Err(error) = sessions.end(&session).await {
                        tracing::warn!(error = crate::chain(&error), "a session is not cleared away");
                    }
                });
            }
        }
        self.locked().is_closed = true;
        self.end_all().await;
    }

    fn slot(&self, session_id: &SessionId) -> Result<Slot, SessionError> {
        let most = self.settings.sessions.max;
        let mut table = self.locked();
        if table.is_closed {
            return Err(SessionError::Stopping);
        }
        let is_full = table.slots.len() >= most;
        match table.slots.entry(session_id.key()) {
            Entry::Occupied(known) => Ok(Arc::clone(known.get())),
            Entry::Vacant(_) if is_full => Err(SessionError::TooMany(most)),
            Entry::Vacant(place) => Ok(Arc::clone(place.insert(Slot::default()))),
        }
    }

    /// Lets go of a place in which nothing could be made. The last who does removes it: another may be making something.
    fn give_up(&self, session_id: &SessionId, slot: Slot) {
        const IN_THE_TABLE_AND_HERE: usize = 2;
        let mut table = self.locked();
        let is_last = |known: &Slot| {
            Arc::ptr_eq(known, &slot)
                && known.get().is_none()
                && Arc::strong_count(known) <= IN_THE_TABLE_AND_HERE
        };
        if table.slots.get(&session_id.key()).is_some_and(is_last) {
            table.slots.remove(&session_id.key());
        }
        // Under the lock, so that the count above is right for whoever comes next.
        drop(slot);
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
            is_gone: AtomicBool::new(false),
            sandbox: Mutex::new(Some(Arc::new(Enclosed(sandbox)))),
            ptys: Mutex::new(Some(HashMap::new())),
            ending: tokio::sync::Mutex::default(),
            room: Arc::clone(&self.room),
            request,
        };
        self.telemetry.made(session.made());
        Ok(Arc::new(session))
    }

    fn destroy(&self, session: &Session) -> Result<(), SessionError> {
        // Whoever comes from here on finds none.
        let key = session.request.session_id.key();
        let mut table = self.locked();
        let is_it = |slot: &Slot| slot.get().is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), session));
        if table.slots.get(&key).is_some_and(is_it) {
            table.slots.remove(&key);
        }
        drop(table);
        let ptys = session.ptys.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sandbox = session.sandbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(ptys);
        let Some(mut sandbox) = sandbox else { return Ok(()) };
        // Somebody may just start a program. They have let go of it when that has begun, or failed.
        let given_up = Instant::now() + LONGEST_START;
        let gone = loop {
            match Arc::try_unwrap(sandbox) {
                Ok(Enclosed(sandbox)) => break sandbox.destroy().map_err(SessionError::Sandbox),
                Err(shared) if Instant::now() < given_up => sandbox = shared,
                // With the last who holds it, it goes.
                Err(shared) => {
                    drop(shared);
                    break Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.telemetry.ended((self.clock)(), &session.run_id, 0);
        gone
    }

    fn locked(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sandbox = sandbox.ok_or_else(|| SessionError::Unknown(self.request.session_id.clone()))?;
        let argv = argv.into_iter().map(Into::into).collect();
        let program = Program { argv, directory: cwd.unwrap_or_else(|| "/workspace".to_owned()) };
        sandbox.0.exec(&program, stdio).map_err(|error| match error {
            BackendError::NotStarted { .. } => SessionError::NotStarted(error),
            BackendError::Gone => {
                self.is_gone.store(true, Ordering::SeqCst);
                SessionError::Unknown(self.request.session_id.clone())
            }
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
        let terminals = self.ptys.lock().unwrap_or_else(PoisonError::into_inner);
        let terminals = terminals.as_ref().map_or(0, HashMap::len) as u64;
        let is_idle = self.running.load(Ordering::SeqCst) <= terminals && idle_for >= self.idle;
        let is_gone = self.is_gone.load(Ordering::SeqCst) || self.ended_by().is_some();
        match (self.left().is_zero(), is_idle, is_gone) {
            (true, ..) => Some("it was open for as long as it may be"),
            (_, true, _) => Some("nothing was done in it"),
            (.., true) => Some("its sandbox has ended"),
            _ => None,
        }
    }

    /// The limit that has ended its sandbox, if one has.
    fn ended_by(&self) -> Option<Limit> {
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sandbox.and_then(|sandbox| sandbox.0.ended_by())
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
