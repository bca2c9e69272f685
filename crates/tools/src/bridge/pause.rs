//! Backoff between attempts to connect to a server.

use std::time::Duration;

/// The first pause; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(500);

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// A waiting call shortens a pause to this minimum: a server that each call crashes is restarted at most once per second.
pub(super) const LEAST: Duration = Duration::from_secs(1);

/// Minimum lifetime of a connection that resets the backoff.
const GOOD: Duration = Duration::from_secs(10);

/// The number of failures in a row.
#[derive(Debug, Default)]
pub(super) struct ReconnectBackoff {
    failures: u32,
}

// === impl ReconnectBackoff ===

impl ReconnectBackoff {
    /// Counts a failure; returns the pause.
    pub(super) fn failed(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures.min(16)));
        self.failures = self.failures.saturating_add(1);
        pause.min(LONGEST)
    }

    /// Counts the end of a connection; returns the pause.
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
    fn reconnect_backoff_grows_to_a_minute_and_resets_after_success() {
        let mut pause = ReconnectBackoff::default();
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
