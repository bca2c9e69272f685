//! Changes of trust levels.

use super::level::TrustLevel;
use super::measure::{Quality, Share};
use crate::category::Category;
use crate::id::{AgentId, UserId};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A level that became another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustChange {
    /// Id of the change, which is the same whenever it is computed again.
    #[schemars(with = "String")]
    pub id: Uuid,
    /// Agent whose level changed.
    pub agent_id: AgentId,
    /// Category, if each category has a level of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// Level before the change.
    pub old: TrustLevel,
    /// Level after the change.
    pub new: TrustLevel,
    /// Reason of the change.
    pub reason: ChangeReason,
    /// Time of the change.
    pub at: Timestamp,
    /// Event that caused the change; absent if the passing of time did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub event_id: Option<Uuid>,
    /// Approval that the change required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub approval_id: Option<Uuid>,
    /// User who set the level, if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// Reason, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Figures of the agent at that time.
    pub details: AgentStatistics,
}

/// Reason of a change of level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeReason {
    /// The score has reached the threshold.
    ScoreThreshold,
    /// The requirements of the level were met.
    MilestoneAchieved,
    /// A person approved of it.
    HumanApproval,
    /// The agent was idle for too long.
    IdleDecay,
    /// The recent error rate was too high.
    ErrorRate,
    /// A re-verification was due, and the agent's results were insufficient or missing.
    ReVerificationFailed,
    /// The agent violated a security rule.
    SecurityIncident,
    /// A person set the level.
    Manual,
}

/// Figures of an agent's work, since the start of its record unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentStatistics {
    /// Start of its record.
    pub since: Timestamp,
    /// Tasks that it completed.
    pub tasks_completed: u64,
    /// Tasks that it failed at.
    pub tasks_failed: u64,
    /// Share of completed tasks in all tasks.
    pub completion_rate: Share,
    /// Share of failures in the last tasks.
    pub error_rate: Share,
    /// Quality of the completed tasks.
    pub quality: Quality,
    /// Difficulty of the completed tasks.
    pub difficulty: Share,
    /// Score of the feedback from people.
    pub human_feedback: Share,
    /// Whole days since the start of its record.
    pub active_days: u32,
    /// Whole days without a failure, at most the length of the record.
    pub clean_days: u32,
    /// Whole days since the agent's last activity.
    pub idle_days: u32,
    /// Score that combines these figures, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Share>,
}

// === impl ChangeReason ===

impl ChangeReason {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ScoreThreshold => "score_threshold",
            Self::MilestoneAchieved => "milestone_achieved",
            Self::HumanApproval => "human_approval",
            Self::IdleDecay => "idle_decay",
            Self::ErrorRate => "error_rate",
            Self::ReVerificationFailed => "re_verification_failed",
            Self::SecurityIncident => "security_incident",
            Self::Manual => "manual",
        }
    }
}

impl fmt::Display for ChangeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
