//! What agents have earned, followed while they call: what is recorded of one counts within a moment, and so does what is gained or lost
//! because time passes. Nothing is recorded by it: levels follow from the events alone, so another process comes to the same ones.
//!
//! ```text
//! TrustBook ──► replay ─► HouseAccess::set_earned
//! ```

use super::{HouseAccess, TrustBook};
use belljar_contract::access::AccessLevel;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_policy::access::Earned;
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

/// Follows what is recorded.
#[derive(Debug)]
pub struct Earning {
    book: TrustBook,
    access: Arc<HouseAccess>,
    /// Held over a whole look: of two at once the later one sees no less.
    known: Mutex<BTreeMap<AgentId, Known>>,
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

/// So often it is looked whether something is gained or lost by the time that has passed.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(60);

// === impl Earning ===

impl Earning {
    /// Follows what is in that book, for those rules.
    pub fn new(book: TrustBook, access: Arc<HouseAccess>) -> Self {
        Self { book, access, known: Mutex::default() }
    }

    /// Has an agent be there, at the level with which agents begin, unless something is recorded of it already. Where no level is earned,
    /// the configured one counts, and nobody has to be hired.
    ///
    /// # Errors
    /// [`RecordError`] when that can't be recorded.
    pub async fn hire(&self, agent: &AgentId, now: Timestamp) -> Result<(), RecordError> {
        if self.book.config().is_disabled() || !self.book.events().of(agent).await?.is_empty() {
            return Ok(());
        }
        let kind = TrustEventKind::AgentHired { level: None };
        let event = TrustEvent { at: now, event_id: Uuid::now_v7(), agent_id: agent.clone(), kind };
        self.book.events().record(&event).await.map(drop)
    }

    /// Reads what is recorded, and has that count.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
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
                        // It is one of those whom nobody knows anything about, also if it was none before.
                        known.entry(agent).or_insert(Known { events: 0, at: now });
                        return Err(error);
                    }
                };
                known.insert(agent, Known { events, at: now });
            }
        }
        Ok(())
    }

    /// Works out what an agent has earned, and has that count. Returns the number of its events.
    async fn work_out(&self, agent: &AgentId, now: Timestamp) -> Result<u64, DatabaseError> {
        let config = self.book.config();
        let events = self.book.events().of(agent).await?;
        self.access.set_earned(agent, replay(config, agent, &events, now).earned(config));
        Ok(events.len() as u64)
    }

    /// Does so again and again. While nobody knows what agents have earned, they have earned nothing.
    pub async fn follow(self: Arc<Self>, now: impl Fn() -> Timestamp, stopped: CancellationToken) {
        loop {
            tokio::select! {
                () = stopped.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if let Err(error) = self.look(now()).await {
                tracing::error!(%error, "nobody knows what agents have earned: until that is known, the lowest level counts");
                for agent in std::mem::take(&mut *self.known.lock().await).keys() {
                    self.access.set_earned(agent, Some(nothing()));
                }
            }
        }
    }
}

fn nothing() -> Earned {
    Earned { level: AccessLevel::Sandboxed, by_category: BTreeMap::new(), setback: None }
}
