//! Deadline of a run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time at which a running job is ended, on the monotonic clock. Clones share the deadline. An extension during the run
/// holds from then on.
#[derive(Debug, Clone)]
pub struct Deadline(Arc<Mutex<Instant>>);

// === impl Deadline ===

impl Deadline {
    /// Makes a deadline at that time from now.
    pub fn after(limit: Duration) -> Self {
        Self(Arc::new(Mutex::new(Instant::now() + limit)))
    }

    /// Returns the current deadline.
    pub fn at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends the deadline, and returns the new one.
    pub fn put_off(&self, by: Duration) -> Instant {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *at += by;
        *at
    }
}
