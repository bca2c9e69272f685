//! How often anything is done for one run.

use crate::http1::limits::OWN_ANSWERS;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Keeps what is done apart, once there was much of it: each is recorded, and nobody is to fill the disk with that.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When the next one would be due if all of them kept their distance.
    due: Cell<Option<Instant>>,
    at_once: u32,
    a_second: u32,
}

// === impl Pace ===

impl Pace {
    /// Of answers of the host's own.
    pub(crate) fn new() -> Self {
        Self::of(OWN_ANSWERS)
    }

    /// Of so many at once, and so many each second then.
    pub(crate) fn of((at_once, a_second): (u32, u32)) -> Self {
        Self { due: Cell::new(None), at_once, a_second: a_second.max(1) }
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
