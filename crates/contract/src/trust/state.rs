//! Levels of an agent.

use super::change::{AgentStatistics, ChangeReason};
use super::event::TrustEventKind;
use super::level::{Transition, TrustLevel};
use super::measure::Share;
use crate::access::AccessLevel;
use crate::category::Category;
use crate::id::AgentId;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// State of the trust in an agent at some time, for display. It is derived data; decisions don't use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustState {
    /// Agent that the state is about.
    pub agent_id: AgentId,
    /// Level for categories without one of their own; if categories have levels, the lowest of these.
    pub global_level: TrustLevel,
    /// Levels of categories, if each has its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub category_levels: BTreeMap<Category, TrustLevel>,
    /// Earned score, if it is a single number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Share>,
    /// Time of hiring; null if the agent was not hired.
    pub created_at: Option<Timestamp>,
    /// Time of the agent's last activity.
    pub last_active_at: Option<Timestamp>,
    /// Time of the last promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_promoted_at: Option<Timestamp>,
    /// Time of the last verification, by a person or on schedule.
    pub last_verified_at: Option<Timestamp>,
    /// Promotions that wait for a person's decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<ProposedPromotion>,
    /// Time that the state is about.
    pub as_of: Option<Timestamp>,
}

/// A promotion that requires a person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedPromotion {
    /// Id of the proposal. A decision about another proposal doesn't apply to this one.
    #[schemars(with = "String")]
    pub proposal_id: Uuid,
    /// Agent that would be promoted.
    pub agent_id: AgentId,
    /// Category, if each category has a level of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The step.
    pub transition: Transition,
    /// Reason of the proposal.
    pub reason: ChangeReason,
    /// Time from which on it has been proposed.
    pub proposed_at: Timestamp,
    /// Figures of the agent at that time.
    pub details: AgentStatistics,
}

// === impl ProposedPromotion ===

impl ProposedPromotion {
    /// Returns the event of its approval.
    pub fn approved(&self, approval_id: Uuid) -> TrustEventKind {
        let Self { proposal_id, transition, category, .. } = *self;
        TrustEventKind::PromotionApproved { approval_id, proposal_id, transition, category }
    }

    /// Returns the event of its denial.
    pub fn denied(&self, approval_id: Uuid) -> TrustEventKind {
        TrustEventKind::PromotionDenied { approval_id, proposal_id: self.proposal_id }
    }
}

// === impl TrustState ===

impl TrustState {
    /// Returns the level that applies to tools of a category.
    pub fn level_for(&self, category: Category) -> AccessLevel {
        self.category_levels.get(&category).copied().unwrap_or(self.global_level).access()
    }
}
