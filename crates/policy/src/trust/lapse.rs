//! Changes that fall due as time passes: lapses of trust, and steps up that take time.
//!
//! Their times follow from the events alone. Each full span of idleness costs a level at its end. Each verification interval is
//! checked when it is over. A step is taken at the time from which its gate is met. Due changes are made in order, however many
//! there are, and whether or not an evaluation happens meanwhile.

use super::config::{ReVerification, TrustConfig, USUAL_QUALITY};
use super::gate::Gate;
use super::moment::Moment;
use super::outcome::Outcome;
use super::record::{days, days_between};
use super::{AgentTimes, TrustTracker};
use belljar_contract::category::Category;
use belljar_contract::trust::{ChangeReason, TrustLevel};
use jiff::Timestamp;

/// Next due change, with its time.
#[derive(Debug, Clone, Copy)]
enum DueChange {
    Idle(Timestamp),
    Verification(Timestamp),
}

/// Limit up to which time passes.
#[derive(Debug, Clone, Copy)]
pub(super) enum TimeLimit {
    /// Up to an event. The event comes before steps up that are due at its moment, because a failure prevents them.
    Event(Timestamp),
    /// Up to and including that time.
    Moment(Timestamp),
}

// === impl TimeLimit ===

impl TimeLimit {
    fn at(self) -> Timestamp {
        match self {
            Self::Event(at) | Self::Moment(at) => at,
        }
    }

    /// Returns true if a step up that is due then is taken.
    fn includes(self, due: Timestamp) -> bool {
        match self {
            Self::Event(at) => due < at,
            Self::Moment(at) => due <= at,
        }
    }
}

// === impl TrustTracker ===

impl TrustTracker {
    /// Lets time pass. Lapses come before steps up of the same moment.
    pub(super) fn pass(&mut self, config: &TrustConfig, until: TimeLimit) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        loop {
            let step = self.next_step(config).filter(|step| until.includes(step.at));
            let horizon = step.as_ref().map_or(until.at(), |step| step.at);
            if let Some(decay) = config.re_verification()
                && let Some(due) = self.life.as_ref().and_then(|life| life.due(decay, horizon))
            {
                if self.tracks.values().any(|track| track.level() != TrustLevel::Sandboxed) {
                    outcomes.extend(self.lapse(config, due));
                    continue;
                }
                self.skip(decay, horizon);
            }
            let Some(step) = step else { break };
            outcomes.extend(self.step_up(&Moment::of_time(config, step.at), &step));
        }
        self.as_of = Some(until.at());
        outcomes
    }

    fn lapse(&mut self, config: &TrustConfig, due: DueChange) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        match due {
            DueChange::Idle(at) => {
                let moment = Moment::of_time(config, at);
                for category in self.categories() {
                    outcomes.extend(self.lower(&moment, category, ChangeReason::IdleDecay));
                }
                self.life.iter_mut().for_each(|life| life.idle_from = at);
            }
            DueChange::Verification(at) => {
                let moment = Moment::of_time(config, at);
                for category in self.categories() {
                    if !self.is_verified(config, category) {
                        outcomes.extend(self.lower(&moment, category, ChangeReason::ReVerificationFailed));
                    }
                }
                self.life.iter_mut().for_each(|life| life.verified_at = at);
                self.tracks.values_mut().for_each(|track| track.record.verify());
            }
        }
        outcomes
    }

    /// Returns true if the work since the last verification is as good as the step to the current level requires.
    fn is_verified(&self, config: &TrustConfig, category: Option<Category>) -> bool {
        let gate = self.level_of(category).by().and_then(|transition| config.gate(category, transition));
        let least = gate.and_then(Gate::quality_min).unwrap_or(USUAL_QUALITY);
        self.tracks.get(&category).is_some_and(|track| track.record.quality_lately() >= least)
    }

    /// Advances the spans up to that time without effect, if there is no level to lose.
    fn skip(&mut self, decay: &ReVerification, until: Timestamp) {
        let Some(life) = &mut self.life else { return };
        life.idle_from = last_end(life.idle_from, decay.decay_on_idle_days, until);
        let verified_at = last_end(life.verified_at, decay.interval_days, until);
        if verified_at != life.verified_at {
            life.verified_at = verified_at;
            self.tracks.values_mut().for_each(|track| track.record.verify());
        }
    }
}

// === impl AgentTimes ===

impl AgentTimes {
    fn due(&self, decay: &ReVerification, until: Timestamp) -> Option<DueChange> {
        let idle = after(self.idle_from, decay.decay_on_idle_days);
        let verification = after(self.verified_at, decay.interval_days);
        match idle <= verification {
            true => (idle <= until).then_some(DueChange::Idle(idle)),
            false => (verification <= until).then_some(DueChange::Verification(verification)),
        }
    }
}

/// Returns the end of a span of that many days; at most the end of time.
fn after(from: Timestamp, span_days: u32) -> Timestamp {
    from.checked_add(days(span_days)).unwrap_or(Timestamp::MAX)
}

/// Returns the end of the last complete span before that time.
fn last_end(from: Timestamp, span_days: u32, until: Timestamp) -> Timestamp {
    let spans = days_between(from, until).checked_div(span_days).unwrap_or_default();
    after(from, spans.saturating_mul(span_days))
}
