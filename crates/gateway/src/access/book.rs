//! What is recorded of agents, with the configuration by which it counts: whoever shows a level, records something or follows what is earned
//! works it out here.

use belljar_contract::id::AgentId;
use belljar_policy::trust::{Replay, TrustConfig, replay};
use belljar_store::database::DatabaseError;
use belljar_store::trust::TrustEvents;
use jiff::Timestamp;

/// What is recorded, and by which it counts. Clones share it.
#[derive(Debug, Clone)]
pub struct TrustBook {
    events: TrustEvents,
    config: TrustConfig,
}

// === impl TrustBook ===

impl TrustBook {
    /// One of these events.
    pub fn new(events: TrustEvents, config: TrustConfig) -> Self {
        Self { events, config }
    }

    /// What is recorded.
    pub fn events(&self) -> &TrustEvents {
        &self.events
    }

    /// By which it counts.
    pub fn config(&self) -> &TrustConfig {
        &self.config
    }

    /// What has come of it for an agent by then.
    ///
    /// # Errors
    /// [`DatabaseError`] when it can't be read.
    pub async fn of(&self, agent: &AgentId, now: Timestamp) -> Result<Replay, DatabaseError> {
        let events = self.events.of(agent).await?;
        Ok(replay(&self.config, agent, &events, now))
    }
}
