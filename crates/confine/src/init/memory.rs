//! Sees to it that a sandbox that has used up its memory ends as a whole.
//!
//! A control group of version 2 does so by itself. In one of version 1 the kernel kills whoever it likes best and tells;
//! without any, PID 1 adds up what its processes and files hold. What is in no process and no file (memory without a
//! name, pipes, sockets) it doesn't see: that has limits of its own.

use crate::group::Entrance;
use crate::kernel;
use crate::plan::Plan;
use crate::walls::{About, Fault};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How it is known that memory has run out.
pub(super) enum Memory {
    /// The kernel sees to it, or nobody.
    Unwatched,
    /// Readable then.
    Told(OwnedFd),
    /// To be looked at.
    Added {
        /// What may be held.
        most_bytes: u64,
        /// When to look again.
        next: Instant,
    },
}

/// More than this much a second can't be taken on any machine there is, for each of its processors.
const FASTEST_BYTES: u64 = 4 << 30;

const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

// === impl Memory ===

impl Memory {
    pub(super) fn watch(plan: &Plan) -> Result<Self, Fault> {
        Ok(match (plan.group.as_ref().and_then(Entrance::out_of_memory), plan.watched_memory_bytes) {
            (Some(told), _) => {
                // Above the descriptors that a program gets for its streams.
                Self::Told(rustix::io::fcntl_dupfd_cloexec(told, 3).about("memory event")?)
            }
            (None, Some(most_bytes)) => Self::Added { most_bytes, next: Instant::now() },
            (None, None) => Self::Unwatched,
        })
    }

    /// Becomes readable when memory has run out, if it is told.
    pub(super) fn told(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Told(event) => Some(event.as_fd()),
            Self::Unwatched | Self::Added { .. } => None,
        }
    }

    /// How long it may be before [`Self::has_run_out`] is asked again, if that matters.
    pub(super) fn patience(&self) -> Option<Duration> {
        match self {
            Self::Added { next, .. } => Some(next.saturating_duration_since(Instant::now())),
            Self::Unwatched | Self::Told(_) => None,
        }
    }

    /// Whether there is more than may be. Looks only when it is time to.
    pub(super) fn has_run_out(&mut self) -> bool {
        let Self::Added { most_bytes, next } = self else { return false };
        let now = Instant::now();
        if now < *next {
            return false;
        }
        let held = kernel::load().resident_bytes.saturating_add(in_files());
        *next = now + pause(most_bytes.saturating_sub(held));
        held > *most_bytes
    }
}

/// What lies in the sandbox's files in memory: one file system holds them all.
fn in_files() -> u64 {
    let of = rustix::fs::statvfs("/");
    of.map_or(0, |of| of.f_blocks.saturating_sub(of.f_bfree).saturating_mul(of.f_frsize))
}

/// The sooner, the less is left.
fn pause(left_bytes: u64) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let milliseconds = left_bytes.saturating_mul(1000) / (FASTEST_BYTES * processors);
    Duration::from_millis(milliseconds).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_is_left_the_sooner_it_is_looked_again() {
        assert_eq!(pause(0), SHORTEST_PAUSE);
        assert_eq!(pause(u64::MAX), LONGEST_PAUSE);
        assert!(pause(1 << 30) <= pause(2 << 30));
    }
}
