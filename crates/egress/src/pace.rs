//! How often the host answers one run by itself.

use crate::http1::limits::OWN_ANSWERS;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Keeps such answers apart, once there were many of them.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the next one would be due if all of them kept their distance.
    due: Cell<Option<Instant>>,
}

// === impl Pace ===

impl Pace {
    pub(crate) fn new() -> Self {
        Self { due: Cell::new(None) }
    }

    /// Waits until there may be one more.
    pub(crate) async fn wait(&self) {
        let now = Instant::now();
        let due = self.take(now);
        if due > now {
            tokio::time::sleep_until(due.into()).await;
        }
    }

    /// When one more may be; it is counted.
    fn take(&self, now: Instant) -> Instant {
        let (at_once, a_second) = OWN_ANSWERS;
        let apart = Duration::from_secs(1) / a_second;
        let earliest = now.checked_sub(apart * at_once).unwrap_or(now);
        let due = self.due.get().map_or(earliest, |due| due.max(earliest));
        self.due.set(Some(due + apart));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_may_be_at_once_and_the_others_keep_their_distance() {
        let (at_once, a_second) = OWN_ANSWERS;
        let (pace, now) = (Pace::new(), Instant::now() + Duration::from_secs(3_600));
        assert!((0..=at_once).all(|_| pace.take(now) <= now));
        let waits: Vec<Duration> = (0..a_second).map(|_| pace.take(now) - now).collect();
        assert!(waits.is_sorted() && waits.last() == Some(&Duration::from_secs(1)), "{waits:?}");
        // Who has waited has earned some.
        assert!(pace.take(now + Duration::from_secs(2)) <= now + Duration::from_secs(2));
    }
}
