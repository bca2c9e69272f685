//! How long a server that can't be reached is left alone.

use std::time::Duration;

/// So long at first, and twice as long each time.
const FIRST: Duration = Duration::from_millis(500);

/// But no longer than that.
const LONGEST: Duration = Duration::from_secs(60);

/// Whoever calls need not wait for the end of a pause, but for so much of it: a server that dies of every call is started once a second
/// and not more often.
pub(super) const LEAST: Duration = Duration::from_secs(1);

/// A connection that has lived so long was a good one.
const GOOD: Duration = Duration::from_secs(10);

/// Counts how often it was in vain.
#[derive(Debug, Default)]
pub(super) struct Pause {
    failures: u32,
}

// === impl Pause ===

impl Pause {
    /// It was in vain.
    pub(super) fn failed(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures.min(16)));
        self.failures = self.failures.saturating_add(1);
        pause.min(LONGEST)
    }

    /// A connection that lived so long has ended.
    pub(super) fn ended_after(&mut self, lived: Duration) -> Duration {
        if lived >= GOOD {
            self.failures = 0;
        }
        self.failed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_a_minute_and_begins_again_after_a_good_connection() {
        let mut pause = Pause::default();
        let millis: Vec<_> = (0..9).map(|_| pause.failed().as_millis()).collect();
        assert_eq!(millis, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(pause.ended_after(Duration::from_secs(1)), LONGEST);
        assert_eq!(pause.ended_after(GOOD), FIRST);
        for _ in 0..100 {
            pause.failed();
        }
        assert_eq!(pause.failed(), LONGEST);
    }
}
