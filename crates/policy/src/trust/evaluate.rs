//! What an agent has earned by now: one step up at a time, or a proposal of one.

use super::level::NewLevel;
use super::moment::Moment;
use super::outcome::Outcome;
use super::{Trust, TrustConfig};
use belljar_contract::category::Category;
use belljar_contract::trust::{ChangeReason, ProposedPromotion, Transition};
use jiff::Timestamp;

// === impl Trust ===

impl Trust {
    /// Looks at what the agent has earned by then. Demotions that are due come first; whoever has just been given another
    /// level isn't promoted at the same moment. A time that has been looked past already counts as the last one.
    ///
    /// What comes of it can be worked out again only if it is known when somebody looked: whoever keeps the events applies one
    /// of [`belljar_contract::trust::TrustEventKind::Evaluated`] instead, and keeps it if something came of it.
    pub fn evaluate(&mut self, config: &TrustConfig, now: Timestamp) -> Vec<Outcome> {
        let now = self.as_of.map_or(now, |as_of| as_of.max(now));
        let mut outcomes = self.pass(config, now);
        let moment = Moment::of_time(config, now);
        for category in self.categories() {
            let is_stale = |proposal: &ProposedPromotion| !self.is_justified(&moment, proposal);
            if self.pending.get(&category).is_some_and(is_stale) {
                outcomes.extend(self.withdraw(category));
            }
            outcomes.extend(self.promote(&moment, category));
        }
        outcomes
    }

    fn promote(&mut self, moment: &Moment<'_>, category: Option<Category>) -> Vec<Outcome> {
        let rules = moment.config.jobs();
        let Some(track) = self.tracks.get(&category).filter(|track| track.is_settled(rules, moment.at))
        else {
            return Vec::new();
        };
        let Some(transition) = track.level().next() else { return Vec::new() };
        let Some(gate) = moment.config.gate(category, transition) else { return Vec::new() };
        if !self.has_earned(moment, category, transition) {
            return Vec::new();
        }
        let reason = match moment.config.weights() {
            Some(_) => ChangeReason::ScoreThreshold,
            None => ChangeReason::MilestoneAchieved,
        };
        match NewLevel::earned(track.level(), transition, gate) {
            Some(level) => self.change(moment, category, &level, reason),
            None => self.propose(moment, category, transition, reason),
        }
    }

    /// Whether a proposal still stands as it was made. One that a person made stands until somebody answers it.
    pub(super) fn is_justified(&self, moment: &Moment<'_>, proposal: &ProposedPromotion) -> bool {
        proposal.reason == ChangeReason::Manual
            || self.has_earned(moment, proposal.category, proposal.transition)
    }

    /// Whether the gate of a step is met. Whoever fails so often that it would cost a level gains none.
    fn has_earned(&self, moment: &Moment<'_>, category: Option<Category>, transition: Transition) -> bool {
        let Some(track) = self.tracks.get(&category) else { return false };
        let Some(gate) = moment.config.gate(category, transition) else { return false };
        let config = moment.config;
        gate.is_met(&track.record, config.weights(), moment.at) && !config.fails_too_often(&track.record)
    }
}
