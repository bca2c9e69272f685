//! What agents have earned, followed while they call: what is recorded of one counts within a moment, and so does what is lost because time
//! passes.
//!
//! ```text
//! TrustEvents ─► replay ─► HouseAccess::set_earned
//!      ▲            │
//!      └─ a look ◄──┘ where something came of it: it is recorded, so that whoever replays finds it
//! ```

use super::HouseAccess;
use belljar_contract::access::AccessLevel;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_policy::access::Earned;
use belljar_policy::trust::{TrustConfig, replay};
use belljar_store::trust::{RecordError, TrustEvents};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Follows what is recorded.
#[derive(Debug)]
pub struct Earning {
    events: TrustEvents,
    config: TrustConfig,
    access: Arc<HouseAccess>,
    known: BTreeMap<AgentId, Known>,
}

/// An agent, when it was last looked at.
#[derive(Debug)]
struct Known {
    /// How much was recorded of it.
    events: u64,
    at: Timestamp,
}

/// So often it is looked whether something was recorded.
const LOOK: Duration = Duration::from_millis(250);

/// So often it is looked whether something is lost by the time that has passed.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

// === impl Earning ===

impl Earning {
    /// Follows these events, by that configuration, for those rules.
    pub fn new(events: TrustEvents, config: TrustConfig, access: Arc<HouseAccess>) -> Self {
        Self { events, config, access, known: BTreeMap::new() }
    }

    /// Has an agent be there, at the level with which agents begin, unless something is recorded of it already. Where no level is earned,
    /// the configured one counts, and nobody has to be hired.
    ///
    /// # Errors
    /// [`RecordError`] when that can't be recorded.
    pub async fn hire(&self, agent: &AgentId, now: Timestamp) -> Result<(), RecordError> {
        if self.config.is_disabled() || !self.events.of(agent).await?.is_empty() {
            return Ok(());
        }
        self.record(agent, TrustEventKind::AgentHired { level: None }, now).await
    }

    /// Looks at what is recorded, and has that count.
    ///
    /// # Errors
    /// [`RecordError`] when it can't be read, or what came of it can't be recorded.
    pub async fn look(&mut self, now: Timestamp) -> Result<(), RecordError> {
        for (agent, events) in self.events.agents().await? {
            let is_new = self
                .known
                .get(&agent)
                .is_none_or(|known| known.events != events || now.duration_since(known.at) >= LOOK_AGAIN);
            if is_new {
                match self.work_out(&agent, now).await? {
                    Some(events) => drop(self.known.insert(agent, Known { events, at: now })),
                    None => drop(self.known.remove(&agent)),
                }
            }
        }
        Ok(())
    }

    /// Works out what an agent has earned; how much is recorded of it by then. Nothing, where something came of the look: of the next one
    /// more may come.
    async fn work_out(&self, agent: &AgentId, now: Timestamp) -> Result<Option<u64>, RecordError> {
        let mut events = self.events.of(agent).await?;
        let mut replayed = replay(&self.config, agent, &events, now);
        let has_changed = !replayed.at_last.is_empty();
        if has_changed {
            self.record(agent, TrustEventKind::Evaluated, now).await?;
            events = self.events.of(agent).await?;
            replayed = replay(&self.config, agent, &events, now);
        }
        self.access.set_earned(agent, replayed.earned(&self.config));
        Ok((!has_changed).then_some(events.len() as u64))
    }

    async fn record(&self, agent: &AgentId, kind: TrustEventKind, at: Timestamp) -> Result<(), RecordError> {
        let event = TrustEvent { at, event_id: Uuid::now_v7(), agent_id: agent.clone(), kind };
        self.events.record(&event).await.map(drop)
    }

    /// Does so again and again. While nobody knows what agents have earned, they have earned nothing.
    pub async fn follow(mut self, now: impl Fn() -> Timestamp, stopped: CancellationToken) {
        loop {
            tokio::select! {
                () = stopped.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if let Err(error) = self.look(now()).await {
                tracing::error!(%error, "nobody knows what agents have earned: until that is known, the lowest level counts");
                for agent in std::mem::take(&mut self.known).keys() {
                    self.access.set_earned(agent, Some(nothing()));
                }
            }
        }
    }
}

fn nothing() -> Earned {
    Earned { level: AccessLevel::Sandboxed, by_category: BTreeMap::new(), setback: None }
}
