//! How many lines of the host's log one connection to a server may cause by what it lists.

use std::sync::atomic::{AtomicU32, Ordering};

/// The most lines that one connection causes.
const MOST_LINES: u32 = 200;

/// What is left of them.
#[derive(Debug)]
pub(super) struct LogQuota {
    left: AtomicU32,
}

// === impl LogQuota ===

impl Default for LogQuota {
    fn default() -> Self {
        Self { left: AtomicU32::new(MOST_LINES) }
    }
}

impl LogQuota {
    /// Begins anew: there is another connection.
    pub(super) fn renew(&self) {
        self.left.store(MOST_LINES, Ordering::Relaxed);
    }

    /// Takes one line; tells whether it is the last. Returns `None` if none is left.
    pub(super) fn take(&self) -> Option<bool> {
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        before.ok().map(|left| left == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_causes_so_many_lines_and_the_next_one_as_many_again() {
        let quota = LogQuota::default();
        for _ in 0..2 {
            assert_eq!((1..MOST_LINES).filter_map(|_| quota.take()).filter(|is_last| *is_last).count(), 0);
            assert_eq!((quota.take(), quota.take()), (Some(true), None));
            quota.renew();
        }
    }
}
