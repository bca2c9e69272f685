//! What is told of sandboxes while they live, and to whom.
//!
//! Telling never fails and never delays what is told of: whoever listens takes an event at once or loses it, and what
//! is lost is counted.

use crate::shipping::ExecutionEvent;
use belljar_contract::id::RunId;
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A program in a sandbox is over.
    Execution(Box<ExecutionEvent>),
    /// A sandbox was given, kept or taken in a way that somebody may want to know of.
    Lifecycle(LifecycleEvent),
}

/// Something about a sandbox's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LifecycleEvent {
    /// What.
    pub what: LifecycleChange,
    /// The sandbox, if there is one.
    pub sandbox: Option<RunId>,
    /// Its owner, if it has one.
    pub owner: Option<String>,
    /// Why, if there is more to say.
    pub detail: Option<String>,
}

/// What happened to a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleChange {
    /// A call has no owner that could be told, so it got a sandbox for itself alone.
    Degraded,
    /// A kept sandbox was no longer there.
    Gone,
    /// Nobody used a kept sandbox for too long.
    Idle,
    /// Two sandboxes were made for one owner at the same time, and this one came second.
    Surplus,
    /// A sandbox could not be cleared away.
    NotDestroyed,
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

/// A sink that keeps so many events until somebody takes them.
#[derive(Debug)]
pub struct EventQueue {
    room: usize,
    events: Mutex<VecDeque<Event>>,
    lost: AtomicU64,
}

// === impl EventQueue ===

impl EventQueue {
    /// One with room for so many.
    pub fn with_room_for(room: usize) -> Self {
        Self { room, events: Mutex::default(), lost: AtomicU64::new(0) }
    }

    /// How many events found no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes what is there.
    pub fn take(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

impl EventSink for EventQueue {
    fn offer(&self, event: Event) -> Result<(), SinkFull> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= self.room {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return Err(SinkFull);
        }
        events.push_back(event);
        Ok(())
    }
}
