//! What agents have earned, followed while they call: what is recorded of one counts within a moment, and so does what is lost because time
//! passes.
//!
//! ```text
//! TrustBook ──► replay ─► HouseAccess::set_earned
//!      ▲            │
//!      └─ a look ◄──┘ where something came of it: it is recorded, so that whoever replays finds it
//! ```

use super::{HouseAccess, TrustBook};
use belljar_contract::access::AccessLevel;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustEvent, TrustEventKind};
use belljar_policy::access::Earned;
use belljar_policy::trust::replay;
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

/// So often it is looked whether something is lost by the time that has passed.
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
        self.record(agent, TrustEventKind::AgentHired { level: None }, now).await
    }

    /// Looks at what is recorded, and has that count. One of whom nothing more can be recorded has the lowest level, and keeps nobody else
    /// from what they have.
    ///
    /// # Errors
    /// [`RecordError`] when it can't be read, or what came of it can't be recorded.
    pub async fn look(&self, now: Timestamp) -> Result<(), RecordError> {
        let mut known = self.known.lock().await;
        for (agent, events) in self.book.events().agents().await? {
            let is_new = known
                .get(&agent)
                .is_none_or(|known| known.events != events || now.duration_since(known.at) >= LOOK_AGAIN);
            if is_new {
                let events = match self.work_out(&agent, now).await {
                    Ok(events) => events,
                    Err(error @ (RecordError::TooMany | RecordError::Another { .. })) => {
                        tracing::error!(%agent, %error, "nothing more can be recorded of an agent: the lowest level counts");
                        self.access.set_earned(&agent, Some(nothing()));
                        events
                    }
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

    /// Works out what an agent has earned; how much is recorded of it by then. As if nothing were, where something came of the look: of the
    /// next one more may come.
    async fn work_out(&self, agent: &AgentId, now: Timestamp) -> Result<u64, RecordError> {
        let config = self.book.config();
        let mut events = self.book.events().of(agent).await?;
        let mut replayed = replay(config, agent, &events, now);
        let has_changed = !replayed.at_last.is_empty();
        if has_changed {
            self.record(agent, TrustEventKind::Evaluated, now).await?;
            events = self.book.events().of(agent).await?;
            replayed = replay(config, agent, &events, now);
        }
        self.access.set_earned(agent, replayed.earned(config));
        Ok(if has_changed { 0 } else { events.len() as u64 })
    }

    async fn record(&self, agent: &AgentId, kind: TrustEventKind, at: Timestamp) -> Result<(), RecordError> {
        let event = TrustEvent { at, event_id: Uuid::now_v7(), agent_id: agent.clone(), kind };
        self.book.events().record(&event).await.map(drop)
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
