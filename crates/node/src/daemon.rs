//! The node as a daemon: it accepts jobs by the Worker API, carries them out in sandboxes, and keeps what came of them.
//!
//! ```text
//! start ─► lock the state ─► clear away what a former instance left ─► open the database ─► serve, dispatch, beat ─► stop
//! ```
//! One instance lives at a time for each state directory, held by a lock of the kernel's. What another instance of this node has in the
//! database is taken over only when that instance is gone: a copied state directory has the same node id.

mod config;
mod error;
mod former;
mod heart;
mod identity;
mod keeping;
mod mcp;
mod record;
mod recovery;
mod reload;
mod settings;
mod trusting;
mod ways_out;
mod workplace;

pub use crate::session::MOST_COMMANDS_OF_ALL as MOST_SESSION_COMMANDS;
pub use config::{CallbackConfig, NodeConfig, TracesConfig};
pub use error::DaemonError;
use error::LEAST_DESCRIPTORS;
pub use mcp::McpConfig;
pub use reload::Reloaded;
pub use settings::{Bucket, NoExtension, Retention, SessionLimits, Settings, Timeouts};

use crate::api::{self, Api};
use crate::delivery::Deliverer;
use crate::job::Workplace;
use crate::job::abilities::Abilities;
use crate::job::dispatcher::Dispatcher;
use crate::session::Sessions;
use crate::tools;
use crate::web::policy_file::Following;
use belljar_confine::launcher::Launcher;
use belljar_egress::proxy::allow_descriptors;
use belljar_store::database::Database;
use belljar_store::jobs::Jobs;
use belljar_tools::bridge::Bridge;
use belljar_tools::bridge::config::ServersConfig;
use heart::Heart;
use identity::{Identity, StateLock};
use jiff::Timestamp;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// Tells the time of day, which orders nothing and decides nothing.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Maximum number of connections that wait to be accepted; the kernel takes no more than `net.core.somaxconn`, by default 4096.
const BACKLOG: u32 = 4_096;

/// A daemon that runs.
pub struct Daemon {
    address: SocketAddr,
    stop: CancellationToken,
    /// Goes on as long as jobs do.
    heart: (CancellationToken, JoinHandle<()>),
    tasks: JoinSet<()>,
    /// The file with the policy is followed.
    _following: Following,
    /// Other servers of MCP; nothing where none is configured.
    bridge: Option<Bridge>,
    /// As those were configured last.
    servers: ServersConfig,
    workplace: Arc<Workplace>,
    database: Database,
    /// Let go of last of all.
    _identity: Identity,
}

// === impl Daemon ===

impl Daemon {
    /// Starts it. When this is back, it serves.
    ///
    /// # Errors
    /// [`DaemonError`]; nothing is left running.
    pub async fn start(
        settings: Settings,
        launcher: Launcher,
        clock: WallClock,
    ) -> Result<Self, DaemonError> {
        // Each job and each session takes some, and each of their connections.
        let allowed = allow_descriptors();
        if allowed < LEAST_DESCRIPTORS {
            return Err(DaemonError::Descriptors { allowed });
        }
        let lock = StateLock::take(settings.state.path())?;
        // Before anything is written: what sandboxes have left may fill the disk.
        recovery::clear(&settings).await?;
        let identity = Identity::of(lock)?;
        let (listener, address) = listen(settings.listen).await?;
        former::warn_of_lost_database(&settings.database, &identity);
        let database = Database::open(&settings.database).await?;
        let is_own = former::is_own(&settings.database, settings.state.path());
        let gone = former::gone(&Jobs::new(database.clone()), &identity, is_own).await?;
        let (workplace, following) =
            workplace::furnish(settings, (launcher, clock), (&database, &identity.owner)).await?;
        let stop = workplace.stop.clone();
        record::begun(&workplace);
        workplace.jobs.register(&workplace.owner, workplace.now()).await?;
        let announced = Abilities::of(&workplace).announcement();
        workplace.jobs.announce(&workplace.owner.instance, &announced).await?;
        recovery::recover(&workplace, &gone).await?;
        recovery::remove_unresumed(&workplace).await?;
        trusting::follow(&workplace).await?;
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&workplace)));
        let deliverer = Deliverer::start(Arc::clone(&workplace), stop.clone());
        let deliverer = Arc::new(deliverer.map_err(|source| DaemonError::Threads { source })?);
        deliverer.take_over().await;
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&dispatcher).run(stop.clone()));
        let heart = Heart {
            workplace: Arc::clone(&workplace),
            dispatcher: Arc::clone(&dispatcher),
            deliverer: Arc::clone(&deliverer),
            announced,
        };
        let still = CancellationToken::new();
        let heart = (still.clone(), tokio::spawn(heart.beat(still)));
        tasks.spawn(keeping::expire(Arc::clone(&workplace), stop.clone()));
        tasks.spawn(keeping::remove_containers(Arc::clone(&workplace), stop.clone()));
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
        record::serves(&workplace, address);
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it: nothing new is begun, what runs is ended, and recorded as interrupted. Back when nothing runs any more.
    pub async fn stop(mut self) {
        record::stops(&self.workplace);
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        if let Some(bridge) = self.bridge.take() {
            bridge.end().await;
        }
        // Until here others must not take this instance for dead.
        let (still, heart) = self.heart;
        still.cancel();
        let _ = heart.await;
        // What was interrupted has been given up by those who had it; this is for what could not be recorded then.
        let _ = self.workplace.jobs.forget(&self.workplace.owner.instance).await;
        self.workplace.traces.stop().await;
        self.database.close().await;
        self.workplace.canary.left().await;
        record::stopped(&self.workplace);
        self.workplace.telemetry.close().await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), DaemonError> {
    let failed = |source| DaemonError::Listen { address, source };
    let listener = bound(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Listens as [`TcpListener::bind`] does, with a longer queue: when it is full, clients of a flooded node wait a second to try again.
fn bound(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
