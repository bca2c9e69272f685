//! Age of kept changes. A clock that was or is wrong must not make them old at once.
//!
//! The clock of a machine can be set, and may be in 1970 after a start without a battery. The time since the boot is
//! counted by another clock, which is never set. So an age is at most the value of that clock, as long as the machine was
//! not restarted.

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A moment by the clock that is never set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpTime {
    /// The start of the machine, by the id that the kernel gave it.
    boot: String,
    /// Time since the boot, in seconds.
    seconds: i64,
}

/// 2025-01-01. A clock that was before this was wrong: there was no Belljar then.
const FIRST_SECOND: i64 = 1_735_689_600;

/// Returns the age of kept changes; `None` if that can't be known.
pub(super) fn age(kept_at: Timestamp, up: Option<&UpTime>) -> Option<SignedDuration> {
    let told = Timestamp::now().duration_since(kept_at);
    match up.and_then(UpTime::elapsed) {
        Some(elapsed) => Some(elapsed.min(told)),
        None => (kept_at.as_second() >= FIRST_SECOND).then_some(told),
    }
}

// === impl UpTime ===

impl UpTime {
    /// Returns the current value; `None` if the kernel doesn't report it.
    pub(super) fn now() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Self { boot: boot.trim().to_owned(), seconds: clock_gettime(ClockId::Boottime).tv_sec })
    }

    /// Returns the time since then; `None` if the machine was restarted since.
    fn elapsed(&self) -> Option<SignedDuration> {
        let now = Self::now().filter(|now| now.boot == self.boot)?;
        Some(SignedDuration::from_secs(now.seconds.saturating_sub(self.seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_were_kept_by_a_wrong_clock_are_not_old() {
        let hours = |hours| SignedDuration::from_hours(hours);
        let (now, up) = (Timestamp::now(), UpTime::now());
        let long_ago = now - hours(24 * 365);
        // The clock was set forward, or stood in 1970, while the machine was up.
        for kept_at in [long_ago, Timestamp::UNIX_EPOCH] {
            assert!(age(kept_at, up.as_ref()).unwrap() < hours(1), "{kept_at}");
        }
        let of_another_start = UpTime { boot: "another".to_owned(), seconds: 0 };
        assert_eq!(age(Timestamp::UNIX_EPOCH, Some(&of_another_start)), None);
        assert!(age(now + hours(1), up.as_ref()).unwrap() <= SignedDuration::ZERO, "a clock that was ahead");
        // The controls: a year old by the clock alone, or by both.
        let earlier = up.map(|up| UpTime { seconds: up.seconds - 86_400 * 365, ..up });
        for up in [earlier, Some(of_another_start), None] {
            assert!(age(long_ago, up.as_ref()).unwrap() >= hours(24 * 365), "{up:?}");
        }
    }
}
