//! How a level came about.

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
    /// This change; the same whenever it is worked out again.
    #[schemars(with = "String")]
    pub id: Uuid,
    /// Whose level it is.
    pub agent_id: AgentId,
    /// Of which category, where each has a level of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// What it was.
    pub old: TrustLevel,
    /// What it is.
    pub new: TrustLevel,
    /// What led to it.
    pub reason: ChangeReason,
    /// When.
    pub at: Timestamp,
    /// The event that brought it about, if it wasn't the time that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub event_id: Option<Uuid>,
    /// The approval that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub approval_id: Option<Uuid>,
    /// Who said so, where a person set the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UserId>,
    /// Why, in that person's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What the agent had done by then.
    pub details: Figures,
}

/// What leads to another level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeReason {
    /// The score was high enough.
    ScoreThreshold,
    /// What was asked for had been done.
    MilestoneAchieved,
    /// A person approved of it.
    HumanApproval,
    /// The agent did nothing for too long.
    IdleDecay,
    /// It failed too often of late.
    ErrorRate,
    /// It was time to look again, and what it had done was not good enough, or nothing.
    ReVerificationFailed,
    /// It did what it must never do.
    SecurityIncident,
    /// A person said so.
    Manual,
}

/// What an agent has done, in numbers: since its record was begun, where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// When its record was begun.
    pub since: Timestamp,
    /// Tasks that it completed.
    pub tasks_completed: u64,
    /// Tasks that it failed at.
    pub tasks_failed: u64,
    /// How many of all it completed.
    pub completion_rate: Share,
    /// At how many of the last ones it failed.
    pub error_rate: Share,
    /// How well it did what it completed.
    pub quality: Quality,
    /// How hard that was.
    pub difficulty: Share,
    /// How content people were.
    pub human_feedback: Share,
    /// Whole days since it was begun.
    pub active_days: u32,
    /// Whole days without a failure, no more than the record is long.
    pub clean_days: u32,
    /// Whole days since the agent last did something.
    pub idle_days: u32,
    /// All of this in one number, where there is one.
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
