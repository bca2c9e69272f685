//! Effects of events.

use super::jobs::{CompletedJob, end_of_job};
use super::lapse::TimeLimit;
use super::level::{Approval, HIGHEST_BY_ITSELF, NewLevel};
use super::moment::{Cause, Moment};
use super::outcome::{IgnoredReason, Outcome};
use super::record::CompletedTask;
use super::track::Track;
use super::{AgentTimes, TrustConfig, TrustTracker};
use belljar_contract::category::Category;
use belljar_contract::trust::{
    ChangeReason, ProposedPromotion, Transition, TrustEvent, TrustEventKind, TrustLevel,
};
use std::cmp::Ordering;
use uuid::Uuid;

// === impl TrustTracker ===

impl TrustTracker {
    /// Applies an event, after the time that passed until it.
    ///
    /// # Errors
    /// [`IgnoredReason`], if it can't be an event of this agent at this point; then nothing changes. An event that is
    /// [`IgnoredReason::Late`] counts once all events are replayed in order.
    pub fn apply(&mut self, config: &TrustConfig, event: &TrustEvent) -> Result<Vec<Outcome>, IgnoredReason> {
        self.accept(event)?;
        self.last_event = Some((event.at, event.event_id));
        let mut outcomes = self.pass(config, TimeLimit::Event(event.at));
        outcomes.extend(self.take(config, event));
        let cause = Cause { event_id: Some(event.event_id), ..Cause::default() };
        outcomes.extend(self.settle(&Moment { config, at: event.at, cause }));
        Ok(outcomes)
    }

    fn accept(&self, event: &TrustEvent) -> Result<(), IgnoredReason> {
        if event.agent_id != self.agent {
            return Err(IgnoredReason::OtherAgent);
        }
        let key = (event.at, event.event_id);
        let since_last = self.last_event.map(|last| key.cmp(&last));
        if since_last == Some(Ordering::Equal) {
            return Err(IgnoredReason::Duplicate);
        }
        let is_past = self.as_of.is_some_and(|as_of| event.at < as_of);
        if is_past || since_last == Some(Ordering::Less) {
            return Err(IgnoredReason::Late);
        }
        match (&event.kind, &self.life) {
            (TrustEventKind::AgentHired { .. }, Some(_)) => Err(IgnoredReason::HiredAlready),
            (TrustEventKind::AgentHired { .. }, None) | (_, Some(_)) => Ok(()),
            (_, None) => Err(IgnoredReason::NotHired),
        }
    }

    fn take(&mut self, config: &TrustConfig, event: &TrustEvent) -> Vec<Outcome> {
        let cause = Cause { event_id: Some(event.event_id), ..Cause::default() };
        let mut moment = Moment { config, at: event.at, cause };
        match &event.kind {
            TrustEventKind::AgentHired { level } => self.hire(&moment, *level),
            TrustEventKind::TaskCompleted { category, difficulty, quality } => {
                let task = CompletedTask {
                    difficulty: difficulty.unwrap_or_default(),
                    quality: quality.unwrap_or_default(),
                };
                return self.complete(&moment, *category, task);
            }
            TrustEventKind::JobCompleted { category, task_id, content, is_checked } => {
                let (at, content, is_checked) = (event.at, *content, *is_checked);
                let (event_id, track) = (event.event_id, self.track_of(*category));
                let job = CompletedJob { at, event_id, track, task_id, content, is_checked };
                return self.complete_job(&moment, job);
            }
            TrustEventKind::JobAssessed { job_id, difficulty, quality, by: _ } => {
                let task = CompletedTask {
                    difficulty: difficulty.unwrap_or_default(),
                    quality: quality.unwrap_or_default(),
                };
                return self.assess(end_of_job(job_id), task);
            }
            TrustEventKind::TaskFailed { category } => return self.fail(&moment, *category),
            TrustEventKind::HumanFeedback { score } => {
                self.tracks.values_mut().for_each(|track| track.record.hear(*score));
            }
            // Everything that was due by its time is done already, as before each event.
            TrustEventKind::Evaluated => {}
            TrustEventKind::PromotionApproved { approval_id, proposal_id, transition, category } => {
                moment.cause.approval_id = Some(*approval_id);
                let approval = Approval { proposal_id: *proposal_id, transition: *transition };
                return self.approve(&moment, *category, approval);
            }
            TrustEventKind::PromotionDenied { proposal_id, .. } => return self.deny(&moment, *proposal_id),
            TrustEventKind::LevelSet { level, category, reason, by } => {
                moment.cause.word = Some((by.clone(), reason.clone()));
                return self.set(&moment, *category, *level);
            }
            TrustEventKind::SecurityIncident => return self.distrust(&moment),
            TrustEventKind::ReVerified { .. } => {
                if let Some(life) = &mut self.life {
                    life.verified_at = event.at;
                }
                self.tracks.values_mut().for_each(|track| track.record.verify());
            }
        }
        Vec::new()
    }

    fn hire(&mut self, moment: &Moment<'_>, level: Option<TrustLevel>) {
        let at = moment.at;
        self.life = Some(AgentTimes { hired_at: at, active_at: at, idle_from: at, verified_at: at });
        let tracks = moment.config.begins().map(|(category, initial)| {
            let level = match (moment.config.is_disabled(), level) {
                (true, level) => NewLevel::fixed(level.unwrap_or(initial)),
                // The level at hiring is no reason for more trust than other agents get.
                (false, level) => NewLevel::begun(level.map_or(initial, |level| level.min(initial))),
            };
            (category, Track::begin(&level, at))
        });
        self.tracks = tracks.collect();
    }

    fn complete(
        &mut self,
        moment: &Moment<'_>,
        category: Option<Category>,
        task: CompletedTask,
    ) -> Vec<Outcome> {
        self.was_active(moment);
        if let Some(track) = self.tracks.get_mut(&self.track_of(category)) {
            track.record.complete(task);
        }
        Vec::new()
    }

    /// The difficulty and quality of a job are unknown, and count as zero until it is assessed.
    fn complete_job(&mut self, moment: &Moment<'_>, job: CompletedJob<'_>) -> Vec<Outcome> {
        self.was_active(moment);
        if let Err(why) = self.jobs.count(moment.config.jobs(), job) {
            return vec![Outcome::Ignored(why)];
        }
        if let Some(track) = self.tracks.get_mut(&job.track) {
            track.record.complete_job();
        }
        Vec::new()
    }

    /// Adds the difficulty and quality of a counted job. A job from before a demotion doesn't count any more.
    fn assess(&mut self, end: Uuid, task: CompletedTask) -> Vec<Outcome> {
        let (category, at) = match self.jobs.assess(end) {
            Ok(counted) => counted,
            Err(why) => return vec![Outcome::Ignored(why)],
        };
        let is_lately = self.life.as_ref().is_some_and(|life| at > life.verified_at);
        match self.tracks.get_mut(&category).filter(|track| at > track.record.since()) {
            Some(track) => track.record.assess(task, is_lately),
            None => return vec![Outcome::Ignored(IgnoredReason::NotCounted)],
        }
        Vec::new()
    }

    /// Records a failure. One that belongs to no track counts against all.
    fn fail(&mut self, moment: &Moment<'_>, category: Option<Category>) -> Vec<Outcome> {
        self.was_active(moment);
        let own = self.track_of(category);
        let meant = if self.tracks.contains_key(&own) { vec![own] } else { self.categories() };
        let mut outcomes = Vec::new();
        for category in meant {
            let Some(track) = self.tracks.get_mut(&category) else { continue };
            track.record.fail(moment.at);
            if moment.config.fails_too_often(&track.record) {
                outcomes.extend(self.lower(moment, category, ChangeReason::ErrorRate));
            }
        }
        outcomes
    }

    /// Returns the track of a category's tasks: the common one, if there is a single level.
    fn track_of(&self, category: Option<Category>) -> Option<Category> {
        if self.tracks.contains_key(&None) { None } else { category }
    }

    fn was_active(&mut self, moment: &Moment<'_>) {
        if let Some(life) = &mut self.life {
            (life.active_at, life.idle_from) = (moment.at, moment.at);
        }
    }

    /// Carries out an approved proposal, if it is the current one and still justified.
    fn approve(
        &mut self,
        moment: &Moment<'_>,
        category: Option<Category>,
        approval: Approval,
    ) -> Vec<Outcome> {
        let proposal = self.pending.get(&category);
        let level = proposal.and_then(|proposal| {
            Some((proposal, NewLevel::approved(self.level_of(category), proposal, approval)?))
        });
        match level {
            None => vec![Outcome::Ignored(IgnoredReason::NotProposed)],
            Some((proposal, _)) if !self.is_justified(moment, proposal) => {
                let withdrawn = self.withdraw(category);
                withdrawn.into_iter().chain([Outcome::Ignored(IgnoredReason::NotJustified)]).collect()
            }
            Some((_, level)) => self.change(moment, category, &level, ChangeReason::HumanApproval),
        }
    }

    /// Denies a proposal. A new proposal requires a new record.
    fn deny(&mut self, moment: &Moment<'_>, proposal_id: Uuid) -> Vec<Outcome> {
        let is_this = |pending: &ProposedPromotion| pending.proposal_id == proposal_id;
        let denied = self.pending.iter().find(|(_, pending)| is_this(pending)).map(|(category, _)| *category);
        let Some(category) = denied else { return vec![Outcome::Ignored(IgnoredReason::NotProposed)] };
        if let Some(track) = self.tracks.get_mut(&category) {
            track.begin_after_denial(moment.at);
        }
        self.withdraw(category).into_iter().collect()
    }

    /// Sets a level by a user's decision. Lowering is immediate; so is raising, up to the level that requires an approval.
    fn set(&mut self, moment: &Moment<'_>, category: Option<Category>, to: TrustLevel) -> Vec<Outcome> {
        let has_categories = !self.tracks.contains_key(&None);
        let meant = match category {
            None => self.categories(),
            Some(_) if !has_categories => return vec![Outcome::Ignored(IgnoredReason::NoCategories)],
            Some(_) => {
                // A category without a level of its own had the lowest of the others.
                let lowest = NewLevel::begun(self.global_level());
                self.tracks.entry(category).or_insert_with(|| Track::begin(&lowest, moment.at));
                vec![category]
            }
        };
        meant.into_iter().flat_map(|category| self.set_one(moment, category, to)).collect()
    }

    fn set_one(&mut self, moment: &Moment<'_>, category: Option<Category>, to: TrustLevel) -> Vec<Outcome> {
        let from = self.level_of(category);
        let level = NewLevel::lowered(from, to).or_else(|| NewLevel::raised(from, to));
        let mut outcomes = match level {
            Some(level) => self.change(moment, category, &level, ChangeReason::Manual),
            None => self.withdraw(category).into_iter().collect(),
        };
        if to > HIGHEST_BY_ITSELF && self.level_of(category) == HIGHEST_BY_ITSELF {
            let transition = Transition::StandardToElevated;
            outcomes.extend(self.propose(moment, category, transition, ChangeReason::Manual));
        }
        outcomes
    }

    fn distrust(&mut self, moment: &Moment<'_>) -> Vec<Outcome> {
        if moment.config.is_disabled() {
            return vec![Outcome::Ignored(IgnoredReason::Disabled)];
        }
        let mut outcomes = Vec::new();
        for category in self.categories() {
            match NewLevel::lowered(self.level_of(category), TrustLevel::Sandboxed) {
                Some(level) => {
                    outcomes.extend(self.change(moment, category, &level, ChangeReason::SecurityIncident));
                }
                None => {
                    outcomes.extend(self.withdraw(category));
                    self.tracks
                        .insert(category, Track::begin(&NewLevel::begun(TrustLevel::Sandboxed), moment.at));
                }
            }
        }
        outcomes
    }
}
