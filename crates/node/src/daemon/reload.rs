//! What a node takes from its configuration again when it is told to (SIGHUP): the token, the models, the rules for
//! agents and the MCP servers. Everything else counts from the next start. The policy for the web is followed by itself.

use super::{Daemon, DaemonError};
use crate::api::token::Token;
use belljar_egress::inference::config::InferenceConfig;
use belljar_policy::access::AccessRules;
use belljar_tools::bridge::config::ServersConfig;

/// What was read again, without a mistake.
pub struct Reloaded {
    /// The token that the orchestrator shows from now on.
    pub token: Token,
    /// Models for runs that begin from now on.
    pub models: Option<InferenceConfig>,
    /// Rules for agents, which count from the next call, where the node has begun with any.
    pub access: Option<AccessRules>,
    /// Other servers, whose tools are the node's, too. Connections to those that stay as they are stay only if all do.
    pub servers: ServersConfig,
}

// === impl Daemon ===

impl Daemon {
    /// Takes what was read again. Jobs and sessions go on, with the models that they began with.
    ///
    /// # Errors
    /// [`DaemonError::Threads`] when MCP servers can't be connected to; the rest counts.
    pub async fn reload(&mut self, reloaded: Reloaded) -> Result<(), DaemonError> {
        let Reloaded { token, models, access, servers } = reloaded;
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
