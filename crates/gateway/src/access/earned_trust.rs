//! Keeps agents' earned trust up to date while they call: new events take effect within a moment, and so do changes by the
//! passage of time. Nothing is recorded by it: trust follows from the events alone, so every process computes the same.
//!
//! ```text
//! TrustBook ──► replay ─► HouseAccess::set_earned
//! ```

use super::{RuleBasedAccess, TrustRecords};
use belljar_contract::access::AccessLevel;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_policy::access::EarnedLevels;
use belljar_policy::trust::replay;
use belljar_store::database::DatabaseError;
use belljar_store::trust::RecordError;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Follows trust events.
#[derive(Debug)]
pub struct TrustFollower {
    book: TrustRecords,
    access: Arc<RuleBasedAccess>,
    /// Locked during a whole look, so that the later one of two concurrent looks sees no less.
    known: Mutex<BTreeMap<AgentId, AgentSnapshot>>,
}

/// State of an agent at the last look.
#[derive(Debug)]
struct AgentSnapshot {
    /// Number of its events.
    events: u64,
    at: Timestamp,
}

/// Interval at which new events are polled.
const LOOK: Duration = Duration::from_millis(250);

/// Interval at which trust is evaluated again, for changes by the passage of time.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

// === impl TrustFollower ===

impl TrustFollower {
    /// Returns a follower of these events, for those access rules.
    pub fn new(book: TrustRecords, access: Arc<RuleBasedAccess>) -> Self {
        Self { book, access, known: Mutex::default() }
    }

    /// Records an agent as hired at the initial level, unless it has events already. If trust is not earned, the configured level
    /// applies, and no record is needed.
    ///
    /// # Errors
    /// [`RecordError`] when the event can't be recorded.
    pub async fn hire(&self, agent: &AgentId, now: Timestamp) -> Result<(), RecordError> {
        if self.book.config().is_disabled() || !self.book.events().of(agent).await?.is_empty() {
            return Ok(());
        }
        let kind = TrustEventKind::AgentHired { level: None };
        let event = TrustEvent { at: now, event_id: Uuid::now_v7(), agent_id: agent.clone(), kind };
        self.book.events().record(&event).await.map(drop)
    }

    /// Reads new events, and applies them.
    ///
    /// # Errors
    /// [`DatabaseError`] when the events can't be read.
    pub async fn look(&self, now: Timestamp) -> Result<(), DatabaseError> {
        let mut known = self.known.lock().await;
        for (agent, events) in self.book.events().agents().await? {
            let is_new = known
                .get(&agent)
                .is_none_or(|known| known.events != events || now.duration_since(known.at) >= LOOK_AGAIN);
            if is_new {
                let events = match self.work_out(&agent, now).await {
                    Ok(events) => events,
                    Err(error) => {
                        // The agent is noted as unknown, even if it was not noted before, so that its trust is reset.
                        known.entry(agent).or_insert(AgentSnapshot { events: 0, at: now });
                        return Err(error);
                    }
                };
                known.insert(agent, AgentSnapshot { events, at: now });
            }
        }
        Ok(())
    }

    /// Evaluates an agent's events, and applies the result. Returns the number of its events.
    async fn work_out(&self, agent: &AgentId, now: Timestamp) -> Result<u64, DatabaseError> {
        let config = self.book.config();
        let events = self.book.events().of(agent).await?;
        self.access.set_earned(agent, replay(config, agent, &events, now).earned(config));
        Ok(events.len() as u64)
    }

    /// Looks at intervals. While events can't be read, all agents have the lowest trust.
    pub async fn follow(self: Arc<Self>, now: impl Fn() -> Timestamp, stopped: CancellationToken) {
        loop {
            tokio::select! {
                () = stopped.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if let Err(error) = self.look(now()).await {
                tracing::error!(%error, "can't read the earned trust of agents: the lowest level applies until it can be read");
                for agent in std::mem::take(&mut *self.known.lock().await).keys() {
                    self.access.set_earned(agent, Some(nothing()));
                }
            }
        }
    }
}

fn nothing() -> EarnedLevels {
    EarnedLevels { level: AccessLevel::Sandboxed, by_category: BTreeMap::new(), setback: None }
}
