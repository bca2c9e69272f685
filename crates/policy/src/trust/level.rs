//! Changes of levels: the only constructors of a new level.

use super::gate::Gate;
use belljar_contract::trust::{ProposedPromotion, Transition, TrustLevel};
use uuid::Uuid;

/// Level that a track may take. Each value was made by a rule that allows it.
#[derive(Debug)]
pub(super) struct NewLevel(TrustLevel);

/// Approval of a promotion by a user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Approval {
    /// Id of the approved proposal.
    pub(super) proposal_id: Uuid,
    /// Step, as it was shown to the user.
    pub(super) transition: Transition,
}

/// Highest level without an approval.
pub(super) const HIGHEST_BY_ITSELF: TrustLevel = TrustLevel::Standard;

// === impl NewLevel ===

impl NewLevel {
    /// Returns the configured level at hiring, where levels never change automatically.
    pub(super) fn fixed(level: TrustLevel) -> Self {
        Self(level)
    }

    /// Returns the level at hiring, where levels are earned.
    pub(super) fn begun(level: TrustLevel) -> Self {
        Self(level.min(HIGHEST_BY_ITSELF))
    }

    /// Returns a lower level; `None` if it isn't lower.
    pub(super) fn lowered(from: TrustLevel, to: TrustLevel) -> Option<Self> {
        (to < from).then_some(Self(to))
    }

    /// Returns the level of a step whose gate is met; `None` if it requires an approval, as `elevated` always does.
    pub(super) fn earned(from: TrustLevel, transition: Transition, gate: &Gate) -> Option<Self> {
        let asks = gate.asks_person || transition.to() > HIGHEST_BY_ITSELF;
        (transition.from() == from && !asks).then_some(Self(transition.to()))
    }

    /// Returns the level that a user raises an agent to, up to the highest one without a proposal.
    pub(super) fn raised(from: TrustLevel, to: TrustLevel) -> Option<Self> {
        let to = to.min(HIGHEST_BY_ITSELF);
        (to > from).then_some(Self(to))
    }

    /// Returns the level of an approved proposal; `None` if another one was approved, or if it doesn't begin at the current
    /// level.
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

    /// Returns the level.
    pub(super) fn get(&self) -> TrustLevel {
        self.0
    }
}
