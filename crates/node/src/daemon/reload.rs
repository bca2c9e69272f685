//! Reloading the configuration (SIGHUP): the token, the models, the access rules and the MCP servers. Other changes take
//! effect at the next start. The web policy file is followed without a reload.

use super::{Daemon, DaemonError};
use crate::api::token::Token;
use belljar_egress::inference::config::InferenceConfig;
use belljar_policy::access::AccessRules;
use belljar_tools::bridge::config::ServersConfig;

/// Configuration that was read again without an error.
pub struct ReloadedConfig {
    /// The token that the orchestrator presents from now on.
    pub token: Token,
    /// Models for runs that begin from now on.
    pub models: Option<InferenceConfig>,
    /// Access rules, effective from the next call, if the node was started with any.
    pub access: Option<AccessRules>,
    /// Other MCP servers. If any of them changed, all of them are reconnected.
    pub servers: ServersConfig,
}

// === impl Daemon ===

impl Daemon {
    /// Applies a reloaded configuration. Jobs and sessions continue, with the models that they began with.
    ///
    /// # Errors
    /// [`DaemonError::Threads`] when the bridge to MCP servers can't be started; everything else is applied.
    pub async fn reload(&mut self, reloaded: ReloadedConfig) -> Result<(), DaemonError> {
        let ReloadedConfig { token, models, access, servers } = reloaded;
        self.workplace.settings.token.replace(&token);
        self.workplace.models.replace(models);
        match (self.workplace.tools.house(), access) {
            (Some(house), Some(rules)) => house.access().set_rules(rules),
            (None, None) => {}
            (Some(_), None) => {
                tracing::warn!("the rules for agents that are gone count until the next start");
            }
            (None, Some(_)) => tracing::warn!("the first rules for agents count from the next start"),
        }
        if servers != self.servers {
            if let Some(bridge) = self.bridge.take() {
                bridge.end().await;
            }
            self.servers = servers.clone();
            let bridge = self.workplace.tools.bridge(&self.workplace, servers);
            self.bridge = bridge.map_err(|source| DaemonError::Threads { source })?;
        }
        Ok(())
    }
}
