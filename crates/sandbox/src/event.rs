//! Events about sandboxes while they live, and their receivers.
//!
//! Reporting never fails, and never delays what is reported: a receiver takes an event at once or loses it, and lost events
//! are counted.

use crate::shipping::ExecutionEvent;
use serde::Serialize;
use std::fmt::Debug;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A program in a sandbox is over.
    Execution(Box<ExecutionEvent>),
}

/// Takes events.
pub trait EventSink: Debug + Send + Sync {
    /// Takes an event without waiting for anything.
    ///
    /// # Errors
    /// [`SinkFull`] when there is no room; the event is lost then.
    fn offer(&self, event: Event) -> Result<(), SinkFull>;
}

/// There is no room for another event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no room for another event")]
pub struct SinkFull;
