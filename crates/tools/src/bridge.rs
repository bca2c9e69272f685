//! Tools of other servers of MCP: each server that is configured is kept connected, and its tools stand among those of the host.
//!
//! ```text
//! configuration ─► Server ─► connect ─┬─► its program, in a sandbox without network ─┬─► client ─► what it lists ─► Registry
//!                    ▲                └─► its URL, by the one dialer ────────────────┘
//!                    └── it has died: wait a little longer each time, or until somebody calls
//! ```
//! A server is as little trusted as what is in any sandbox: everything that it says is bounded, and nothing that it asks for is done.

mod cache;
mod client;
pub mod config;
mod error;
mod log_quota;
mod pause;
mod result;
mod sealed;
mod server;
mod stderr;
mod tool;
mod unsealed;

pub use error::{BridgeError, CallError};
pub use sealed::Found;

use crate::registry::Registry;
use belljar_contract::isolation::Required;
use belljar_egress::exchange::Exchanger;
use belljar_sandbox::backend::Backend;
use config::{ServersConfig, StdioConfig};
use server::Server;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Finds a server's program on the host, and what of the host has to be lent so that it starts in a sandbox.
pub type Finder =
    Arc<dyn Fn(&StdioConfig) -> Result<Found, Box<dyn Error + Send + Sync>> + Send + Sync + 'static>;

/// What servers are reached by.
#[derive(Clone)]
pub struct Means {
    /// Makes the sandboxes of programs.
    pub backend: Arc<dyn Backend>,
    /// The layers without which there are none.
    pub required: Required,
    /// Finds programs.
    pub finder: Finder,
    /// Asks the servers that have a URL.
    pub exchanger: Arc<Exchanger>,
}

/// The servers that are kept connected.
#[derive(Debug)]
pub struct Bridge {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

// === impl Bridge ===

impl Bridge {
    /// Begins to connect to all that are configured, at the same time. Nobody waits for it: the tools of a server are in the registry
    /// from when it has told them.
    pub fn start(config: ServersConfig, registry: &Arc<Registry>, means: &Means) -> Self {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for config in config.0.into_iter().filter(|server| server.is_enabled) {
            let server = Server::new(config, means.clone(), Arc::clone(registry));
            tasks.spawn(server.keep(stop.clone()));
        }
        Self { stop, tasks }
    }

    /// Ends all of them, and what was called there. Back when nothing of their sandboxes is left.
    pub async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

// === impl Means ===

impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Means").field("backend", &self.backend.name()).finish_non_exhaustive()
    }
}
