//! A server: one task keeps it connected, and callers wait for its connection.

use super::cache::{Cache, Key};
use super::client::{Connection, ConnectionState, PipeTransport, ToolList, over_http};
use super::config::{ServerConfig, ServerTransport, StdioConfig};
use super::error::{BridgeError, CallError};
use super::log_quota::LogQuota;
use super::pause::{LEAST, ReconnectBackoff};
use super::result::Outcome;
use super::sealed::{self, Pipes, SandboxedServer};
use super::tool::{RemoteTool, named};
use super::unsealed::UnsandboxedServer;
use super::{BridgeResources, stderr};
use crate::answer::Answer;
use crate::caller::Caller;
use crate::registry::{PreparedTools, Registry};
use crate::{Arguments, Tool};
use belljar_contract::inference::Excerpt;
use belljar_sandbox::backend::with_causes;
use belljar_sandbox::spec::Program;
use belljar_sandbox::streams::PipedStreams;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// A configured server.
pub(super) struct Server {
    config: ServerConfig,
    means: BridgeResources,
    registry: Arc<Registry>,
    now: watch::Sender<ServerState>,
    /// Notified when a caller waits for a connection.
    wanted: Notify,
    calls: Semaphore,
    waiting: Semaphore,
    cache: Cache,
    quota: LogQuota,
    /// Quota for its program's standard error.
    stderr_quota: Arc<LogQuota>,
}

/// Current state.
#[derive(Clone, Default)]
struct ServerState {
    connection: Option<Arc<Connection>>,
    /// Number of completed attempts to connect.
    attempts: u64,
}

/// The program of a server.
enum ServerProcess {
    Sealed(SandboxedServer),
    Unsealed(UnsandboxedServer),
}

/// A program that is being started or running.
#[derive(Default)]
struct ServerRun {
    starting: Option<JoinHandle<Result<(ServerProcess, PipedStreams), BridgeError>>>,
    running: Option<ServerProcess>,
}

/// A connection, its program, and its list of tools.
type ConnectedServer = (Arc<Connection>, Option<ServerProcess>, ToolList);

/// Number of calls that may wait for each concurrent call.
const WAITING_FOR_EACH: usize = 16;

/// Log message about a tool that can't be registered.
const LEFT_OUT: &str = "a tool of an MCP server is not offered";

/// Minimum interval between two listings, however often the server announces changes.
const LIST_PAUSE: Duration = Duration::from_secs(1);

// === impl Server ===

impl Server {
    pub(super) fn new(config: ServerConfig, means: BridgeResources, registry: Arc<Registry>) -> Arc<Self> {
        let calls = config.limits.calls;
        Arc::new(Self {
            cache: Cache::new(config.cache.ttl, config.cache.size),
            calls: Semaphore::new(calls),
            waiting: Semaphore::new(calls * WAITING_FOR_EACH),
            now: watch::Sender::new(ServerState::default()),
            wanted: Notify::new(),
            quota: LogQuota::default(),
            stderr_quota: Arc::default(),
            config,
            means,
            registry,
        })
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Keeps the server connected until it is stopped; then its program is gone.
    pub(super) async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let mut pause = ReconnectBackoff::default();
        while !stop.is_cancelled() {
            let begun = Instant::now();
            let rest = match self.connect(&stop).await {
                Ok(connected) => {
                    self.serve(connected, &stop).await;
                    pause.ended_after(begun.elapsed())
                }
                Err(error) => {
                    self.complain(&with_causes(&error), "connecting to an MCP server failed");
                    self.now.send_modify(|now| now.attempts += 1);
                    pause.failed()
                }
            };
            let least = LEAST.saturating_sub(begun.elapsed()).min(rest);
            let rested = async {
                sleep(least).await;
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = sleep(rest - least) => {}
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = rested => {}
            }
        }
        self.registry.install(&self.config.group(), []);
    }

    /// Registers its tools, and serves until the connection ends; then ends its program.
    async fn serve(
        self: &Arc<Self>,
        (connection, running, listed): ConnectedServer,
        stop: &CancellationToken,
    ) {
        self.install(listed).await;
        self.now.send_modify(|now| {
            now.connection = Some(Arc::clone(&connection));
            now.attempts += 1;
        });
        let listen = async {
            loop {
                connection.changed().await;
                self.list_again(&connection).await;
                sleep(LIST_PAUSE).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            why = connection.over() => {
                self.complain(why.in_words(), "lost the connection to an MCP server");
            }
            () = listen => {}
        }
        self.now.send_modify(|now| now.connection = None);
        connection.end();
        end(running).await;
    }

    async fn list_again(self: &Arc<Self>, connection: &Connection) {
        let listed = timeout(self.config.timeout, connection.list(self.config.limits.tools)).await;
        let error = match listed {
            Ok(Ok(listed)) => return self.install(listed).await,
            Ok(Err(error)) => with_causes(&error),
            Err(_) => "no response in time".to_owned(),
        };
        self.complain(&error, "the changed tool list of an MCP server can't be read");
    }

    /// Registers its tools; those that can't be registered are logged.
    async fn install(self: &Arc<Self>, listed: ToolList) {
        self.cache.clear();
        self.report(&listed);
        let (named, left_out) = named(&self.config, listed.tools);
        for (tool, why) in left_out {
            self.complain(&format!("{tool}: {why}"), LEFT_OUT);
        }
        let count = named.len();
        let tools: Vec<_> = named
            .into_iter()
            .map(|(name, told)| Arc::new(RemoteTool::new(self, name, told)) as Arc<dyn Tool>)
            .collect();
        // Compiling schemas takes time, so it is done on a blocking thread.
        let Ok(prepared) = tokio::task::spawn_blocking(|| PreparedTools::of(tools)).await else { return };
        let refused = self.registry.put(&self.config.group(), prepared);
        for error in &refused {
            self.complain(&with_causes(error), LEFT_OUT);
        }
        let server = self.config.name.as_str();
        if self.quota.take().is_some() {
            tracing::info!(server, tools = count - refused.len(), "connected to an MCP server");
        }
    }

    /// Logs which entries of a list are dropped.
    fn report(&self, listed: &ToolList) {
        if listed.passed_over > 0 {
            let why = format!("{} entries of its tool list are invalid", listed.passed_over);
            self.complain(&why, LEFT_OUT);
        }
        if listed.is_cut {
            let why = format!("at most {} are allowed", self.config.limits.tools);
            self.complain(&why, "an MCP server lists more tools than the limit allows");
        }
    }

    /// Logs a problem, within the quota. Texts of the server are truncated.
    fn complain(&self, why: &str, what: &'static str) {
        if let Some(is_last_told) = self.quota.take() {
            let why = Excerpt::of(why);
            tracing::warn!(server = self.config.name, why = why.as_str(), is_last_told, "{what}");
        }
    }

    async fn connect(&self, stop: &CancellationToken) -> Result<ConnectedServer, BridgeError> {
        let within = self.config.connect_timeout;
        let out_of_time = BridgeError::OutOfTime { within };
        let deadline = Instant::now() + within;
        let mut run = ServerRun::default();
        let connecting = tokio::time::timeout_at(deadline, self.open(&mut run));
        let connected = tokio::select! {
            () = stop.cancelled() => Err(out_of_time),
            connected = connecting => connected.unwrap_or(Err(out_of_time)),
        };
        match connected {
            Ok((connection, listed)) => Ok((Arc::new(connection), run.started().await, listed)),
            Err(error) => {
                end(run.started().await).await;
                Err(error)
            }
        }
    }

    /// Connects, and lists the server's tools. Its program is put into `run`, so that a caller that times out can end it.
    async fn open(&self, run: &mut ServerRun) -> Result<(Connection, ToolList), BridgeError> {
        let (most_bytes, within) = (self.config.limits.answer_bytes, self.config.connect_timeout);
        let watched = Arc::new(ConnectionState::default());
        let connection = match &self.config.way {
            ServerTransport::Stdio(stdio) => {
                let Pipes { input, output, errors } = self.start(stdio, run).await?;
                let quota = Arc::clone(&self.stderr_quota);
                tokio::spawn(stderr::log(self.config.name.clone(), errors, quota));
                let lines = PipeTransport::new(output, input, most_bytes, Arc::clone(&watched));
                Connection::greet(lines, watched, (most_bytes, within)).await?
            }
            ServerTransport::Http(remote) => {
                let asked = (remote.clone(), Arc::clone(&self.means.exchanger));
                let patience = self.config.timeout.max(self.config.connect_timeout);
                let http = over_http(asked, Arc::clone(&watched), most_bytes, patience);
                Connection::greet(http, watched, (most_bytes, within)).await?
            }
        };
        let listed = connection.list(self.config.limits.tools).await?;
        Ok((connection, listed))
    }

    async fn start(&self, stdio: &StdioConfig, run: &mut ServerRun) -> Result<Pipes, BridgeError> {
        let (config, means) = (stdio.clone(), self.means.clone());
        let starting = run.starting.insert(tokio::task::spawn_blocking(move || start(&config, &means)));
        let started = starting.await;
        run.starting = None;
        let (started, spoken) = started.unwrap_or_else(|died| Err(BridgeError::Start(Box::new(died))))?;
        run.running = Some(started);
        Pipes::of(spoken).map_err(|error| BridgeError::Start(Box::new(error)))
    }

    /// Calls one of its tools, or returns a cached answer.
    pub(super) async fn call(
        &self,
        caller: &Caller,
        (tool, is_read_only): (&str, bool),
        arguments: Arguments,
    ) -> Answer {
        let key = is_read_only.then(|| Key::of(caller, tool, &arguments));
        if let Some(success) = key.and_then(|key| self.cache.find(key)) {
            return Ok(success);
        }
        let asked = self.asked((tool, is_read_only), arguments).await;
        let answer = asked.map_err(|error| error.failure(&self.config.name))?.answer()?;
        if let Some(key) = key {
            self.cache.keep(key, &answer);
        }
        Ok(answer)
    }

    async fn asked(
        &self,
        (tool, is_read_only): (&str, bool),
        arguments: Arguments,
    ) -> Result<Outcome, CallError> {
        let _turn = self.turn().await?;
        let within = self.config.timeout;
        let connection = self.connection(None).await?;
        let called = connection.call(tool, arguments.clone(), within).await;
        match called {
            // It is unknown whether the call was carried out, so only read-only calls are repeated.
            Err(CallError::Gone { .. }) if is_read_only => {
                let next = self.connection(Some(&connection)).await?;
                next.call(tool, arguments, within).await
            }
            called => called,
        }
    }

    async fn turn(&self) -> Result<SemaphorePermit<'_>, CallError> {
        let _waits = self.waiting.try_acquire().map_err(|_| CallError::TooMany)?;
        let turn = timeout(self.config.timeout, self.calls.acquire()).await;
        turn.map_err(|_| CallError::TooMany)?.map_err(|_| CallError::Connection)
    }

    /// Returns a live connection other than `not`. Waits for one reconnect.
    async fn connection(&self, not: Option<&Arc<Connection>>) -> Result<Arc<Connection>, CallError> {
        let is_good = |connection: &Arc<Connection>| {
            !connection.is_over() && not.is_none_or(|not| !Arc::ptr_eq(not, connection))
        };
        let mut now = self.now.subscribe();
        let before = now.borrow_and_update().clone();
        if let Some(connection) = before.connection.filter(|connection| is_good(connection)) {
            return Ok(connection);
        }
        self.wanted.notify_one();
        let came = async {
            loop {
                now.changed().await.map_err(|_| CallError::Connection)?;
                let now = now.borrow_and_update().clone();
                match now.connection.filter(|connection| is_good(connection)) {
                    Some(connection) => return Ok(connection),
                    None if now.attempts > before.attempts => return Err(CallError::Connection),
                    None => {}
                }
            }
        };
        let within = self.config.connect_timeout + LEAST;
        timeout(within, came).await.unwrap_or(Err(CallError::Connection))
    }
}

/// Starts a program. Blocks.
fn start(
    config: &StdioConfig,
    means: &BridgeResources,
) -> Result<(ServerProcess, PipedStreams), BridgeError> {
    let found = (means.finder)(config).map_err(BridgeError::Program)?;
    let argv: Vec<OsString> =
        found.command.iter().cloned().chain(config.args.iter().map(OsString::from)).collect();
    if config.is_unsealed {
        let (unsealed, spoken) = UnsandboxedServer::start(&argv, &config.env, &found.search_path)?;
        return Ok((ServerProcess::Unsealed(unsealed), spoken));
    }
    let wanted = sealed::wanted(&found, config, means.required.clone());
    let program = Program { argv, directory: belljar_contract::path::WORKSPACE.to_owned() };
    let (sealed, spoken) = SandboxedServer::start(&*means.backend, wanted, &program)?;
    Ok((ServerProcess::Sealed(sealed), spoken))
}

// === impl ServerRun ===

impl ServerRun {
    /// Waits for a start that is under way, and returns the program: otherwise it would keep running unattended.
    async fn started(self) -> Option<ServerProcess> {
        let Some(starting) = self.starting else { return self.running };
        starting.await.ok()?.ok().map(|(running, _)| running)
    }
}

async fn end(running: Option<ServerProcess>) {
    let Some(running) = running else { return };
    // Both block.
    let ended = tokio::task::spawn_blocking(move || match running {
        ServerProcess::Sealed(sealed) => sealed.end(),
        ServerProcess::Unsealed(unsealed) => drop(unsealed),
    });
    let _ = ended.await;
}
