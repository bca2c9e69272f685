//! Estimate of how many more jobs may wait. Jobs are counted only now and then, because counting gets slower with their
//! number.
//!
//! Near the limit, the jobs are counted for each submission. Otherwise a count is valid for one second and for half of
//! the free places that it found, because other nodes may add jobs to the same database.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Cached count.
#[derive(Debug, Default)]
pub(super) struct WaitingQuota {
    counted: Mutex<Option<CachedCount>>,
}

#[derive(Debug)]
struct CachedCount {
    at: Instant,
    left: u64,
}

/// A count is good for so long.
const GOOD: Duration = Duration::from_secs(1);

// === impl WaitingQuota ===

impl WaitingQuota {
    /// Takes a free place for a job, if one is known.
    pub(super) fn take(&self) -> bool {
        let mut counted = self.locked();
        match &mut *counted {
            Some(CachedCount { at, left }) if *left > 0 && at.elapsed() < GOOD => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Stores a count of waiting jobs and their maximum number.
    pub(super) fn counted(&self, waiting: u64, most: u64) {
        *self.locked() = Some(CachedCount { at: Instant::now(), left: most.saturating_sub(waiting) / 2 });
    }

    fn locked(&self) -> MutexGuard<'_, Option<CachedCount>> {
        // No update can be left half done, so a poisoned lock is harmless.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_quota_admits_half_of_the_free_slots_per_count() {
        let room = WaitingQuota::default();
        assert!(!room.take());
        room.counted(6, 11);
        assert_eq!([(); 3].map(|()| room.take()), [true, true, false]);
    }

    #[test]
    fn queue_quota_counts_every_job_near_the_limit() {
        let room = WaitingQuota::default();
        for waiting in [10, 11, 12, u64::MAX] {
            room.counted(waiting, 11);
            assert!(!room.take(), "{waiting}");
        }
    }
}
