//! The node daemon: accepts jobs by the Worker API, runs them in sandboxes, and keeps their results.
//!
//! ```text
//! start ─► lock the state ─► remove leftovers of former instances ─► open the database ─► serve, dispatch, beat ─► stop
//! ```
//! A kernel file lock ensures that a state directory is used by one instance at a time. Jobs of another instance of this node
//! in the database are taken over only when that instance is gone: a copied state directory has the same node id.

mod config;
mod daemon_hatches;
mod error;
mod former_instances;
mod heartbeat;
mod identity;
mod mcp;
mod node_state;
mod recovery;
mod reload;
mod retention;
mod settings;
mod telemetry_record;
mod trust_following;

pub use crate::session::MOST_COMMANDS_OF_ALL as MOST_SESSION_COMMANDS;
pub use config::{CallbackConfig, NodeConfig, TracesConfig};
pub use error::DaemonError;
use error::LEAST_DESCRIPTORS;
pub use mcp::McpConfig;
pub use reload::ReloadedConfig;
pub use settings::{Bucket, ExtensionError, Retention, SessionLimits, Settings, Timeouts};

use crate::api::{self, Api};
use crate::delivery::Deliverer;
use crate::job::NodeState;
use crate::job::dispatcher::Dispatcher;
use crate::job::runnable_jobs::InstanceCapabilities;
use crate::session::Sessions;
use crate::tools;
use belljar_confine::launcher::Launcher;
use belljar_egress::proxy::allow_descriptors;
use belljar_execution::policy_file::PolicyFollower;
use belljar_store::database::Database;
use belljar_store::jobs::Jobs;
use belljar_tools::bridge::Bridge;
use belljar_tools::bridge::config::ServersConfig;
use heartbeat::HeartbeatTask;
use identity::{Identity, StateLock};
use jiff::Timestamp;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Returns the time of day. It is used for display only, never for ordering or decisions.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Maximum number of connections that wait to be accepted; the kernel takes no more than `net.core.somaxconn`, by default 4096.
const BACKLOG: u32 = 4_096;

/// A running daemon.
pub struct Daemon {
    address: SocketAddr,
    stop: CancellationToken,
    /// Heartbeat task; it beats until the last job has ended.
    heart: (CancellationToken, JoinHandle<()>),
    tasks: JoinSet<()>,
    /// Follows the policy file.
    _following: PolicyFollower,
    /// Bridge to other MCP servers; `None` if none is configured.
    bridge: Option<Bridge>,
    /// The configuration of those servers that was applied last.
    servers: ServersConfig,
    workplace: Arc<NodeState>,
    database: Database,
    /// Released last of all.
    _identity: Identity,
}

// === impl Daemon ===

impl Daemon {
    /// Starts the daemon. It serves when this returns.
    ///
    /// # Errors
    /// [`DaemonError`]; no task is left running then.
    pub async fn start(
        settings: Settings,
        launcher: Launcher,
        clock: WallClock,
    ) -> Result<Self, DaemonError> {
        // Each job, each session and each of their connections takes descriptors.
        let allowed = allow_descriptors();
        if allowed < LEAST_DESCRIPTORS {
            return Err(DaemonError::Descriptors { allowed });
        }
        let lock = StateLock::take(settings.state.path())?;
        // Before anything is written: leftovers of sandboxes may fill the disk.
        recovery::clear(&settings).await?;
        let identity = Identity::of(lock)?;
        let (listener, address) = listen(settings.listen).await?;
        former_instances::warn_of_lost_database(&settings.database, &identity);
        let database = Database::open(&settings.database).await?;
        let is_own = former_instances::is_own(&settings.database, settings.state.path());
        let gone = former_instances::gone(&Jobs::new(database.clone()), &identity, is_own).await?;
        let (workplace, following) =
            node_state::furnish(settings, (launcher, clock), (&database, &identity.owner)).await?;
        let stop = workplace.stop.clone();
        telemetry_record::begun(&workplace);
        workplace.jobs.register(&workplace.owner, workplace.now()).await?;
        let announced = InstanceCapabilities::of(&workplace).announcement();
        workplace.jobs.announce(&workplace.owner.instance, &announced).await?;
        recovery::recover(&workplace, &gone).await?;
        recovery::remove_unresumed(&workplace).await?;
        trust_following::follow(&workplace).await?;
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&workplace)));
        let deliverer = Deliverer::start(Arc::clone(&workplace), stop.clone());
        let deliverer = Arc::new(deliverer.map_err(|source| DaemonError::Threads { source })?);
        deliverer.take_over().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&dispatcher).run(stop.clone()));
        let heart = HeartbeatTask {
            workplace: Arc::clone(&workplace),
            dispatcher: Arc::clone(&dispatcher),
            deliverer: Arc::clone(&deliverer),
            announced,
        };
        let still = CancellationToken::new();
        let heart = (still.clone(), tokio::spawn(heart.beat(still)));
        tasks.spawn(retention::expire(Arc::clone(&workplace), stop.clone()));
        tasks.spawn(retention::remove_containers(Arc::clone(&workplace), stop.clone()));
        let sessions = Arc::new(Sessions::new(Arc::clone(&workplace)));
        tasks.spawn(Arc::clone(&sessions).sweep(stop.clone()));
        let api = Arc::new(Api {
            sessions,
            workplace: Arc::clone(&workplace),
            dispatcher,
            deliverer,
            stop: stop.clone(),
        });
        workplace.tools.add_planners(&api).map_err(|source| DaemonError::Tools { source })?;
        let servers = workplace.settings.mcp.servers.clone();
        let bridge = workplace.tools.bridge(&workplace, servers.clone());
        let bridge = bridge.map_err(|source| DaemonError::Threads { source })?;
        tasks.spawn(tools::follow_images(Arc::clone(&api), stop.clone()));
        tasks.spawn(api::serve(api, listener, stop.clone()));
        workplace.canary.settled().await;
        telemetry_record::serves(&workplace, address);
        Ok(Self {
            address,
            stop,
            heart,
            tasks,
            _following: following,
            bridge,
            servers,
            workplace,
            database,
            _identity: identity,
        })
    }

    /// Returns the address that the daemon listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the daemon gracefully: accepts no work, ends running jobs and records them as interrupted. Returns when nothing
    /// runs any more.
    pub async fn stop(mut self) {
        telemetry_record::stops(&self.workplace);
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        if let Some(bridge) = self.bridge.take() {
            bridge.end().await;
        }
        // The heartbeat stops only now: until here other instances must not take this one for dead.
        let (still, heart) = self.heart;
        still.cancel();
        let _ = heart.await;
        // Interrupted jobs were released by their runs; this releases those whose end could not be recorded.
        let _ = self.workplace.jobs.forget(&self.workplace.owner.instance).await;
        self.workplace.traces.stop().await;
        self.database.close().await;
        self.workplace.canary.left().await;
        telemetry_record::stopped(&self.workplace);
        self.workplace.telemetry.close().await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), DaemonError> {
    let failed = |source| DaemonError::Listen { address, source };
    let listener = bound(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Listens like [`TcpListener::bind`], with a longer backlog: when it is full, clients of a flooded node retry after a second.
fn bound(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
