//! An agent of which the rules of a house say nothing: a name with a slip in it would have the level of all that aren't listed.

use super::AccessRules;
use belljar_contract::id::AgentId;
use belljar_contract::yaml::instead_of;

/// No rule says what that agent may do.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no agent {agent} in tool_access.agents ({instead}); tool_access.default_level gives agents that are not listed a level"
)]
pub struct UnknownAgentError {
    agent: AgentId,
    /// Which there are, or the name that was meant.
    instead: String,
}

// === impl UnknownAgentError ===

impl UnknownAgentError {
    /// That of an agent that these rules don't cover.
    pub(super) fn of(agent: &AgentId, rules: &AccessRules) -> Self {
        let known: Vec<&str> = rules.agents().map(AgentId::as_str).collect();
        let instead = match known.is_empty() {
            true => "the configuration names none".to_owned(),
            false => instead_of(agent.as_str(), &known),
        };
        Self { agent: agent.clone(), instead }
    }
}
