//! When a sandbox is made for a call, kept for the next one, and destroyed (`spec/3 §Sandbox Lifecycle Strategies`).
//!
//! ```text
//!            acquire            made               release (per-agent)
//!   nothing ────────► being made ────► kept ◄──────────────────────────► in grace
//!      ▲                  │             │            acquire                │
//!      │  failed, second, │             │ release (per-task), idle, gone,   │ grace over, idle, gone,
//!      │  or swept        ▼             ▼ swept                             ▼ swept
//!      └──────────────────────────── destroyed ◄────────────────────────────┘
//! ```
//! A sandbox for one call is never kept: it is destroyed when its lease is dropped. So is one that was made for a task
//! that was released meanwhile. A sandbox is idle while nothing is done in it, whoever holds leases; what runs in it
//! counts as use. Everything that may take long, making, checking and destroying, happens outside of locks.

mod kept;
mod lease;
mod owned;
mod per_agent;
mod per_call;
mod per_task;
mod table;

pub use lease::{Lease, Tenure};
pub use per_agent::PerAgent;
pub use per_call::PerCall;
pub use per_task::PerTask;

use crate::backend::{BackendError, Sandbox};
use crate::clock::Clock;
use crate::config::{LifecycleConfig, Strategy};
use crate::correlation::{Correlation, CorrelationId};
use crate::event::EventSink;
use std::fmt::Debug;
use std::sync::Arc;

/// A strategy.
pub trait Lifecycle: Debug + Send + Sync {
    /// Its name.
    fn strategy(&self) -> Strategy;

    /// A sandbox for a call: the one that is kept for the call's owner, or one that `create` makes.
    ///
    /// # Errors
    /// Those of `create`; [`BackendError::Gone`] if everything was swept away while it was made.
    fn acquire(&self, claim: &Claim<'_>, create: Create<'_>) -> Result<Lease, BackendError>;

    /// Says that an owner has stopped, a task for instance that is done. Harmless if nothing is kept for it.
    fn release(&self, claim: &Claim<'_>);

    /// Destroys everything, whoever uses it. What is being made is destroyed the moment it is made.
    fn cleanup_all(&self);
}

/// Whose a call is.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The owner, if the caller says so.
    pub owner: Option<&'a CorrelationId>,
    /// Whom the call is for, from which an owner is told otherwise.
    pub correlation: &'a Correlation,
}

/// Makes a sandbox.
pub type Create<'a> = Box<dyn FnOnce() -> Result<Box<dyn Sandbox>, BackendError> + 'a>;

/// The strategy that is configured.
pub fn configured(
    config: &LifecycleConfig,
    clock: Arc<dyn Clock>,
    events: Arc<dyn EventSink>,
) -> Arc<dyn Lifecycle> {
    match config.strategy {
        Strategy::PerCall => Arc::new(PerCall::new(config, clock, events)),
        Strategy::PerTask => Arc::new(PerTask::new(config, clock, events)),
        Strategy::PerAgent => Arc::new(PerAgent::new(config, clock, events)),
    }
}

// === impl Claim ===

impl<'a> Claim<'a> {
    fn agent(&self) -> Option<&'a CorrelationId> {
        self.owner.or(self.correlation.agent_id.as_ref())
    }

    fn task(&self) -> Option<&'a CorrelationId> {
        self.owner.or(self.correlation.task_id.as_ref())
    }
}
