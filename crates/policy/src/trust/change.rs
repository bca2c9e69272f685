//! Changes of a track: another level, or a proposal of one.

use super::level::NewLevel;
use super::moment::Moment;
use super::outcome::Outcome;
use super::record::days_between;
use super::track::Track;
use super::{TrustConfig, TrustTracker, identity};
use belljar_contract::category::Category;
use belljar_contract::trust::{
    AgentStatistics, ChangeReason, ProposedPromotion, Transition, TrustChange, TrustLevel,
};
use jiff::Timestamp;

// === impl TrustTracker ===

impl TrustTracker {
    /// Gives a track another level. A proposal for the old level is withdrawn.
    pub(super) fn change(
        &mut self,
        moment: &Moment<'_>,
        category: Option<Category>,
        level: &NewLevel,
        reason: ChangeReason,
    ) -> Vec<Outcome> {
        let Some(details) = self.figures(moment.config, category, moment.at) else { return Vec::new() };
        let Some(track) = self.tracks.get_mut(&category) else { return Vec::new() };
        let old = track.take(level, moment.at);
        let new = track.level();
        if new > old {
            self.last_promoted_at = Some(moment.at);
        }
        let cause = moment.cause.clone();
        let (by, note) = cause.word.unzip();
        let change = TrustChange {
            id: identity::of([
                "change",
                self.agent.as_str(),
                category.map_or("", Category::as_str),
                old.as_str(),
                new.as_str(),
                reason.as_str(),
                &moment.at.to_string(),
                &cause.event_id.map(|id| id.to_string()).unwrap_or_default(),
            ]),
            agent_id: self.agent.clone(),
            category,
            old,
            new,
            reason,
            at: moment.at,
            event_id: cause.event_id,
            approval_id: cause.approval_id,
            by,
            note,
            details,
        };
        let withdrawn = match reason {
            // The proposal was carried out.
            ChangeReason::HumanApproval => self.pending.remove(&category).and(None),
            _ => self.withdraw(category),
        };
        [Outcome::Changed(change)].into_iter().chain(withdrawn).collect()
    }

    /// Lowers a track by one level, unless it has the lowest.
    pub(super) fn lower(
        &mut self,
        moment: &Moment<'_>,
        category: Option<Category>,
        reason: ChangeReason,
    ) -> Vec<Outcome> {
        let level = self.level_of(category);
        let lower = level.lower().and_then(|lower| NewLevel::lowered(level, lower));
        lower.map_or_else(Vec::new, |lower| self.change(moment, category, &lower, reason))
    }

    /// Proposes a step, unless it is already proposed.
    pub(super) fn propose(
        &mut self,
        moment: &Moment<'_>,
        category: Option<Category>,
        transition: Transition,
        reason: ChangeReason,
    ) -> Vec<Outcome> {
        let is_this = |pending: &ProposedPromotion| pending.transition == transition;
        if self.pending.get(&category).is_some_and(is_this) {
            return Vec::new();
        }
        let Some(details) = self.figures(moment.config, category, moment.at) else { return Vec::new() };
        let proposal = ProposedPromotion {
            proposal_id: identity::of([
                "proposal",
                self.agent.as_str(),
                category.map_or("", Category::as_str),
                transition.as_str(),
                reason.as_str(),
                &moment.at.to_string(),
                &moment.cause.event_id.map(|id| id.to_string()).unwrap_or_default(),
            ]),
            agent_id: self.agent.clone(),
            category,
            transition,
            reason,
            proposed_at: moment.at,
            details,
        };
        self.pending.insert(category, proposal.clone());
        vec![Outcome::NeedsApproval(proposal)]
    }

    /// Withdraws the proposal of a track.
    pub(super) fn withdraw(&mut self, category: Option<Category>) -> Option<Outcome> {
        let ProposedPromotion { proposal_id, .. } = self.pending.remove(&category)?;
        Some(Outcome::Withdrawn { proposal_id })
    }

    /// Returns the tracks: each category with a level of its own, or one for all.
    pub(super) fn categories(&self) -> Vec<Option<Category>> {
        self.tracks.keys().copied().collect()
    }

    pub(super) fn level_of(&self, category: Option<Category>) -> TrustLevel {
        self.tracks.get(&category).map_or(TrustLevel::Sandboxed, Track::level)
    }

    /// Returns a track's record in numbers.
    pub(super) fn figures(
        &self,
        config: &TrustConfig,
        category: Option<Category>,
        now: Timestamp,
    ) -> Option<AgentStatistics> {
        let record = &self.tracks.get(&category)?.record;
        Some(AgentStatistics {
            since: record.since(),
            tasks_completed: record.completed(),
            tasks_failed: record.failed(),
            completion_rate: record.completion_rate(),
            error_rate: record.error_rate(),
            quality: record.quality(),
            difficulty: record.difficulty(),
            human_feedback: record.feedback(),
            active_days: record.active_days(now),
            clean_days: record.clean_days(now),
            idle_days: self.life.as_ref().map_or(0, |life| days_between(life.active_at, now)),
            score: config.weights().map(|weights| weights.score(record)),
        })
    }
}
