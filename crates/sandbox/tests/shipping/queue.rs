//! A sink that keeps events for a test.

use belljar_sandbox::event::{Event, EventSink, SinkFull};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A sink that holds a limited number of events until the test takes them.
#[derive(Debug)]
pub(crate) struct EventQueue {
    room: usize,
    events: Mutex<VecDeque<Event>>,
    lost: AtomicU64,
}

// === impl EventQueue ===

impl EventQueue {
    /// Makes a queue with room for that many events.
    pub(crate) fn with_room_for(room: usize) -> Self {
        Self { room, events: Mutex::default(), lost: AtomicU64::new(0) }
    }

    /// Returns the number of events that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Takes what is there.
    pub(crate) fn take(&self) -> Vec<Event> {
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
