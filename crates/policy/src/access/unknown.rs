//! Error for an agent without rules: a misspelt name would silently get the level of agents that aren't listed.

use super::AccessRules;
use belljar_contract::id::AgentId;
use belljar_contract::yaml::instead_of;

/// No rule covers that agent.
#[derive(Debug, thiserror::Error)]
#[error(
    "agent {agent} is not listed in tool_access.agents ({instead}); add it, or set tool_access.default_level for unlisted agents"
)]
pub struct UnknownAgentError {
    agent: AgentId,
    /// Known agents, or the name that was meant.
    instead: String,
}

// === impl UnknownAgentError ===

impl UnknownAgentError {
    /// Returns the error for an agent that these rules don't cover.
    pub(super) fn of(agent: &AgentId, rules: &AccessRules) -> Self {
        let known: Vec<&str> = rules.agents().map(AgentId::as_str).collect();
        let instead = match known.is_empty() {
            true => "the configuration names none".to_owned(),
            false => instead_of(agent.as_str(), &known),
        };
        Self { agent: agent.clone(), instead }
    }
}
