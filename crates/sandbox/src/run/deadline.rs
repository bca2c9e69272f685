//! Until when a run may go on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When a run is ended, if it goes on for so long; on the monotonic clock. Clones are the same deadline, and one that is put
/// off while the run goes on holds from then on.
#[derive(Debug, Clone)]
pub struct Deadline(Arc<Mutex<Instant>>);

// === impl Deadline ===

impl Deadline {
    /// One that is so long from now.
    pub fn after(limit: Duration) -> Self {
        Self(Arc::new(Mutex::new(Instant::now() + limit)))
    }

    /// When it is.
    pub fn at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts it off by so much; when it is then.
    pub fn put_off(&self, by: Duration) -> Instant {
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *at += by;
        *at
    }
}
