//! Progressive trust: the level that an agent has earned by its recorded events (`docs/contracts/tools.md#t17`).
//!
//! ```text
//! events, by time and id ─► what is due by then: demotions, steps up ─► what the event itself does ─► [`Outcome`]s
//!                                                                              │
//!                                                                              ▼
//!                            the gate of the next step: met ─► a step up, or a proposal that a person answers
//! ```
//! No I/O, no clock. Only events change [`TrustTracker`], and only a [`level::NewLevel`] changes a level in it. That type has few
//! constructors: a step up to `elevated` requires a user's approval of that very proposal, whatever is configured. Demotions
//! and steps up fall due at times that follow from the events. So an evaluation changes neither a level nor the id of a
//! proposal. Each demotion begins a new record: earlier work earns nothing any more.

mod change;
mod config;
mod evaluate;
mod event;
mod gate;
mod identity;
mod jobs;
mod lapse;
mod level;
mod moment;
mod outcome;
mod record;
mod replay;
mod track;

pub use config::{Strategy, TrustConfig};
pub use jobs::end_of_job;
pub use outcome::{IgnoredReason, Outcome};
pub use replay::{History, Replay, replay};

use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{ProposedPromotion, TrustLevel, TrustState};
use jiff::Timestamp;
use jobs::CountedJobs;
use std::collections::BTreeMap;
use track::Track;
use uuid::Uuid;

/// Trust in one agent, by its recorded events so far. All of it is computed under one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustTracker {
    agent: AgentId,
    /// `None` for an agent that was not hired.
    life: Option<AgentTimes>,
    /// One track for all categories, or one for each of some.
    tracks: BTreeMap<Option<Category>, Track>,
    /// Unanswered proposal of each track.
    pending: BTreeMap<Option<Category>, ProposedPromotion>,
    /// Jobs that have counted.
    jobs: CountedJobs,
    last_promoted_at: Option<Timestamp>,
    /// Time and id of the latest event.
    last_event: Option<(Timestamp, Uuid)>,
    as_of: Option<Timestamp>,
}

/// Times in the life of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AgentTimes {
    hired_at: Timestamp,
    /// Time of the agent's own latest activity.
    active_at: Timestamp,
    /// Beginning of the current span of idleness. Each span before it has cost a level.
    idle_from: Timestamp,
    verified_at: Timestamp,
}

// === impl TrustTracker ===

impl TrustTracker {
    /// Returns the trust in an agent without recorded events.
    pub fn new(agent: AgentId) -> Self {
        Self {
            agent,
            life: None,
            tracks: BTreeMap::new(),
            pending: BTreeMap::new(),
            jobs: CountedJobs::default(),
            last_promoted_at: None,
            last_event: None,
            as_of: None,
        }
    }

    /// Returns the level for tools of a category. If categories have levels of their own, one without has the lowest of them:
    /// trust that was earned elsewhere doesn't count for it.
    pub fn level_for(&self, category: Category) -> AccessLevel {
        let own = self.tracks.get(&Some(category)).map(Track::level);
        own.unwrap_or_else(|| self.global_level()).access()
    }

    /// Returns the state for display.
    pub fn state(&self, config: &TrustConfig) -> TrustState {
        let levels = self.tracks.iter().filter_map(|(category, track)| Some(((*category)?, track.level())));
        let score = self.as_of.and_then(|now| self.figures(config, None, now)?.score);
        TrustState {
            agent_id: self.agent.clone(),
            global_level: self.global_level(),
            category_levels: levels.collect(),
            score,
            created_at: self.life.as_ref().map(|life| life.hired_at),
            last_active_at: self.life.as_ref().map(|life| life.active_at),
            last_promoted_at: self.last_promoted_at,
            last_verified_at: self.life.as_ref().map(|life| life.verified_at),
            pending: self.pending.values().cloned().collect(),
            as_of: self.as_of,
        }
    }

    fn global_level(&self) -> TrustLevel {
        self.tracks.values().map(Track::level).min().unwrap_or(TrustLevel::Sandboxed)
    }
}

#[cfg(test)]
mod cases;
