//! Complete account of the trust in an agent.

use super::change::TrustChange;
use super::state::TrustState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The trust in an agent, with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTrust {
    /// Present state.
    pub state: TrustState,
    /// All changes of levels, the last one last.
    pub changes: Vec<TrustChange>,
    /// Recorded events that change nothing.
    pub ignored: Vec<IgnoredEvent>,
}

/// An event that changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoredEvent {
    /// Id of the event.
    #[schemars(with = "String")]
    pub event_id: Uuid,
    /// Reason, for a person.
    pub why: String,
}
