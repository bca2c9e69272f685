//! Replays all events of an agent.

use super::outcome::{IgnoredReason, Outcome};
use super::{TrustConfig, TrustTracker};
use crate::access::EarnedLevels;
use crate::autonomy::Setback;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{
    AgentTrust, ChangeReason, IgnoredEvent, TrustChange, TrustEvent, TrustEventKind,
};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::iter::Peekable;
use std::vec::IntoIter;
use uuid::Uuid;

/// Result of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Trust in the agent.
    pub trust: TrustTracker,
    /// All changes of levels, the latest last.
    pub changes: Vec<TrustChange>,
    /// Events that changed nothing, with the reasons.
    pub ignored: Vec<(Uuid, IgnoredReason)>,
    /// The gravest setback that no later decision has ended.
    pub setback: Option<Setback>,
}

/// Trust in an agent over time. The events are replayed once, however many times are asked for.
#[derive(Debug)]
pub struct History<'e> {
    config: &'e TrustConfig,
    trust: TrustTracker,
    changes: Vec<TrustChange>,
    ignored: Vec<(Uuid, IgnoredReason)>,
    setback: Option<Setback>,
    known: BTreeSet<Uuid>,
    /// Events still to come, by time.
    ahead: Peekable<IntoIter<&'e TrustEvent>>,
}

/// Computes the trust in an agent from its recorded events, in any order. The same events and the same time give the same
/// result.
pub fn replay<'e>(
    config: &'e TrustConfig,
    agent: &AgentId,
    events: impl IntoIterator<Item = &'e TrustEvent>,
    now: Timestamp,
) -> Replay {
    let mut history = History::new(config, agent, events);
    let mut replay = history.at(now);
    replay.ignored.extend(history.ahead.map(|event| (event.event_id, IgnoredReason::NotYet)));
    replay
}

// === impl History ===

impl<'e> History<'e> {
    /// Creates the history of an agent from its recorded events, in any order.
    pub fn new(
        config: &'e TrustConfig,
        agent: &AgentId,
        events: impl IntoIterator<Item = &'e TrustEvent>,
    ) -> Self {
        let mut events: Vec<&TrustEvent> = events.into_iter().collect();
        events.sort_unstable();
        Self {
            config,
            trust: TrustTracker::new(agent.clone()),
            changes: Vec::new(),
            ignored: Vec::new(),
            setback: None,
            known: BTreeSet::new(),
            ahead: events.into_iter().peekable(),
        }
    }

    /// Returns the result up to that time. Times must not decrease; an earlier one counts as the latest.
    pub fn at(&mut self, now: Timestamp) -> Replay {
        while let Some(event) = self.ahead.next_if(|event| event.at <= now) {
            self.apply(event);
        }
        let (mut trust, mut changes) = (self.trust.clone(), self.changes.clone());
        let at_last = trust.evaluate(self.config, now).into_iter().filter_map(|outcome| match outcome {
            Outcome::Changed(change) => Some(change),
            _ => None,
        });
        let at_last: Vec<_> = at_last.collect();
        let setback = at_last.iter().fold(self.setback, after_change);
        changes.extend(at_last);
        Replay { trust, changes, ignored: self.ignored.clone(), setback }
    }

    fn apply(&mut self, event: &TrustEvent) {
        let outcomes = if self.known.insert(event.event_id) {
            self.trust.apply(self.config, event)
        } else {
            Err(IgnoredReason::Duplicate)
        };
        let outcomes = outcomes.unwrap_or_else(|why| vec![Outcome::Ignored(why)]);
        let is_ignored = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Ignored(_)));
        for outcome in outcomes {
            match outcome {
                Outcome::Changed(change) => {
                    self.setback = after_change(self.setback, &change);
                    self.changes.push(change);
                }
                Outcome::Ignored(why) => self.ignored.push((event.event_id, why)),
                Outcome::NeedsApproval(_) | Outcome::Withdrawn { .. } => {}
            }
        }
        // Both count also where the agent's level stays as it is.
        match event.kind {
            TrustEventKind::SecurityIncident if !is_ignored => self.setback = Some(Setback::SecurityIncident),
            TrustEventKind::LevelSet { .. } if !is_ignored => self.setback = None,
            _ => {}
        }
    }
}

// === impl Replay ===

impl Replay {
    /// Returns the result for display.
    pub fn told(&self, config: &TrustConfig) -> AgentTrust {
        let ignored = |(event_id, why): &(Uuid, IgnoredReason)| IgnoredEvent {
            event_id: *event_id,
            why: why.to_string(),
        };
        AgentTrust {
            state: self.trust.state(config),
            changes: self.changes.clone(),
            ignored: self.ignored.iter().map(ignored).collect(),
        }
    }

    /// Returns the reason why an event changes nothing; `None` if it changes something.
    pub fn ignored(&self, event_id: Uuid) -> Option<IgnoredReason> {
        self.ignored.iter().find(|(id, _)| *id == event_id).map(|(_, why)| *why)
    }

    /// Returns the levels that the agent has earned; `None` if it wasn't hired. If nothing is earned, returns levels that a
    /// user has set, if any.
    pub fn earned(&self, config: &TrustConfig) -> Option<EarnedLevels> {
        self.trust.life.as_ref()?;
        let is_said = || self.changes.iter().any(|change| change.reason == ChangeReason::Manual);
        if config.is_disabled() && !is_said() {
            return None;
        }
        let by_category = self.trust.tracks.iter().filter_map(|(category, track)| {
            let category = (*category)?;
            Some((category, track.level().access()))
        });
        Some(EarnedLevels {
            level: self.trust.global_level().access(),
            by_category: by_category.collect(),
            setback: self.setback,
        })
    }
}

/// Returns the setback that stands after a change. A person's decision ends each, and a level that the agent has earned again ends
/// one for errors. Lapses of trust end none.
fn after_change(standing: Option<Setback>, change: &TrustChange) -> Option<Setback> {
    match change.reason {
        ChangeReason::SecurityIncident => Some(Setback::SecurityIncident),
        ChangeReason::ErrorRate => standing.or(Some(Setback::HighErrorRate)),
        ChangeReason::Manual | ChangeReason::HumanApproval => None,
        ChangeReason::ScoreThreshold | ChangeReason::MilestoneAchieved => {
            standing.filter(|standing| *standing != Setback::HighErrorRate)
        }
        ChangeReason::IdleDecay | ChangeReason::ReVerificationFailed => standing,
    }
}
