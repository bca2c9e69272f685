//! Rate limit of a connection.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Rate limit in calls a minute for all runs together. The whole minute's number may come as a burst.
#[derive(Debug)]
pub(super) struct Allowance {
    a_minute: u32,
    /// Time at which the next call would be due if all calls were evenly spaced.
    due: Mutex<Option<Instant>>,
}

const MINUTE: Duration = Duration::from_secs(60);

// === impl Allowance ===

impl Allowance {
    pub(super) fn new(a_minute: u32) -> Self {
        Self { a_minute: a_minute.max(1), due: Mutex::new(None) }
    }

    /// Returns the limit in calls a minute.
    pub(super) fn a_minute(&self) -> u32 {
        self.a_minute
    }

    /// Takes one call from the limit, or returns the time to wait for it.
    pub(super) fn take(&self, now: Instant) -> Result<(), Duration> {
        // No panic can leave the value half changed.
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = now.checked_sub(MINUTE - MINUTE / self.a_minute).unwrap_or(now);
        let next = due.map_or(earliest, |due| due.max(earliest));
        if next > now {
            return Err(next - now);
        }
        *due = Some(next + MINUTE / self.a_minute);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_permits_a_burst_of_one_minute_and_then_spaces_calls_evenly() {
        let (allowance, now) = (Allowance::new(6), Instant::now() + Duration::from_secs(3_600));
        assert!((0..6).all(|_| allowance.take(now).is_ok()));
        assert_eq!(allowance.take(now), Err(Duration::from_secs(10)));
        let later = now + Duration::from_secs(10);
        assert_eq!((allowance.take(later), allowance.take(later)), (Ok(()), Err(Duration::from_secs(10))));
    }
}
