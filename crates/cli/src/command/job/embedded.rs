//! Node that runs in this process for the duration of one command.
//!
//! It is the node that `belljar node` would start, on the same state. The same client calls it, over a loopback port and with a
//! token that no other process receives. The kernel's lock on the state prevents two nodes from running on it.

use crate::client::{Client, ClientToken, NodeAddress};
use crate::command::node;
use crate::error::CliError;
use crate::state;
use belljar_confine::launcher::Launcher;
use belljar_files::host_path::HostPath;
use belljar_node::api::token::Token;
use belljar_node::daemon::{Daemon, Settings};
use belljar_trusted::tcp_server::ServerUser;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A node in this process.
pub(super) struct EmbeddedNode {
    runtime: Runtime,
    daemon: Daemon,
    client: Client,
}

/// Purpose of an embedded node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To tell what there is: no job is begun, for it would be ended with this command.
    Reading,
    /// To run jobs.
    Running,
}

// === impl EmbeddedNode ===

impl EmbeddedNode {
    pub(super) fn start(config: Option<&Path>, purpose: Purpose) -> Result<Self, CliError> {
        let state = node::cleared(node::usual_state())?;
        let shown = ClientToken::new();
        let runner = HostPath::resolve(state::own_program()?)?;
        let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let mut settings = Settings::new(listen, state, token(&shown)?, runner);
        node::configure(&mut settings, config)?;
        if purpose == Purpose::Reading {
            settings.max_concurrency = 0;
        }
        // While this process is small and has one thread.
        let launcher = Launcher::start()?;
        let runtime = node::runtime(&settings)?;
        let daemon = Daemon::start(settings, launcher, Arc::new(jiff::Timestamp::now));
        let daemon = runtime.block_on(daemon)?;
        let client = Client::new(NodeAddress::of(daemon.address()), shown, ServerUser::Own);
        Ok(Self { runtime, daemon, client })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Stops it. What runs is ended in order.
    pub(super) fn stop(self) {
        self.runtime.block_on(self.daemon.stop());
    }
}

/// The token as the daemon takes it: from a file, which here is one that no path leads to.
fn token(shown: &ClientToken) -> Result<Token, CliError> {
    let failed = |source| CliError::Runtime { source };
    let file = memfd_create("belljar-token", MemfdFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let mut file = File::from(file);
    file.write_all(shown.expose()).map_err(failed)?;
    Ok(Token::read(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?)
}
