//! Memory quota for the requests of one run.

use crate::http1::limits::REQUEST_BODIES_BYTES;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Memory quota of one run.
#[derive(Debug)]
pub(crate) struct MemoryQuota(Semaphore);

/// Reservation of a body, released when dropped.
#[derive(Debug)]
pub(crate) struct MemoryReservation<'r> {
    room: &'r MemoryQuota,
    taken: Option<SemaphorePermit<'r>>,
    units: usize,
}

/// Unit of the quota in bytes. A smaller body takes none, because a connection reads ahead that much anyway.
const UNIT_BYTES: usize = 64 << 10;

// === impl MemoryQuota ===

impl MemoryQuota {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(REQUEST_BODIES_BYTES / UNIT_BYTES))
    }

    pub(crate) fn begin(&self) -> MemoryReservation<'_> {
        MemoryReservation { room: self, taken: None, units: 0 }
    }
}

// === impl MemoryReservation ===

impl MemoryReservation<'_> {
    /// Waits until the reservation can hold that many bytes in all.
    pub(crate) async fn hold(&mut self, bytes: usize) {
        let more = (bytes / UNIT_BYTES).saturating_sub(self.units);
        let Ok(wanted) = u32::try_from(more) else { return };
        if wanted == 0 {
            return;
        }
        // The semaphore is never closed.
        if let Ok(permit) = self.room.0.acquire_many(wanted).await {
            self.units += more;
            match &mut self.taken {
                Some(taken) => taken.merge(permit),
                taken => *taken = Some(permit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn is_ready(future: impl Future) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
    }

    #[test]
    fn reservation_beyond_the_memory_quota_waits_for_a_release() {
        let room = MemoryQuota::new();
        let mut first = room.begin();
        assert!(is_ready(first.hold(1 << 20)));
        assert!(is_ready(first.hold(REQUEST_BODIES_BYTES)));
        let mut second = room.begin();
        assert!(is_ready(second.hold(UNIT_BYTES - 1)), "the small ones always do");
        assert!(!is_ready(second.hold(UNIT_BYTES)));
        drop(first);
        assert!(is_ready(second.hold(UNIT_BYTES)));
    }
}
