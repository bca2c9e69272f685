//! Steps up that an agent has earned: one at a time, taken or proposed at the time when the gate of the step is met.

use super::lapse::TimeLimit;
use super::level::NewLevel;
use super::moment::Moment;
use super::outcome::Outcome;
use super::{TrustConfig, TrustTracker};
use belljar_contract::category::Category;
use belljar_contract::trust::{ChangeReason, ProposedPromotion, Transition};
use jiff::Timestamp;

/// Step up that a track's record has earned.
#[derive(Debug, Clone, Copy)]
pub(super) struct EarnedStep {
    category: Option<Category>,
    transition: Transition,
    /// Time from which it is earned. It is taken at this time, whenever it is computed.
    pub(super) at: Timestamp,
}

// === impl TrustTracker ===

impl TrustTracker {
    /// Advances the time, with all that falls due. A time before the latest one counts as that one.
    ///
    /// The outcomes follow from the events: calling this makes no difference for later results.
    pub fn evaluate(&mut self, config: &TrustConfig, now: Timestamp) -> Vec<Outcome> {
        let now = self.as_of.map_or(now, |as_of| as_of.max(now));
        self.pass(config, TimeLimit::Moment(now))
    }

    /// Settles the moment of an event: withdraws proposals that aren't justified any more, and lets each track take the step
    /// that its record has earned.
    pub(super) fn settle(&mut self, moment: &Moment<'_>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for category in self.categories() {
            let is_stale = |proposal: &ProposedPromotion| !self.is_justified(moment, proposal);
            if self.pending.get(&category).is_some_and(is_stale) {
                outcomes.extend(self.withdraw(category));
            }
            let step = self.step_of(moment.config, category).filter(|step| step.at <= moment.at);
            outcomes.extend(step.into_iter().flat_map(|step| self.step_up(moment, &step)));
        }
        outcomes
    }

    /// Returns the step up that is due first.
    pub(super) fn next_step(&self, config: &TrustConfig) -> Option<EarnedStep> {
        let steps = self.tracks.keys().filter_map(|category| self.step_of(config, *category));
        steps.min_by_key(|step| step.at)
    }

    /// Returns the step up that a track's record has earned, unless it is already proposed.
    fn step_of(&self, config: &TrustConfig, category: Option<Category>) -> Option<EarnedStep> {
        let track = self.tracks.get(&category)?;
        let transition = track.level().next()?;
        let is_this = |pending: &ProposedPromotion| pending.transition == transition;
        if self.pending.get(&category).is_some_and(is_this) {
            return None;
        }
        let earned_from = self.earned_from(config, category, transition)?;
        let at = earned_from.max(track.settled_from(config.jobs())?);
        Some(EarnedStep { category, transition, at })
    }

    pub(super) fn step_up(&mut self, moment: &Moment<'_>, step: &EarnedStep) -> Vec<Outcome> {
        let EarnedStep { category, transition, .. } = *step;
        let Some(gate) = moment.config.gate(category, transition) else { return Vec::new() };
        let reason = match moment.config.weights() {
            Some(_) => ChangeReason::ScoreThreshold,
            None => ChangeReason::MilestoneAchieved,
        };
        match NewLevel::earned(self.level_of(category), transition, gate) {
            Some(level) => self.change(moment, category, &level, reason),
            None => self.propose(moment, category, transition, reason),
        }
    }

    /// Returns true if a proposal is still justified. A proposal by a user stands until it is answered.
    pub(super) fn is_justified(&self, moment: &Moment<'_>, proposal: &ProposedPromotion) -> bool {
        let earned_from = || self.earned_from(moment.config, proposal.category, proposal.transition);
        proposal.reason == ChangeReason::Manual || earned_from().is_some_and(|from| from <= moment.at)
    }

    /// Returns the time from which the record meets the gate of a step. An error rate that would cost a level prevents any
    /// step.
    fn earned_from(
        &self,
        config: &TrustConfig,
        category: Option<Category>,
        transition: Transition,
    ) -> Option<Timestamp> {
        let record = &self.tracks.get(&category)?.record;
        let gate = config.gate(category, transition)?;
        gate.met_from(record, config.weights()).filter(|_| !config.fails_too_often(record))
    }
}
