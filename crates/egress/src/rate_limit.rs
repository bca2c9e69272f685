//! Rate limit of one run.

use crate::http1::limits::OWN_ANSWERS;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Spaces actions evenly after a burst: each is recorded, and no run may fill the disk with records.
#[derive(Debug)]
pub(crate) struct RateLimit {
    /// Time at which the next action would be due if all were evenly spaced.
    due: Cell<Option<Instant>>,
    at_once: u32,
    a_second: u32,
}

// === impl RateLimit ===

impl RateLimit {
    /// Rate limit for the host's own answers.
    pub(crate) fn new() -> Self {
        Self::of(OWN_ANSWERS)
    }

    /// Rate limit with a burst, and a number per second.
    pub(crate) fn of((at_once, a_second): (u32, u32)) -> Self {
        Self { due: Cell::new(None), at_once, a_second: a_second.max(1) }
    }

    /// Waits until the next action is allowed.
    pub(crate) async fn wait(&self) {
        let now = Instant::now();
        let due = self.take(now);
        if due > now {
            tokio::time::sleep_until(due.into()).await;
        }
    }

    /// Counts one action and returns the time from which it is allowed.
    fn take(&self, now: Instant) -> Instant {
        let apart = Duration::from_secs(1) / self.a_second;
        let earliest = now.checked_sub(apart * self.at_once).unwrap_or(now);
        let due = self.due.get().map_or(earliest, |due| due.max(earliest));
        self.due.set(Some(due + apart));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_limit_permits_a_burst_and_then_spaces_actions() {
        let (at_once, a_second) = OWN_ANSWERS;
        let (pace, now) = (RateLimit::new(), Instant::now() + Duration::from_secs(3_600));
        assert!((0..=at_once).all(|_| pace.take(now) <= now));
        let waits: Vec<Duration> = (0..a_second).map(|_| pace.take(now) - now).collect();
        assert!(waits.is_sorted() && waits.last() == Some(&Duration::from_secs(1)), "{waits:?}");
        // Waiting earns back a part of the burst.
        assert!(pace.take(now + Duration::from_secs(2)) <= now + Duration::from_secs(2));
    }
}
