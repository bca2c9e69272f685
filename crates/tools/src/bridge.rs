//! Bridge to other MCP servers: keeps each configured server connected, and registers its tools among those of the host.
//!
//! ```text
//! configuration ─► Server ─► connect ─┬─► its program, in a sandbox without network ─┬─► client ─► its tools ─► Registry
//!                    ▲                └─► its URL, by the one dialer ────────────────┘
//!                    └── connection lost: backoff, shortened by the next call
//! ```
//! A server is as untrusted as a program in a sandbox: its messages are limited in size and number, and its requests are refused.

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
pub use sealed::ServerProgram;

use crate::registry::Registry;
use belljar_contract::isolation::RequiredLayers;
use belljar_egress::exchange::Exchanger;
use belljar_sandbox::backend::Backend;
use config::{ServersConfig, StdioConfig};
use server::Server;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Finds a server's program on the host, and the host files that it needs to start in a sandbox.
pub type ProgramFinder =
    Arc<dyn Fn(&StdioConfig) -> Result<ServerProgram, Box<dyn Error + Send + Sync>> + Send + Sync + 'static>;

/// Means by which servers are reached.
#[derive(Clone)]
pub struct BridgeResources {
    /// Makes the sandboxes of programs.
    pub backend: Arc<dyn Backend>,
    /// Isolation layers that sandboxes must have.
    pub required: RequiredLayers,
    /// Finds programs.
    pub finder: ProgramFinder,
    /// HTTP client for servers with a URL.
    pub exchanger: Arc<Exchanger>,
}

/// The connected servers. Dropping it ends them.
#[derive(Debug)]
pub struct Bridge {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

// === impl Bridge ===

impl Bridge {
    /// Starts to connect to all enabled servers concurrently, without waiting. A server's tools are in the registry once it has
    /// listed them.
    pub fn start(config: ServersConfig, registry: &Arc<Registry>, means: &BridgeResources) -> Self {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for config in config.0.into_iter().filter(|server| server.is_enabled) {
            let server = Server::new(config, means.clone(), Arc::clone(registry));
            tasks.spawn(server.keep(stop.clone()));
        }
        Self { stop, tasks }
    }

    /// Ends all servers and their calls. Returns when their sandboxes are gone.
    pub async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

// === impl BridgeResources ===

impl fmt::Debug for BridgeResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BridgeResources").field("backend", &self.backend.name()).finish_non_exhaustive()
    }
}
