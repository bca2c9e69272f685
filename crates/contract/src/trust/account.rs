//! All that there is to tell of the trust in an agent.

use super::change::TrustChange;
use super::state::TrustState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The trust in an agent, with how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTrust {
    /// What it is.
    pub state: TrustState,
    /// How each level came about, the last one last.
    pub changes: Vec<TrustChange>,
    /// What is recorded and changes nothing.
    pub ignored: Vec<IgnoredEvent>,
}

/// An event that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredEvent {
    /// Which.
    #[schemars(with = "String")]
    pub event_id: Uuid,
    /// Why, for a person.
    pub why: String,
}
