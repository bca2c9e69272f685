//! A sandbox for each task, destroyed when that is done.

use super::owned::Rules;
use super::table::Table;
use super::{Claim, Create, Lease, Lifecycle};
use crate::backend::BackendError;
use crate::clock::Clock;
use crate::config::{LifecycleConfig, Strategy};
use crate::event::EventSink;
use std::sync::Arc;

/// The strategy `per-task`.
#[derive(Debug)]
pub struct PerTask {
    table: Arc<Table>,
}

// === impl PerTask ===

impl PerTask {
    /// One that keeps to these times; there is no grace.
    pub fn new(config: &LifecycleConfig, clock: Arc<dyn Clock>, events: Arc<dyn EventSink>) -> Self {
        Self { table: Table::new(Rules::of(config), clock, events) }
    }
}

impl Lifecycle for PerTask {
    fn strategy(&self) -> Strategy {
        Strategy::PerTask
    }

    fn acquire(&self, claim: &Claim<'_>, create: Create<'_>) -> Result<Lease, BackendError> {
        match claim.task() {
            Some(task) => Table::acquire(&self.table, task, create),
            None => Table::acquire_degraded(&self.table, create),
        }
    }

    fn release(&self, claim: &Claim<'_>) {
        if let Some(task) = claim.task() {
            self.table.release(task);
        }
    }

    fn cleanup_all(&self) {
        self.table.sweep();
    }
}
