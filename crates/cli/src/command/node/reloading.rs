//! Reading a node's token and configuration again while it runs (SIGHUP).

use super::NodeArguments;
use crate::configuration::{self, Configuration, found};
use crate::error::CliError;
use crate::trusted_files;
use belljar_node::api::token::Token;
use belljar_node::daemon::{Daemon, ReloadedConfig};
use belljar_tools::bridge::config::ServersConfig;

// === impl NodeArguments ===

impl NodeArguments {
    /// Has the node take what its files say now. With a mistake in any of them nothing changes, and the log has the mistake.
    pub(super) async fn reload(&self, daemon: &mut Daemon) {
        let reloaded = match self.read_again() {
            Ok(reloaded) => reloaded,
            Err(error) => {
                tracing::error!(
                    error = error.chain(),
                    "SIGHUP: the reload failed; the previous configuration still applies"
                );
                return;
            }
        };
        let models = reloaded.models.as_ref().map_or(0, |models| models.models.iter().count());
        let servers = reloaded.servers.0.len();
        match daemon.reload(reloaded).await {
            Ok(()) => tracing::info!(
                models,
                servers,
                "SIGHUP: the token, the models, the rules for agents and the MCP servers were read again; all other settings apply after a \
                 restart"
            ),
            Err(error) => {
                tracing::error!(error = CliError::from(error).chain(), "SIGHUP: MCP servers are not there");
            }
        }
    }

    fn read_again(&self) -> Result<ReloadedConfig, CliError> {
        trusted_files::check_secret(&self.token_file)?;
        let token = Token::read(&self.token_file)?;
        let configuration = found(self.config.as_deref()).map(|path| configuration::read_again(&path));
        let Some(configuration) = configuration.transpose()? else {
            return Ok(ReloadedConfig {
                token,
                models: None,
                access: None,
                servers: ServersConfig::default(),
            });
        };
        let Configuration { inference: models, access, has_access, mcp, .. } = configuration;
        Ok(ReloadedConfig { token, models, access: has_access.then_some(access), servers: mcp.servers })
    }
}
