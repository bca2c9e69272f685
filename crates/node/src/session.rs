//! Sessions: sandboxes that stay over many commands, each until its lifetime or its idle timeout ends.
//!
//! ```text
//! open ─► sandbox ─► exec, pty, … ─► ended: asked for │ too old │ idle │ the node stops │ its sandbox is gone
//! ```
//! A session is kept in the node's memory, and its sandbox is a child of the node: neither survives the node.

mod command;
mod command_log;
pub(crate) mod pty;
mod table;

pub(crate) use table::{SessionProvision, Sessions};

use crate::access_rules::{NodeAccessRules, PermissionExceeded, SandboxPermissions};
use crate::images::Image;
use crate::models::{ModelsError, RunModels};
use crate::web::RunWeb;
use belljar_confine::plan::Stdio;
use belljar_contract::egress::WebUsage;
use belljar_contract::id::{PtyId, RunId, SessionId};
use belljar_contract::usage::UsageTotals;
use belljar_contract::worker::session::{OpenSessionRequest, Session as Told, SessionStatus};
use belljar_contract::worker::telemetry::ContainerKind;
use belljar_execution::serving::ServeError;
use belljar_journal::RunJournalError;
use belljar_sandbox::backend::{BackendError, Execution, Sandbox};
use belljar_sandbox::limits::Limit;
use belljar_sandbox::spec::Program;
use belljar_store::telemetry::SandboxRecord;
use command_log::CommandLog;
use jiff::Timestamp;
use pty::Pty;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// A session.
pub(crate) struct Session {
    request: OpenSessionRequest,
    /// Terms of its sandbox, if the node has access rules.
    terms: Option<SandboxPermissions>,
    run_id: RunId,
    created_at: Timestamp,
    begun: Instant,
    lifetime: Duration,
    idle: Duration,
    used: Mutex<Instant>,
    running: AtomicU64,
    /// True once its sandbox has ended by itself.
    is_gone: AtomicBool,
    /// True while a request checks its status.
    is_looked_at: AtomicBool,
    /// `None` once the session is ended. Locked only to clone or take it: callers that start a program hold a clone.
    sandbox: Mutex<Option<Arc<SharedSandbox>>>,
    /// `None` once the session is ended.
    ptys: Mutex<Option<HashMap<String, Arc<Pty>>>>,
    image: Image,
    /// Models that may be called in it. `None` once the session is ended.
    models: Mutex<Option<RunModels>>,
    /// Its model usage, set when it has ended.
    usage: Mutex<Option<UsageTotals>>,
    /// The web that is reached from it. `None` once the session is ended.
    web: Mutex<Option<RunWeb>>,
    /// Its web usage, set when it has ended.
    web_usage: Mutex<Option<WebUsage>>,
    /// Held by the task that ends the session, until it is gone.
    ending: tokio::sync::Mutex<()>,
    /// Permits for commands, shared by all sessions of the node.
    room: Arc<Semaphore>,
    log: CommandLog,
}

/// A sandbox that is shared while programs are being started in it.
struct SharedSandbox(Box<dyn Sandbox>);

/// Reasons why an operation on a session fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error("there is no session {0}, or it has ended")]
    Unknown(SessionId),
    #[error("session {0} was ended: its agent's permissions were reduced since it was opened")]
    Demoted(SessionId),
    #[error(transparent)]
    TooMuch(PermissionExceeded),
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
    #[error(transparent)]
    Serve(ServeError),
    #[error(transparent)]
    NoModels(ModelsError),
    #[error("it has ended; what it has had of models or of the web is not all recorded")]
    Unrecorded(#[source] RunJournalError),
    #[error("the terminal can't be used")]
    Terminal(#[source] std::io::Error),
}

/// An operation in a session; the session is not idle while there is one.
pub(crate) struct SessionUse {
    session: Arc<Session>,
}

/// Maximum number of concurrent commands in one session, terminals included.
const MOST_COMMANDS: u64 = 16;

/// Maximum number of concurrent commands in all sessions. Each has a thread.
pub const MOST_COMMANDS_OF_ALL: usize = 256;

// === impl Session ===

impl Session {
    pub(crate) fn request(&self) -> &OpenSessionRequest {
        &self.request
    }

    /// Returns the output log of its commands.
    pub(crate) fn log(&self) -> &CommandLog {
        &self.log
    }

    /// Returns the terms of its sandbox, if the node has access rules.
    pub(crate) fn terms(&self) -> Option<&SandboxPermissions> {
        self.terms.as_ref()
    }

    /// Returns true if the agent's current permissions still cover this session.
    fn is_allowed(&self, house: Option<&NodeAccessRules>) -> bool {
        self.terms.as_ref().zip(house).is_none_or(|(terms, house)| house.still_allows(terms))
    }

    /// Returns the session as the API reports it.
    pub(crate) fn told(&self, status: SessionStatus) -> Told {
        let lifetime = jiff::SignedDuration::try_from(self.lifetime).unwrap_or(jiff::SignedDuration::MAX);
        Told {
            task_id: self.request.task_id.clone(),
            session_id: self.request.session_id.clone(),
            project_id: self.request.project_id.clone(),
            agent_id: self.request.agent_id.clone(),
            run_id: self.run_id.clone(),
            status,
            created_at: self.created_at,
            expires_at: self.created_at.checked_add(lifetime).unwrap_or(Timestamp::MAX),
            idle_timeout_seconds: self.idle.as_secs(),
            running: self.running.load(Ordering::SeqCst),
            inference: self.usage.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            web: self.web_usage.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Begins an operation in it.
    fn begin(self: &Arc<Self>) -> Result<SessionUse, SessionError> {
        // Counted first, so that concurrent callers can't exceed the limit.
        let using = SessionUse::of(self);
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
        if let (Some(terms), Some(program)) = (&self.terms, argv.first()) {
            terms.admit_program("$.command[0]", program).map_err(SessionError::TooMuch)?;
        }
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

    /// Returns the rest of its lifetime.
    fn left(&self) -> Duration {
        self.lifetime.saturating_sub(self.begun.elapsed())
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns why the session is to be ended; `None` if it stays.
    fn why_over(&self, house: Option<&NodeAccessRules>) -> Option<&'static str> {
        if !self.is_allowed(house) {
            return Some("the agent's permissions were reduced");
        }
        let idle_for = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        // An open terminal without input or output doesn't keep the session from being idle.
        let terminals =
            self.ptys.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, HashMap::len);
        let is_idle = self.running.load(Ordering::SeqCst) <= terminals as u64 && idle_for >= self.idle;
        match (self.left().is_zero(), is_idle, self.is_gone.load(Ordering::SeqCst)) {
            (true, ..) => Some("it was open for as long as it may be"),
            (_, true, _) => Some("nothing was done in it"),
            (.., true) => Some("its sandbox has ended"),
            _ => None,
        }
    }

    /// Returns the limit that has ended its sandbox, if one has.
    fn ended_by(&self) -> Option<Limit> {
        let sandbox = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sandbox.and_then(|sandbox| sandbox.0.ended_by())
    }

    fn made(&self) -> SandboxRecord {
        let Self { request, run_id, .. } = self;
        SandboxRecord {
            at: self.created_at,
            run_id: run_id.clone(),
            name: format!("belljar-{run_id}"),
            kind: ContainerKind::Sandbox,
            runtime: self.image.runtime(),
            image: self.image.name(),
            task_id: Some(request.task_id.clone()),
            job_id: None,
            labels: vec![
                ("cynodeai.task_id", request.task_id.to_string()),
                ("cynodeai.session_id", request.session_id.to_string()),
            ],
        }
    }
}

// === impl SessionUse ===

impl SessionUse {
    fn of(session: &Arc<Session>) -> Self {
        session.running.fetch_add(1, Ordering::SeqCst);
        session.touch();
        Self { session: Arc::clone(session) }
    }
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        self.session.touch();
        self.session.running.fetch_sub(1, Ordering::SeqCst);
    }
}
