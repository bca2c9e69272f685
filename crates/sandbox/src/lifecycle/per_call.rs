//! A sandbox for each call, destroyed after it.

use super::owned::Rules;
use super::table::Table;
use super::{Claim, Create, Lease, Lifecycle};
use crate::backend::BackendError;
use crate::clock::Clock;
use crate::config::{LifecycleConfig, Strategy};
use crate::event::EventSink;
use std::sync::Arc;

/// The strategy `per-call`.
#[derive(Debug)]
pub struct PerCall {
    table: Arc<Table>,
}

// === impl PerCall ===

impl PerCall {
    /// One; nothing is kept, so none of the times matter.
    pub fn new(config: &LifecycleConfig, clock: Arc<dyn Clock>, events: Arc<dyn EventSink>) -> Self {
        Self { table: Table::new(Rules::of(config), clock, events) }
    }
}

impl Lifecycle for PerCall {
    fn strategy(&self) -> Strategy {
        Strategy::PerCall
    }

    fn acquire(&self, _: &Claim<'_>, create: Create<'_>) -> Result<Lease, BackendError> {
        Table::acquire_for_call(&self.table, create)
    }

    fn release(&self, _: &Claim<'_>) {}

    fn cleanup_all(&self) {
        self.table.sweep();
    }
}
