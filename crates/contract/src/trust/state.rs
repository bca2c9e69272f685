//! Which levels an agent has.

use super::change::{ChangeReason, Figures};
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

/// The trust in an agent at some time, to be shown. It is drawn from what decides, and decides nothing itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustState {
    /// Whom it is about.
    pub agent_id: AgentId,
    /// The level that holds where a category has none of its own: the lowest of those, where there are such.
    pub global_level: TrustLevel,
    /// The levels of categories, where each has its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub category_levels: BTreeMap<Category, TrustLevel>,
    /// What the agent has earned, where that is one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Share>,
    /// When it was hired; nobody has hired it otherwise.
    pub created_at: Option<Timestamp>,
    /// When it last did something itself.
    pub last_active_at: Option<Timestamp>,
    /// When it was last promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_promoted_at: Option<Timestamp>,
    /// When it was last looked at again, by a person or because it was due.
    pub last_verified_at: Option<Timestamp>,
    /// The promotions that a person has yet to answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<ProposedPromotion>,
    /// The time that all this is about.
    pub as_of: Option<Timestamp>,
}

/// A promotion that takes a person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedPromotion {
    /// This proposal: an answer to another one is none to this.
    #[schemars(with = "String")]
    pub proposal_id: Uuid,
    /// Who would be promoted.
    pub agent_id: AgentId,
    /// For which category, where each has a level of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The step.
    pub transition: Transition,
    /// What speaks for it.
    pub reason: ChangeReason,
    /// Since when it has been proposed.
    pub proposed_at: Timestamp,
    /// What the agent had done by then.
    pub details: Figures,
}

// === impl ProposedPromotion ===

impl ProposedPromotion {
    /// A person's yes to it.
    pub fn approved(&self, approval_id: Uuid) -> TrustEventKind {
        let Self { proposal_id, transition, category, .. } = *self;
        TrustEventKind::PromotionApproved { approval_id, proposal_id, transition, category }
    }

    /// A person's no to it.
    pub fn denied(&self, approval_id: Uuid) -> TrustEventKind {
        TrustEventKind::PromotionDenied { approval_id, proposal_id: self.proposal_id }
    }
}

// === impl TrustState ===

impl TrustState {
    /// The level that holds for tools of a category.
    pub fn level_for(&self, category: Category) -> AccessLevel {
        self.category_levels.get(&category).copied().unwrap_or(self.global_level).access()
    }
}
