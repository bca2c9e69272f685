//! Other MCP servers whose tools a node offers: finds their programs, and the host files that each may see.

use super::NodeTools;
use crate::job::NodeState;
use belljar_agent::program::InstalledProgram;
use belljar_egress::exchange::Exchanger;
use belljar_sandbox::lent_paths;
use belljar_sandbox::native::NativeBackend;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::spec::Lent;
use belljar_tools::bridge::config::{Folder, FolderMode, ServersConfig, StdioConfig};
use belljar_tools::bridge::{Bridge, BridgeResources, ServerProgram};
use belljar_trusted::trusted_file;
use std::error::Error;
use std::ffi::OsStr;
use std::sync::Arc;

impl NodeTools {
    /// Starts to connect to these servers; returns `None` without servers.
    pub(crate) fn bridge(
        &self,
        workplace: &NodeState,
        config: ServersConfig,
    ) -> std::io::Result<Option<Bridge>> {
        if config.0.is_empty() {
            return Ok(None);
        }
        let launcher = Arc::clone(&workplace.launcher);
        let means = BridgeResources {
            backend: Arc::new(NativeBackend::new(launcher, workplace.settings.state.clone())),
            required: workplace.settings.required.clone(),
            finder: Arc::new(found),
            exchanger: Arc::new(Exchanger::start()?),
        };
        Ok(Some(Bridge::start(config, self.gateway.registry(), &means)))
    }
}

/// Looks for a server's program in this process's `PATH`, and for the host files that it needs.
fn found(config: &StdioConfig) -> Result<ServerProgram, Box<dyn Error + Send + Sync>> {
    let workspace = match &config.workspace {
        None => WorkspaceChoice::Empty,
        Some(Folder { path, mode: FolderMode::Copy }) => WorkspaceChoice::Copy(lent_paths::resolve(path)?),
        Some(Folder { path, mode: FolderMode::Direct }) => {
            let path = lent_paths::resolve(path)?;
            // The places of configuration files were registered when the node started.
            trusted_file::lend_workspace(path.as_path(), &[])?;
            WorkspaceChoice::Direct(path)
        }
    };
    // A program in its own workspace could choose which host files are mounted at its next start.
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let InstalledProgram { command, mut lent, search_path } =
        InstalledProgram::find(OsStr::new(&config.command), &search_path)?;
    for path in &config.lend {
        lent.push(Lent::at_its_place(path)?);
    }
    Ok(ServerProgram { command, lent, workspace, search_path })
}
