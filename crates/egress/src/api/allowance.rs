//! How often a connection may be used.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many calls a minute, all runs together; as many may be made at once.
#[derive(Debug)]
pub(super) struct Allowance {
    a_minute: u32,
    /// When the next one would be due if all of them kept their distance.
    due: Mutex<Option<Instant>>,
}

const MINUTE: Duration = Duration::from_secs(60);

// === impl Allowance ===

impl Allowance {
    pub(super) fn new(a_minute: u32) -> Self {
        Self { a_minute: a_minute.max(1), due: Mutex::new(None) }
    }

    /// How many a minute.
    pub(super) fn a_minute(&self) -> u32 {
        self.a_minute
    }

    /// Takes one, or says how long to wait for it.
    pub(super) fn take(&self, now: Instant) -> Result<(), Duration> {
        // Nothing in there is ever half done.
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
    fn a_minutes_calls_may_be_made_at_once_and_then_one_after_the_other() {
        let (allowance, now) = (Allowance::new(6), Instant::now() + Duration::from_secs(3_600));
        assert!((0..6).all(|_| allowance.take(now).is_ok()));
        assert_eq!(allowance.take(now), Err(Duration::from_secs(10)));
        let later = now + Duration::from_secs(10);
        assert_eq!((allowance.take(later), allowance.take(later)), (Ok(()), Err(Duration::from_secs(10))));
    }
}
