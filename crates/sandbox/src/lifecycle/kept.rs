//! A sandbox in a table: destroyed when nobody holds it any more, and never more than once.

use crate::backend::{BackendError, Sandbox, with_causes};
use crate::event::{Event, EventSink, LifecycleChange, LifecycleEvent};
use belljar_contract::id::RunId;
use std::sync::Arc;

/// A sandbox. Whoever drops the last reference to it destroys it; a failure is told as an event.
#[derive(Debug)]
pub(super) struct Kept {
    id: RunId,
    sandbox: Option<Box<dyn Sandbox>>,
    events: Arc<dyn EventSink>,
}

/// How a kept sandbox is.
pub(super) enum Health {
    Well,
    /// It can't be asked, which may pass.
    Unknown(String),
    /// It is no longer there.
    Gone(String),
}

// === impl Kept ===

impl Kept {
    pub(super) fn new(sandbox: Box<dyn Sandbox>, events: &Arc<dyn EventSink>) -> Self {
        Self { id: sandbox.id().clone(), sandbox: Some(sandbox), events: Arc::clone(events) }
    }

    pub(super) fn id(&self) -> &RunId {
        &self.id
    }

    pub(super) fn sandbox(&self) -> Result<&dyn Sandbox, BackendError> {
        self.sandbox.as_deref().ok_or(BackendError::Gone)
    }

    /// Asks it.
    pub(super) fn health(&self) -> Health {
        let Some(sandbox) = &self.sandbox else { return Health::Gone("it is over".to_owned()) };
        if let Some(limit) = sandbox.ended_by() {
            return Health::Gone(format!("its {limit} limit has ended it"));
        }
        match sandbox.stats() {
            Ok(_) => Health::Well,
            Err(error @ BackendError::Gone) => Health::Gone(with_causes(&error)),
            Err(error) => Health::Unknown(with_causes(&error)),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(Err(error)) = self.sandbox.take().map(Sandbox::destroy) else { return };
        let event = LifecycleEvent {
            what: LifecycleChange::NotDestroyed,
            sandbox: Some(self.id.clone()),
            owner: None,
            detail: Some(with_causes(&error)),
        };
        // Nobody is left to be told that nobody could be told.
        let _ = self.events.offer(Event::Lifecycle(event));
    }
}
