//! Trust that lapses by itself, as time passes.
//!
//! When that happens follows from the events alone: for each full span of idleness a level goes, at its end, and each span of
//! verification is looked back at when it is over. What is due is done in its order, however much of it there is at a time.

use super::config::{ReVerification, TrustConfig, USUAL_QUALITY};
use super::gate::Gate;
use super::moment::Moment;
use super::outcome::Outcome;
use super::record::{days, days_between};
use super::{Life, Trust};
use belljar_contract::category::Category;
use belljar_contract::trust::{ChangeReason, TrustLevel};
use jiff::Timestamp;

/// What is due next, and when.
#[derive(Debug, Clone, Copy)]
enum Due {
    Idle(Timestamp),
    Verification(Timestamp),
}

// === impl Trust ===

impl Trust {
    /// Lets time pass until then.
    pub(super) fn pass(&mut self, config: &TrustConfig, until: Timestamp) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        if let Some(decay) = config.re_verification() {
            while let Some(due) = self.life.as_ref().and_then(|life| life.due(decay, until)) {
                if self.tracks.values().all(|track| track.level() == TrustLevel::Sandboxed) {
                    self.skip(decay, until);
                    break;
                }
                outcomes.extend(self.lapse(config, due));
            }
        }
        self.as_of = Some(until);
        outcomes
    }

    fn lapse(&mut self, config: &TrustConfig, due: Due) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        match due {
            Due::Idle(at) => {
                let moment = Moment::of_time(config, at);
                for category in self.categories() {
                    outcomes.extend(self.lower(&moment, category, ChangeReason::IdleDecay));
                }
                self.life.iter_mut().for_each(|life| life.idle_from = at);
            }
            Due::Verification(at) => {
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

    /// Whether what was done since the last time is as good as the step to the level takes.
    fn is_verified(&self, config: &TrustConfig, category: Option<Category>) -> bool {
        let gate = self.level_of(category).by().and_then(|transition| config.gate(category, transition));
        let least = gate.and_then(Gate::quality_min).unwrap_or(USUAL_QUALITY);
        self.tracks.get(&category).is_some_and(|track| track.record.quality_lately() >= least)
    }

    /// As if all had been done that is due until then, where nobody has anything to lose by it.
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

// === impl Life ===

impl Life {
    fn due(&self, decay: &ReVerification, until: Timestamp) -> Option<Due> {
        let idle = after(self.idle_from, decay.decay_on_idle_days);
        let verification = after(self.verified_at, decay.interval_days);
        match idle <= verification {
            true => (idle <= until).then_some(Due::Idle(idle)),
            false => (verification <= until).then_some(Due::Verification(verification)),
        }
    }
}

/// The end of a span of so many days; of one that is longer than time is, the end of that.
fn after(from: Timestamp, span_days: u32) -> Timestamp {
    from.checked_add(days(span_days)).unwrap_or(Timestamp::MAX)
}

/// The end of the last of the spans from there on that is over by then.
fn last_end(from: Timestamp, span_days: u32, until: Timestamp) -> Timestamp {
    let spans = days_between(from, until).checked_div(span_days).unwrap_or_default();
    after(from, spans.saturating_mul(span_days))
}
