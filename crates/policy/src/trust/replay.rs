//! The trust in an agent, from the beginning.

use super::outcome::{Ignored, Outcome};
use super::{Trust, TrustConfig};
use crate::access::Earned;
use crate::autonomy::Setback;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{AgentTrust, ChangeReason, IgnoredEvent, TrustChange, TrustEvent};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;
use uuid::Uuid;

/// What comes of all events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The trust in the agent.
    pub trust: Trust,
    /// How each level came about, the last one last.
    pub changes: Vec<TrustChange>,
    /// The events that change nothing, and why.
    pub ignored: Vec<(Uuid, Ignored)>,
}

/// The trust in an agent as time goes by: what is recorded is gone through once, however often somebody asks.
#[derive(Debug)]
pub struct History<'e> {
    config: &'e TrustConfig,
    trust: Trust,
    changes: Vec<TrustChange>,
    ignored: Vec<(Uuid, Ignored)>,
    known: BTreeSet<Uuid>,
    /// What is yet to come, by time.
    ahead: Peekable<IntoIter<&'e TrustEvent>>,
}

/// Works out the trust in an agent from the events that are recorded of it, in whatever order they come. The same events, and the same
/// time, give the same, however often it was worked out before.
pub fn replay<'e>(
    config: &'e TrustConfig,
    agent: &AgentId,
    events: impl IntoIterator<Item = &'e TrustEvent>,
    now: Timestamp,
) -> Replay {
    let mut history = History::new(config, agent, events);
    let mut replay = history.at(now);
    replay.ignored.extend(history.ahead.map(|event| (event.event_id, Ignored::NotYet)));
    replay
}

// === impl History ===

impl<'e> History<'e> {
    /// That of an agent, by the events that are recorded of it, in whatever order they come.
    pub fn new(
        config: &'e TrustConfig,
        agent: &AgentId,
        events: impl IntoIterator<Item = &'e TrustEvent>,
    ) -> Self {
        let mut events: Vec<&TrustEvent> = events.into_iter().collect();
        events.sort_unstable();
        Self {
            config,
            trust: Trust::new(agent.clone()),
            changes: Vec::new(),
            ignored: Vec::new(),
            known: BTreeSet::new(),
            ahead: events.into_iter().peekable(),
        }
    }

    /// What had come of it by then. Times are asked for in their order: one that was passed already is as the last one.
    pub fn at(&mut self, now: Timestamp) -> Replay {
        while let Some(event) = self.ahead.next_if(|event| event.at <= now) {
            self.apply(event);
        }
        let (mut trust, mut changes) = (self.trust.clone(), self.changes.clone());
        let at_last = trust.evaluate(self.config, now);
        changes.extend(at_last.into_iter().filter_map(|outcome| match outcome {
            Outcome::Changed(change) => Some(change),
            _ => None,
        }));
        Replay { trust, changes, ignored: self.ignored.clone() }
    }

    fn apply(&mut self, event: &TrustEvent) {
        let outcomes = if self.known.insert(event.event_id) {
            self.trust.apply(self.config, event)
        } else {
            Err(Ignored::Duplicate)
        };
        for outcome in outcomes.unwrap_or_else(|why| vec![Outcome::Ignored(why)]) {
            match outcome {
                Outcome::Changed(change) => self.changes.push(change),
                Outcome::Ignored(why) => self.ignored.push((event.event_id, why)),
                Outcome::NeedsApproval(_) | Outcome::Withdrawn { .. } => {}
            }
        }
    }
}

// === impl Replay ===

impl Replay {
    /// All of it, to be told.
    pub fn told(&self, config: &TrustConfig) -> AgentTrust {
        let ignored =
            |(event_id, why): &(Uuid, Ignored)| IgnoredEvent { event_id: *event_id, why: why.to_string() };
        AgentTrust {
            state: self.trust.state(config),
            changes: self.changes.clone(),
            ignored: self.ignored.iter().map(ignored).collect(),
        }
    }

    /// Why an event changes nothing, if it doesn't.
    pub fn ignored(&self, event_id: Uuid) -> Option<Ignored> {
        self.ignored.iter().find(|(id, _)| *id == event_id).map(|(_, why)| *why)
    }

    /// What the agent has come to by it; nothing, if nobody has hired it. Where nothing is earned, it is what a person has said, if one has.
    pub fn earned(&self, config: &TrustConfig) -> Option<Earned> {
        self.trust.life.as_ref()?;
        let is_said = || self.changes.iter().any(|change| change.reason == ChangeReason::Manual);
        if config.is_disabled() && !is_said() {
            return None;
        }
        let by_category = self.trust.tracks.iter().filter_map(|(category, track)| {
            let category = (*category)?;
            Some((category, track.level().access()))
        });
        Some(Earned {
            level: self.trust.global_level().access(),
            by_category: by_category.collect(),
            setback: self.changes.last().and_then(setback),
        })
    }
}

/// What the last change means for what it does by itself: until something else is said of it, or it has come up again.
fn setback(last: &TrustChange) -> Option<Setback> {
    match last.reason {
        ChangeReason::ErrorRate => Some(Setback::HighErrorRate),
        ChangeReason::SecurityIncident => Some(Setback::SecurityIncident),
        _ => None,
    }
}
