//! Quota of log lines that one server causes, by its list, its messages and its failures.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of lines in each [`WINDOW`], also across reconnects.
const MOST_LINES: u32 = 200;

const WINDOW: Duration = Duration::from_secs(3_600);

/// Lines left in the current window.
#[derive(Debug, Default)]
pub(super) struct LogQuota {
    window: Mutex<Option<Window>>,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    left: u32,
}

// === impl LogQuota ===

impl LogQuota {
    /// Consumes one line; returns true if it is the last of its window, and `None` if none is left.
    pub(super) fn take(&self) -> Option<bool> {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> Option<bool> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let window = match &mut *window {
            Some(window) if now.saturating_duration_since(window.since) < WINDOW => window,
            ended => ended.insert(Window { since: now, left: MOST_LINES }),
        };
        window.left = window.left.checked_sub(1)?;
        Some(window.left == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_per_server_and_hour_are_limited() {
        let (quota, begun) = (LogQuota::default(), Instant::now());
        for (begin, end) in [(0, 3_599), (3_600, 7_199)] {
            let [begin, end] = [begin, end].map(|seconds| begun + Duration::from_secs(seconds));
            let lasts = (1..MOST_LINES).filter_map(|_| quota.take_at(begin)).filter(|is_last| *is_last);
            assert_eq!(lasts.count(), 0);
            assert_eq!((quota.take_at(end), quota.take_at(end)), (Some(true), None));
        }
    }
}
