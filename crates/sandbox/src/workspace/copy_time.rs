//! Time at which a copy was made, by the clock that the kernel stamps files with, and the comparison of timestamps with it.
//!
//! A file system truncates the times that it keeps: to whole seconds with small inodes, to two seconds on FAT. A time
//! stands for all moments that are truncated to it, so a file that was saved in the second in which the copy was made may
//! have been saved after it. A time that could be either counts as later.
//!
//! The clock of the machine may be set back afterwards. The start time of the machine, computed from both of its clocks,
//! shows that: the monotonic clock is never set. File servers stamp files with a clock of their own ([`TimestampClock`]).

use belljar_files::directory::Directory;
use rustix::fs::{Stat, fstat, fstatfs};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time at which a copy was made.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct CopyTime {
    since: SystemTime,
    /// Start time of the machine, as computed then. Missing in records of earlier versions.
    #[serde(default)]
    booted_at: Option<SystemTime>,
}

/// The clock that a file system stamps files with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimestampClock {
    /// The clock of this machine.
    ThisMachine,
    /// Another machine, or unknown.
    Another,
}

/// Maximum lag of another machine's clock behind this one's, where it can't be read.
const BEHIND: Duration = Duration::from_secs(2);

/// Pause between two looks at the clock.
const STEP_PAUSE: Duration = Duration::from_micros(200);

/// A clock that makes no step for so long was set back, and is not waited for.
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// Uncertainty of a time without a fraction of a second: FAT counts in steps of two seconds.
const WHOLE_SECONDS: Duration = Duration::from_secs(2);

/// File systems of this machine's own kernel alone, by their magic numbers: ext, XFS, Btrfs, tmpfs, ramfs, F2FS, overlay, ZFS, bcachefs, FAT.
const OWN: [u32; 10] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0xf2f5_2010,
    0x794c_7630,
    0x2fc1_2fc1,
    0xca45_1a4e,
    0x4d44,
];

// === impl CopyTime ===

impl CopyTime {
    /// A copy that is made now. Waits for the next step of the clock that stamps files, which takes up to 10 milliseconds (4 with a
    /// kernel of 250 Hz): what was saved right before has an older time than what is saved from now on.
    pub(super) fn now() -> Self {
        // Some files are stamped more exactly, and the steps come late on a busy machine.
        let exact = at(clock_gettime(ClockId::Realtime));
        let clock = || at(clock_gettime(ClockId::RealtimeCoarse));
        let (mut now, begun) = (clock(), Instant::now());
        while now <= exact && begun.elapsed() < LONGEST_STEP {
            std::thread::sleep(STEP_PAUSE);
            now = clock();
        }
        Self { since: now, booted_at: Some(booted_at()) }
    }

    pub(super) fn at(since: SystemTime) -> Self {
        Self { since, booted_at: Some(booted_at()) }
    }

    /// Returns the time for a copy of a directory that another machine stamps: as early as that machine's clock may have
    /// had it. `own` is a new file or directory, which shows that clock if it is on the same file system.
    #[must_use]
    pub(super) fn by_clock_of(self, source: &Directory, own: Option<&Stat>) -> Self {
        match TimestampClock::of(source) {
            TimestampClock::ThisMachine => self,
            TimestampClock::Another => {
                let is_beside = |own: &&Stat| fstat(source).is_ok_and(|source| source.st_dev == own.st_dev);
                let told = own.filter(is_beside).map(super::baseline::changed_at);
                Self { since: self.since.min(told.unwrap_or(self.since - BEHIND)), ..self }
            }
        }
    }

    /// Returns true if a time of a file may be later than the copy, or as late.
    pub(super) fn may_be_before(&self, time: SystemTime) -> bool {
        time + width(time) > self.bound()
    }

    /// Returns the time at which the copy was made, by the clock as it goes now. If the clock was set back, everything
    /// stamped since then may look that much older.
    pub(super) fn bound(&self) -> SystemTime {
        let Some(was) = self.booted_at else { return self.since };
        let set_back = was.duration_since(booted_at()).unwrap_or_default();
        self.since.checked_sub(set_back).unwrap_or(UNIX_EPOCH)
    }
}

// === impl TimestampClock ===

impl TimestampClock {
    fn of(directory: &Directory) -> Self {
        let magic = fstatfs(directory).map(|found| found.f_type);
        let is_own = magic.is_ok_and(|magic| OWN.iter().any(|own| i64::from(*own) == magic & 0xffff_ffff));
        if is_own { Self::ThisMachine } else { Self::Another }
    }
}

/// Returns the uncertainty of a timestamp: a file stamped with this time may have been changed up to that much later.
fn width(time: SystemTime) -> Duration {
    let nanoseconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    match nanoseconds {
        0 => WHOLE_SECONDS,
        _ => {
            let zeros = (1..9).take_while(|digits| nanoseconds.is_multiple_of(10_u32.pow(*digits))).count();
            Duration::from_nanos(10_u64.pow(u32::try_from(zeros).unwrap_or_default()))
        }
    }
}

/// Returns the time at which this machine was started, by the clock as it goes now. Time spent in sleep counts.
fn booted_at() -> SystemTime {
    let (now, up) = (at(clock_gettime(ClockId::Realtime)), at(clock_gettime(ClockId::Boottime)));
    let up = up.duration_since(UNIX_EPOCH).unwrap_or_default();
    now.checked_sub(up).unwrap_or(UNIX_EPOCH)
}

fn at(time: Timespec) -> SystemTime {
    super::baseline::time(time.tv_sec, time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy that was made then, by a clock that is right.
    fn copy_at(seconds: u64, nanoseconds: u32) -> CopyTime {
        CopyTime::at(UNIX_EPOCH + Duration::new(seconds, nanoseconds))
    }

    #[test]
    fn time_that_is_cut_may_be_later_than_the_copy_within_what_was_cut_off() {
        let copy = copy_at(1_001, 500_000_001);
        let may_be =
            |seconds, nanoseconds| copy.may_be_before(UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        assert!(may_be(1_001, 0) && may_be(1_000, 0), "whole seconds, in steps of two");
        assert!(
            !may_be(999, 0) && !may_be(1_001, 1),
            "an older second; the control: a time to the nanosecond"
        );
        assert!(may_be(1_001, 500_000_000), "steps of a tenth of a second");
        assert!(may_be(1_001, 500_000_001) && may_be(1_001, 500_000_002), "as late, and later");
        assert!(!may_be(1_001, 499_999_999));
    }

    #[test]
    fn clock_that_was_set_back_makes_older_times_count() {
        let mut copy = copy_at(10_000, 1);
        let saved_at = UNIX_EPOCH + Duration::new(9_990, 1);
        assert!(!copy.may_be_before(saved_at), "the control");
        // The machine looks as if it had been started later than it does now: the clock was 30 s ahead.
        copy.booted_at = copy.booted_at.map(|booted| booted + Duration::from_secs(30));
        assert!(copy.may_be_before(saved_at) && !copy.may_be_before(saved_at - Duration::from_secs(30)));
        copy.booted_at = copy.booted_at.map(|booted| booted - Duration::from_secs(60));
        assert!(!copy.may_be_before(saved_at), "a clock that was set forward, or another start");
    }

    #[test]
    fn file_that_is_saved_right_before_the_copy_is_older_and_one_right_after_it_is_not() {
        let place = tempfile::tempdir().unwrap();
        let save = || {
            std::fs::write(place.path().join("file"), "new").unwrap();
            std::fs::metadata(place.path().join("file")).unwrap().modified().unwrap()
        };
        for _ in 0..50 {
            let before = save();
            let copy = CopyTime::now();
            let after = save();
            assert!(!copy.may_be_before(before) && copy.may_be_before(after));
        }
    }
}
