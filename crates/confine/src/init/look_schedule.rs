//! Time limits of PID 1's looks, and the other looks that it makes meanwhile.
//!
//! Programs decide how much there is to look at. So a long look goes in short steps, has a limit of processor time, and makes
//! way for the other looks that are due: none of them waits until it has ended.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// A long look that is under way.
pub(super) struct ScanPace<'a> {
    /// Processor time of this thread: on a busy machine a look takes longer, and sees as much.
    until: Duration,
    /// Time at which the clock and the other looks are checked again.
    next: Instant,
    /// The other looks. Returns true when one of them has found too much, so that this one needn't go on.
    others: &'a mut dyn FnMut() -> bool,
    stop: Option<ScanStop>,
}

/// Why a look stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanStop {
    /// It has used its processor time.
    TookTooLong,
    /// Another look has found too much.
    Other,
}

const BETWEEN_OTHERS: Duration = Duration::from_millis(5);

// === impl ScanPace ===

impl<'a> ScanPace<'a> {
    /// Begins a look that may use that much processor time, without that of the others.
    pub(super) fn begin(longest: Duration, others: &'a mut dyn FnMut() -> bool) -> Self {
        Self { until: processor_time() + longest, next: Instant::now(), others, stop: None }
    }

    /// Returns true if the look may go on. Call it before each of its steps.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.stop.is_none() && Instant::now() >= self.next {
            let begun = processor_time();
            if (self.others)() {
                self.stop = Some(ScanStop::Other);
            } else if begun >= self.until {
                self.stop = Some(ScanStop::TookTooLong);
            }
            self.until += processor_time().saturating_sub(begun);
            self.next = Instant::now() + BETWEEN_OTHERS;
        }
        self.stop.is_none()
    }

    pub(super) fn stop(&self) -> Option<ScanStop> {
        self.stop
    }
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), u32::try_from(used.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_scan_yields_to_other_work_until_its_time_is_used_up() {
        let mut looks = 0;
        let mut others = || {
            looks += 1;
            false
        };
        let mut pace = ScanPace::begin(Duration::from_millis(50), &mut others);
        while pace.goes_on() {}
        assert_eq!(pace.stop(), Some(ScanStop::TookTooLong));
        assert!(!pace.goes_on(), "it has stopped for good");
        assert!(looks > 1, "{looks}");
    }

    #[test]
    fn scan_stops_when_another_check_finds_an_exceeded_limit() {
        let mut left = 3;
        let mut others = || {
            left -= 1;
            left == 0
        };
        let mut pace = ScanPace::begin(Duration::MAX / 2, &mut others);
        while pace.goes_on() {}
        assert_eq!(pace.stop(), Some(ScanStop::Other));
    }

    #[test]
    fn time_of_other_work_does_not_count_as_scan_time() {
        const OF_OTHERS: Duration = Duration::from_millis(40);
        let mut rounds = 0;
        let mut others = || {
            let begun = processor_time();
            while processor_time() - begun < OF_OTHERS {}
            rounds += 1;
            rounds == 4
        };
        let mut pace = ScanPace::begin(OF_OTHERS, &mut others);
        while pace.goes_on() {}
        assert_eq!(pace.stop(), Some(ScanStop::Other), "the others alone took longer than it may");
    }
}
