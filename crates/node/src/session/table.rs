//! The sessions of a node: opens, finds and ends them.

use super::command_log::CommandLog;
use super::{MOST_COMMANDS_OF_ALL, Session, SessionError, SharedSandbox};
use crate::access_rules::SandboxPermissions;
use crate::images::Image;
use crate::job::NodeState;
use crate::models::{CallOwner, ModelCaller, ModelService, NodeModels, RunModels};
use crate::web::{RunPolicy, RunWeb};
use belljar_contract::id::{RunId, SessionId};
use belljar_contract::path::WORKSPACE;
use belljar_contract::worker::session::OpenSessionRequest;
use belljar_egress::identity::RunOwner;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::serving::HatchThread;
use belljar_sandbox::backend::{Backend, BackendError, Sandbox, SandboxRequest};
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::hatch::{Hatch, by_hatch};
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The sessions of a node.
pub(crate) struct Sessions {
    workplace: Arc<NodeState>,
    /// Makes sandboxes of the node's own programs.
    native: NativeBackend,
    table: Mutex<SessionTable>,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct SessionTable {
    slots: HashMap<String, SessionSlot>,
    /// True once no session is opened any more.
    is_closed: bool,
}

/// Resources of a session.
pub(crate) struct SessionProvision {
    pub(crate) image: Image,
    /// Models that may be called in it, and the owner of its calls.
    pub(crate) models: Option<InferenceConfig>,
    pub(crate) owner: CallOwner,
    pub(crate) terms: Option<SandboxPermissions>,
}

/// A slot for a session. Concurrent requests to open the same session wait for the first one.
type SessionSlot = Arc<tokio::sync::OnceCell<Arc<Session>>>;

/// Maximum time for which the end of a session waits for a program that is being started.
const LONGEST_START: Duration = Duration::from_secs(60);

/// Interval at which sessions are checked for their end.
const LOOK: Duration = Duration::from_millis(500);

// === impl Sessions ===

impl Sessions {
    pub(crate) fn new(workplace: Arc<NodeState>) -> Self {
        let native = NativeBackend::new(Arc::clone(&workplace.launcher), workplace.settings.state.clone());
        let room = Arc::new(Semaphore::new(MOST_COMMANDS_OF_ALL));
        Self { workplace, native, table: Mutex::default(), room }
    }

    /// Opens a session, or returns the open one with an equal request; true if it is new. A session whose caller has gone is
    /// completed nevertheless, and then ended as idle.
    pub(crate) async fn open(
        self: &Arc<Self>,
        request: OpenSessionRequest,
        with: SessionProvision,
    ) -> Result<(Arc<Session>, bool), SessionError> {
        let sessions = Arc::clone(self);
        let opened = tokio::spawn(async move { sessions.open_to_the_end(request, with).await }).await;
        opened.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Create(died.into()))))
    }

    async fn open_to_the_end(
        self: &Arc<Self>,
        request: OpenSessionRequest,
        with: SessionProvision,
    ) -> Result<(Arc<Session>, bool), SessionError> {
        let slot = self.slot(&request.session_id)?;
        let mut is_new = false;
        let made = slot
            .get_or_try_init(async || {
                is_new = true;
                let (sessions, request) = (Arc::clone(self), request.clone());
                let made = tokio::task::spawn_blocking(move || sessions.make(request, with)).await;
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
            // The node began to stop while the session was being opened.
            self.end(&made).await?;
            return Err(SessionError::Stopping);
        }
        match canonical(&made.request) == canonical(&request) {
            true => Ok((made, is_new)),
            false => Err(SessionError::Other(request.session_id)),
        }
    }

    /// Finds an open session.
    pub(crate) fn find(&self, session_id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let slot = self.locked().slots.get(&session_id.key()).cloned();
        let found = slot.and_then(|slot| slot.get().cloned());
        found.ok_or_else(|| SessionError::Unknown(session_id.clone()))
    }

    /// Finds an open session for an operation, if its agent's current permissions cover it.
    pub(crate) fn find_allowed(&self, session_id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let found = self.find(session_id)?;
        match found.is_allowed(self.workplace.tools.house()) {
            true => Ok(found),
            // The sweep ends the session.
            false => Err(SessionError::Demoted(session_id.clone())),
        }
    }

    /// Returns all open sessions, the latest first.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let mut all: Vec<_> = self.locked().slots.values().filter_map(|slot| slot.get().cloned()).collect();
        all.sort_by_key(|session| std::cmp::Reverse(session.begun));
        all
    }

    /// Ends a session; returns when its sandbox is gone, also if another caller has begun to end it.
    pub(crate) async fn end(self: &Arc<Self>, session: &Arc<Session>) -> Result<(), SessionError> {
        let (sessions, session) = (Arc::clone(self), Arc::clone(session));
        // In a task of its own, so that it is completed if the caller goes away.
        let ended = tokio::spawn(async move {
            let _ending = session.ending.lock().await;
            let ending = Arc::clone(&session);
            let gone = tokio::task::spawn_blocking(move || sessions.destroy(&ending)).await;
            gone.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Clear(died.into()))))
        });
        let ended = ended.await;
        ended.unwrap_or_else(|died| Err(SessionError::Sandbox(BackendError::Clear(died.into()))))
    }

    /// Ends all sessions concurrently; returns their number.
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

    /// Ends sessions that are over, until the node stops; then ends all of them. Sessions that are being opened then end when
    /// they are complete.
    pub(crate) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(LOOK) => {}
            }
            for (session, why) in self.all_over().await {
                tracing::info!(session_id = %session.request.session_id, why, "a session is ended");
                let sessions = Arc::clone(&self);
                // In a task of its own, so that one slow end delays no other.
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

    /// Returns the sessions that are to be ended, with the reasons. A container engine's slow answer about a sandbox doesn't
    /// delay this: it is taken into account at a later check.
    async fn all_over(&self) -> Vec<(Arc<Session>, &'static str)> {
        let all = self.all();
        for session in all.iter().filter(|session| !session.is_looked_at.swap(true, Ordering::SeqCst)) {
            let session = Arc::clone(session);
            tokio::task::spawn_blocking(move || {
                if session.ended_by().is_some() {
                    session.is_gone.store(true, Ordering::SeqCst);
                }
                session.is_looked_at.store(false, Ordering::SeqCst);
            });
        }
        let house = self.workplace.tools.house();
        all.into_iter().filter_map(|session| session.why_over(house).map(|why| (session, why))).collect()
    }

    fn slot(&self, session_id: &SessionId) -> Result<SessionSlot, SessionError> {
        let most = self.workplace.settings.sessions.max;
        let mut table = self.locked();
        if table.is_closed {
            return Err(SessionError::Stopping);
        }
        let is_full = table.slots.len() >= most;
        match table.slots.entry(session_id.key()) {
            Entry::Occupied(known) => Ok(Arc::clone(known.get())),
            Entry::Vacant(_) if is_full => Err(SessionError::TooMany(most)),
            Entry::Vacant(place) => Ok(Arc::clone(place.insert(SessionSlot::default()))),
        }
    }

    /// Releases a slot in which no session could be made. The last holder removes it, as another caller may be making the
    /// session.
    fn give_up(&self, session_id: &SessionId, slot: SessionSlot) {
        const IN_THE_TABLE_AND_HERE: usize = 2;
        let mut table = self.locked();
        let is_last = |known: &SessionSlot| {
            Arc::ptr_eq(known, &slot)
                && known.get().is_none()
                && Arc::strong_count(known) <= IN_THE_TABLE_AND_HERE
        };
        if table.slots.get(&session_id.key()).is_some_and(is_last) {
            table.slots.remove(&session_id.key());
        }
        // Under the lock, so that the count above is right for the next caller.
        drop(slot);
    }

    fn make(
        &self,
        request: OpenSessionRequest,
        with: SessionProvision,
    ) -> Result<Arc<Session>, SessionError> {
        let SessionProvision { image, models, owner, terms } = with;
        let workplace = &self.workplace;
        NodeModels::check_credentials(models.as_ref()).map_err(SessionError::NoModels)?;
        let hatches = hatches(&request, models.is_some());
        let way = request
            .wants_web()
            .then(|| workplace.web.way(terms.as_ref().map(SandboxPermissions::compiled)))
            .transpose();
        let run_owner = RunOwner { task_id: Some(request.task_id.clone()), job_id: None };
        let way = way.map_err(SessionError::Serve)?.map(|way| way.owned_by(run_owner));
        let mut sandbox = self.sandbox((&request, terms.as_ref()), &image, (&hatches, way.as_ref()))?;
        let run_id = sandbox.id().clone();
        let sockets = by_hatch(&hatches, sandbox.take_hatches());
        let whose = (&request, &run_id, way.as_ref());
        let models = models.map(|config| (config, owner));
        let (models, web) = self.serve(models, whose, sockets)?;
        let of = |asked: Option<u32>, usual: Duration, most: Duration| {
            asked.map_or(usual, |seconds| Duration::from_secs(seconds.into())).min(most)
        };
        let (limits, begun) = (workplace.settings.sessions, Instant::now());
        let lifetime = of(request.max_lifetime_seconds, limits.max_lifetime, limits.max_lifetime);
        let session = Session {
            run_id,
            created_at: workplace.now(),
            begun,
            lifetime,
            idle: of(request.idle_timeout_seconds, limits.idle_timeout, lifetime),
            used: Mutex::new(begun),
            running: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            is_looked_at: AtomicBool::new(false),
            sandbox: Mutex::new(Some(Arc::new(SharedSandbox(sandbox)))),
            ptys: Mutex::new(Some(HashMap::new())),
            image,
            models: Mutex::new(models),
            usage: Mutex::default(),
            web: Mutex::new(web),
            web_usage: Mutex::default(),
            ending: tokio::sync::Mutex::default(),
            room: Arc::clone(&self.room),
            log: CommandLog::default(),
            request,
            terms,
        };
        workplace.telemetry.made(session.made());
        Ok(Arc::new(session))
    }

    fn sandbox(
        &self,
        (request, terms): (&OpenSessionRequest, Option<&SandboxPermissions>),
        image: &Image,
        (hatches, way): (&[Hatch], Option<&RunPolicy>),
    ) -> Result<Box<dyn Sandbox>, SessionError> {
        let (limits, required) = match image {
            Image::Native => (self.workplace.settings.limits, self.workplace.settings.required.clone()),
            Image::Of(_) => self.workplace.images.bounds(),
        };
        let mut provision = Provision {
            env: env(request),
            limits,
            required,
            hatches: hatches.to_vec(),
            programs: terms.and_then(SandboxPermissions::programs).cloned(),
            ..Provision::default()
        };
        if let Some(way) = way {
            way.furnish(&mut provision.env, &mut provision.home);
        }
        let wanted = SandboxRequest { workspace: WorkspaceChoice::Empty, provision };
        let made = match image {
            Image::Native => self.native.create(wanted),
            Image::Of(image) => {
                self.workplace.images.backend_of(image).and_then(|docker| docker.create(wanted))
            }
        };
        made.map_err(SessionError::Sandbox)
    }

    /// Serves the session's hatches.
    fn serve(
        &self,
        mut config: Option<(InferenceConfig, CallOwner)>,
        (request, run_id, way): (&OpenSessionRequest, &RunId, Option<&RunPolicy>),
        sockets: Vec<(Hatch, Vec<OwnedFd>)>,
    ) -> Result<(Option<RunModels>, Option<RunWeb>), SessionError> {
        let caller = || ModelCaller::Session { session_id: request.session_id.clone() };
        let (mut served_models, mut served_web) = (None, None);
        if sockets.is_empty() {
            return Ok((None, None));
        }
        let thread = Arc::new(HatchThread::start().map_err(|error| SessionError::Serve(error.into()))?);
        for (hatch, sockets) in sockets {
            match (hatch, config.take_if(|_| hatch == Hatch::Inference), way) {
                (Hatch::Inference, Some(config), _) => {
                    let (config, owner) = config;
                    let service = ModelService { caller: caller(), config, owner };
                    let served = self.workplace.models.serve(&thread, service, run_id, sockets);
                    served_models = Some(served.map_err(SessionError::Serve)?);
                }
                (Hatch::Web, _, Some(way)) => {
                    let served = self.workplace.web.serve((&thread, caller()), (run_id, way), sockets);
                    served_web = Some(served.map_err(SessionError::Serve)?);
                }
                // A session requests no other hatch.
                (Hatch::Inference | Hatch::Web | Hatch::Status, ..) => drop(sockets),
            }
        }
        Ok((served_models, served_web))
    }

    fn destroy(&self, session: &Session) -> Result<(), SessionError> {
        // From here on, the session can't be found any more.
        let key = session.request.session_id.key();
        let mut table = self.locked();
        let is_it =
            |slot: &SessionSlot| slot.get().is_some_and(|known| std::ptr::eq(Arc::as_ptr(known), session));
        if table.slots.get(&key).is_some_and(is_it) {
            table.slots.remove(&key);
        }
        drop(table);
        let ptys = session.ptys.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sandbox = session.sandbox.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(ptys);
        let Some(mut sandbox) = sandbox else { return Ok(()) };
        // A caller may be starting a program; it releases the sandbox when that has begun or failed.
        let given_up = Instant::now() + LONGEST_START;
        let gone = loop {
            match Arc::try_unwrap(sandbox) {
                Ok(SharedSandbox(sandbox)) => break sandbox.destroy().map_err(SessionError::Sandbox),
                Err(shared) if Instant::now() < given_up => sandbox = shared,
                // The last holder's drop destroys the sandbox.
                Err(shared) => {
                    drop(shared);
                    break Ok(());
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        self.workplace.telemetry.ended((self.workplace.clock)(), &session.run_id, 0);
        // The sandbox is gone, so no call is made any more.
        let billed = self.bill(session);
        gone.and(billed)
    }

    /// Ends what is served to the session, and stores its usage.
    fn bill(&self, session: &Session) -> Result<(), SessionError> {
        let models = self.bill_models(session);
        let web = session.web.lock().unwrap_or_else(PoisonError::into_inner).take();
        let seen = web.map(|web| web.end().0).transpose().map_err(SessionError::Unrecorded)?;
        *session.web_usage.lock().unwrap_or_else(PoisonError::into_inner) = seen.map(|seen| seen.usage);
        models
    }

    fn bill_models(&self, session: &Session) -> Result<(), SessionError> {
        let models = session.models.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(models) = models else { return Ok(()) };
        let (usage, _) = models.end();
        let usage = usage.map_err(SessionError::Unrecorded)?;
        self.workplace.metrics.models_called(usage.calls);
        *session.usage.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
        Ok(())
    }

    fn locked(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the request with its ids in canonical form, for comparison.
fn canonical(request: &OpenSessionRequest) -> OpenSessionRequest {
    let (task_id, session_id) = (request.task_id.canonical(), request.session_id.canonical());
    OpenSessionRequest { task_id, session_id, ..request.clone() }
}

/// Returns the hatches of a session.
fn hatches(request: &OpenSessionRequest, has_models: bool) -> Vec<Hatch> {
    let wanted = [(Hatch::Inference, has_models), (Hatch::Web, request.wants_web())];
    wanted.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(hatch, _)| hatch).collect()
}

/// Returns the environment of every program in it; the node's variables override those of the request.
fn env(request: &OpenSessionRequest) -> BTreeMap<String, String> {
    let mut env = request.env.clone();
    let id = |text: String| CorrelationId::parse(&text).ok();
    let correlation = Correlation {
        agent_id: request.agent_id.as_ref().and_then(|agent| id(agent.to_string())),
        session_id: id(request.session_id.to_string()),
        task_id: id(request.task_id.to_string()),
        request_id: None,
    };
    env.extend(correlation.env());
    env.insert("CYNODE_TASK_ID".to_owned(), request.task_id.to_string());
    env.insert("CYNODE_SESSION_ID".to_owned(), request.session_id.to_string());
    env.insert("CYNODE_WORKSPACE_DIR".to_owned(), WORKSPACE.to_owned());
    env
}
