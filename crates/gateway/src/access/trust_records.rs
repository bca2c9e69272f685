//! Trust records of agents, with the configuration by which they are evaluated. All readers and writers of trust use this.

use belljar_contract::id::AgentId;
use belljar_policy::trust::{Replay, TrustConfig, replay};
use belljar_store::database::DatabaseError;
use belljar_store::trust::TrustEvents;
use jiff::Timestamp;

/// Trust records and configuration. Clones share the records.
#[derive(Debug, Clone)]
pub struct TrustRecords {
    events: TrustEvents,
    config: TrustConfig,
}

// === impl TrustRecords ===

impl TrustRecords {
    /// Returns a book of these events.
    pub fn new(events: TrustEvents, config: TrustConfig) -> Self {
        Self { events, config }
    }

    /// Returns the recorded events.
    pub fn events(&self) -> &TrustEvents {
        &self.events
    }

    /// Returns the configuration.
    pub fn config(&self) -> &TrustConfig {
        &self.config
    }

    /// Evaluates an agent's events up to that time.
    ///
    /// # Errors
    /// [`DatabaseError`] when the events can't be read.
    pub async fn of(&self, agent: &AgentId, now: Timestamp) -> Result<Replay, DatabaseError> {
        let events = self.events.of(agent).await?;
        Ok(replay(&self.config, agent, &events, now))
    }
}
