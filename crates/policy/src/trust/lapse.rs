//! What falls due by itself, as time passes: trust that lapses, and steps up that take time.
//!
//! When that happens follows from the events alone: for each full span of idleness a level goes, at its end, each span of
//! verification is looked back at when it is over, and a step is taken at the time from which its gate is met. What is due is done in
//! its order, however much of it there is at a time, and whether or not a person or a clock looks meanwhile.

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

/// Until when time passes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// Until an event, which goes before steps up that are due at its moment: a failure prevents them.
    Event(Timestamp),
    /// Until then, and all that is due by then.
    Moment(Timestamp),
}

// === impl Until ===

impl Until {
    fn at(self) -> Timestamp {
        match self {
            Self::Event(at) | Self::Moment(at) => at,
        }
    }

    /// Whether a step up that is due then is taken.
    fn includes(self, due: Timestamp) -> bool {
        match self {
            Self::Event(at) => due < at,
            Self::Moment(at) => due <= at,
        }
    }
}

// === impl Trust ===

impl Trust {
    /// Lets time pass until then. Of one moment, what lapses goes before any step up.
    pub(super) fn pass(&mut self, config: &TrustConfig, until: Until) -> Vec<Outcome> {
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
