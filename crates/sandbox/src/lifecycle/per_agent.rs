//! A sandbox for each agent, kept for a while after its task is done.

use super::owned::Rules;
use super::table::Table;
use super::{Claim, Create, Lease, Lifecycle};
use crate::backend::BackendError;
use crate::clock::Clock;
use crate::config::{LifecycleConfig, Strategy};
use crate::event::EventSink;
use std::sync::Arc;

/// The strategy `per-agent`.
#[derive(Debug)]
pub struct PerAgent {
    table: Arc<Table>,
}

// === impl PerAgent ===

impl PerAgent {
    /// One that keeps to these times.
    pub fn new(config: &LifecycleConfig, clock: Arc<dyn Clock>, events: Arc<dyn EventSink>) -> Self {
        let rules = Rules { grace_period: Some(config.grace_period), ..Rules::of(config) };
        Self { table: Table::new(rules, clock, events) }
    }
}

impl Lifecycle for PerAgent {
    fn strategy(&self) -> Strategy {
        Strategy::PerAgent
    }

    fn acquire(&self, claim: &Claim<'_>, create: Create<'_>) -> Result<Lease, BackendError> {
        match claim.agent() {
            Some(agent) => Table::acquire(&self.table, agent, create),
            None => Table::acquire_degraded(&self.table, create),
        }
    }

    fn release(&self, claim: &Claim<'_>) {
        if let Some(agent) = claim.agent() {
            self.table.release(agent);
        }
    }

    fn cleanup_all(&self) {
        self.table.sweep();
    }
}
