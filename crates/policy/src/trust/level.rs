//! The one way to another level.

use super::gate::Gate;
use belljar_contract::trust::{ProposedPromotion, Transition, TrustLevel};
use uuid::Uuid;

/// A level that a track may take: whoever holds one holds what allows it.
#[derive(Debug)]
pub(super) struct NewLevel(TrustLevel);

/// A person's approval of a promotion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Approval {
    /// What they approved of.
    pub(super) proposal_id: Uuid,
    /// The step, as it was put to them.
    pub(super) transition: Transition,
}

/// The highest level that anybody has without having been approved of for it.
pub(super) const HIGHEST_BY_ITSELF: TrustLevel = TrustLevel::Standard;

// === impl NewLevel ===

impl NewLevel {
    /// The level that one is hired with, where nothing ever changes it by itself: what a person has configured.
    pub(super) fn fixed(level: TrustLevel) -> Self {
        Self(level)
    }

    /// The level that one begins with, where it is earned.
    pub(super) fn begun(level: TrustLevel) -> Self {
        Self(level.min(HIGHEST_BY_ITSELF))
    }

    /// A lower one; nothing if it isn't lower.
    pub(super) fn lowered(from: TrustLevel, to: TrustLevel) -> Option<Self> {
        (to < from).then_some(Self(to))
    }

    /// The level that a step leads to whose gate was met; nothing where a person is to be asked, and so never `elevated`.
    pub(super) fn earned(from: TrustLevel, transition: Transition, gate: &Gate) -> Option<Self> {
        let asks = gate.asks_person || transition.to() > HIGHEST_BY_ITSELF;
        (transition.from() == from && !asks).then_some(Self(transition.to()))
    }

    /// The level that a person raises one to, as far as that goes without a proposal.
    pub(super) fn raised(from: TrustLevel, to: TrustLevel) -> Option<Self> {
        let to = to.min(HIGHEST_BY_ITSELF);
        (to > from).then_some(Self(to))
    }

    /// The level that a proposal leads to which a person approved of; nothing if they approved of another one, or if it
    /// doesn't begin where one is.
    pub(super) fn approved(
        from: TrustLevel,
        proposal: &ProposedPromotion,
        approval: Approval,
    ) -> Option<Self> {
        let is_this = approval.proposal_id == proposal.proposal_id
            && approval.transition == proposal.transition
            && proposal.transition.from() == from;
        is_this.then_some(Self(proposal.transition.to()))
    }

    /// The level.
    pub(super) fn get(&self) -> TrustLevel {
        self.0
    }
}
