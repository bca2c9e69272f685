//! How many more jobs may wait: counted now and then, as counting takes the longer the more there are.
//!
//! Near the bound each job is counted for. Far from it, a count is good for a while, and for half of what it has found to be
//! free: others may be adding jobs to the same database meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Room {
    counted: Mutex<Option<Counted>>,
}

#[derive(Debug)]
struct Counted {
    at: Instant,
    left: u64,
}

/// A count is good for so long.
const GOOD: Duration = Duration::from_secs(1);

// === impl Room ===

impl Room {
    /// Takes room for a job, if there is known to be some.
    pub(super) fn take(&self) -> bool {
        let mut counted = self.locked();
        match &mut *counted {
            Some(Counted { at, left }) if *left > 0 && at.elapsed() < GOOD => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// So many wait, of so many that may.
    pub(super) fn counted(&self, waiting: u64, most: u64) {
        *self.locked() = Some(Counted { at: Instant::now(), left: most.saturating_sub(waiting) / 2 });
    }

    fn locked(&self) -> MutexGuard<'_, Option<Counted>> {
        // Nothing in there is ever half done.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_count_there_is_no_room_and_after_one_there_is_for_half_of_what_is_free() {
        let room = Room::default();
        assert!(!room.take());
        room.counted(6, 11);
        assert_eq!([(); 3].map(|()| room.take()), [true, true, false]);
    }

    #[test]
    fn near_the_bound_every_job_is_counted_for() {
        let room = Room::default();
        for waiting in [10, 11, 12, u64::MAX] {
            room.counted(waiting, 11);
            assert!(!room.take(), "{waiting}");
        }
    }
}
