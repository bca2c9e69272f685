//! Progressive trust: which level an agent has by what is recorded of it (`spec/3 §Progressive Trust`).
//!
//! ```text
//! events, by time and id ─► what is due by then: demotions, steps up ─► what the event itself does ─► [`Outcome`]s
//!                                                                              │
//!                                                                              ▼
//!                            the gate of the next step: met ─► a step up, or a proposal that a person answers
//! ```
//! No I/O, no clock. [`Trust`] is had by events alone, and a level in it only by a [`level::NewLevel`], whose makers are few: a
//! step up to `elevated` takes a person's approval of that very proposal, whatever a configuration says. Demotions and
//! steps up fall due at times that follow from the events, so looking changes nothing, neither a level nor the id of a proposal. Each
//! demotion begins the record anew: what was done before it earns nothing any more.

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
pub use outcome::{Ignored, Outcome};
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

/// The trust in one agent, by what has been recorded of it so far. All of it is worked out under one configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    agent: AgentId,
    /// Nothing holds of an agent that nobody has hired.
    life: Option<Life>,
    /// One for all categories, or one for each of some.
    tracks: BTreeMap<Option<Category>, Track>,
    /// What a person has yet to answer, of each track.
    pending: BTreeMap<Option<Category>, ProposedPromotion>,
    /// The jobs that have counted.
    jobs: CountedJobs,
    last_promoted_at: Option<Timestamp>,
    /// The time and the id of the last event.
    last_event: Option<(Timestamp, Uuid)>,
    as_of: Option<Timestamp>,
}

/// When an agent did what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Life {
    hired_at: Timestamp,
    /// When it last did something itself.
    active_at: Timestamp,
    /// From when on the next span of idleness counts: a level went for each one before.
    idle_from: Timestamp,
    verified_at: Timestamp,
}

// === impl Trust ===

impl Trust {
    /// In an agent of which nothing is recorded.
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

    /// The level that holds for tools of a category. Where each has its own, one without has the lowest of them: nothing
    /// that was earned elsewhere counts for it.
    pub fn level_for(&self, category: Category) -> AccessLevel {
        let own = self.tracks.get(&Some(category)).map(Track::level);
        own.unwrap_or_else(|| self.global_level()).access()
    }

    /// All that is to be shown of it.
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
