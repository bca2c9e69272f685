//! Deadlines of steps and jobs.
//!
//! Deadlines are on the monotonic clock, so setting the wall clock doesn't move them. The host decides about a job's
//! own deadline: it may have extended it while the job ran, and is asked before the job is ended for it.

use crate::cancellation::Cancellation;
use crate::failure_code::Fault;
use belljar_contract::failure::FailureCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Latest end of the present work, and its cancellation.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'c> {
    job: &'c JobTime<'c>,
    own: Option<PhaseDeadline>,
    cancellation: &'c Cancellation,
}

/// The time of a job.
pub(crate) struct JobTime<'c> {
    begun: Instant,
    limit: Mutex<JobTimeLimit>,
    /// Asks the host for the remaining time; `None` if it doesn't answer.
    remaining: &'c (dyn Fn() -> Option<Duration> + Sync),
}

/// Reason why work was ended before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Interruption {
    #[error("the job ran longer than constraints.max_runtime_seconds ({} s)", limit.as_secs())]
    JobOutOfTime { limit: Duration },
    #[error("the job exceeded its time limit of {} s", whole_seconds(*limit))]
    AllowedTimeOver { limit: Duration },
    #[error("the step ran longer than its timeout_seconds ({} s)", limit.as_secs())]
    StepOutOfTime { limit: Duration },
    #[error("collecting the artifacts took longer than {} s", whole_seconds(*limit))]
    CollectingOutOfTime { limit: Duration },
    #[error("the runner received a signal to stop")]
    Canceled,
}

/// A deadline in addition to the job's, or in its place.
#[derive(Debug, Clone, Copy)]
struct PhaseDeadline {
    at: Instant,
    limit: Duration,
    whose: DeadlinePhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlinePhase {
    Step,
    Collecting,
}

#[derive(Debug, Clone, Copy)]
struct JobTimeLimit {
    end: Instant,
    /// Limit in the job's document.
    asked: Duration,
    is_the_hosts: bool,
    is_over: bool,
}

/// Minimum difference between the host's time and the runner's that means another limit.
const NOTABLE: Duration = Duration::from_millis(500);

/// Maximum time for collecting files once the job's time is over. The host kills the runner three seconds after that.
const AFTER_END: Duration = Duration::from_secs(2);

/// Rounds to whole seconds. The host counts from before the runner does, so its limit is slightly longer than what is
/// left here.
fn whole_seconds(limit: Duration) -> u64 {
    (limit + Duration::from_millis(500)).as_secs()
}

// === impl JobTime ===

impl<'c> JobTime<'c> {
    /// Starts the time of a job with the limit of its document, or the host's if there is one.
    pub(crate) fn start(
        asked: Duration,
        by_host: Option<Duration>,
        remaining: &'c (dyn Fn() -> Option<Duration> + Sync),
    ) -> Self {
        let begun = Instant::now();
        let mut limit = JobTimeLimit { end: begun + asked, asked, is_the_hosts: false, is_over: false };
        if let Some(by_host) = by_host {
            limit.is_the_hosts = by_host.abs_diff(asked) > NOTABLE;
            limit.end = begun + by_host;
        }
        Self { begun, limit: Mutex::new(limit), remaining }
    }

    /// Starts the time of a job that only its document limits.
    #[cfg(test)]
    pub(crate) fn alone(limit: Duration) -> Self {
        Self::start(limit, None, &|| None)
    }

    fn end(&self) -> Instant {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner).end
    }

    /// Returns the share of the time that is over, in percent.
    fn used_percent(&self) -> u128 {
        let whole = self.end().saturating_duration_since(self.begun).as_millis().max(1);
        self.begun.elapsed().as_millis() * 100 / whole
    }

    /// Extends the deadline: that much time is left from now.
    fn put_off(&self, left: Duration) {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        if !limit.is_over {
            limit.end = Instant::now() + left;
            limit.is_the_hosts = true;
        }
    }

    /// Returns an error if the time is over, after asking the host for an extended deadline.
    fn check(&self) -> Result<(), Interruption> {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() < limit.end {
            return Ok(());
        }
        if !limit.is_over {
            match (self.remaining)() {
                Some(left) if !left.is_zero() => {
                    limit.end = Instant::now() + left;
                    limit.is_the_hosts = true;
                    return Ok(());
                }
                _ => limit.is_over = true,
            }
        }
        Err(match limit.is_the_hosts {
            true => Interruption::AllowedTimeOver { limit: limit.end.duration_since(self.begun) },
            false => Interruption::JobOutOfTime { limit: limit.asked },
        })
    }
}

// === impl Deadline ===

impl<'c> Deadline<'c> {
    /// The deadline of a job.
    pub(crate) fn of_job(job: &'c JobTime<'c>, cancellation: &'c Cancellation) -> Self {
        Self { job, own: None, cancellation }
    }

    /// Returns the deadline for collecting files, which is done also for a job that ran out of time: within the limit,
    /// and before the host kills the runner, so that there is a result.
    pub(crate) fn of_collecting(self, limit: Duration) -> Self {
        let now = Instant::now();
        let limit = limit.min(self.job.end().saturating_duration_since(now) + AFTER_END);
        Self { own: Some(PhaseDeadline { at: now + limit, limit, whose: DeadlinePhase::Collecting }), ..self }
    }

    /// The deadline of a step that starts now: its own, unless the job's comes first.
    pub(crate) fn of_step(self, limit: Option<Duration>) -> Self {
        let own = limit.map(|limit| PhaseDeadline {
            at: Instant::now() + limit,
            limit,
            whose: DeadlinePhase::Step,
        });
        Self { own: own.or(self.own), ..self }
    }

    /// Returns the end, as far as is known now: call [`Deadline::check`] then.
    pub(crate) fn at(&self) -> Instant {
        match self.own {
            Some(PhaseDeadline { at, whose: DeadlinePhase::Collecting, .. }) => at,
            Some(PhaseDeadline { at, whose: DeadlinePhase::Step, .. }) => at.min(self.job.end()),
            None => self.job.end(),
        }
    }

    /// Returns the share of the job's time that is over, in percent.
    pub(crate) fn used_percent(&self) -> u128 {
        self.job.used_percent()
    }

    /// Extends the job's deadline by the host's decision: that much time is left from now.
    pub(crate) fn put_off(&self, left: Duration) {
        self.job.put_off(left);
    }

    /// Returns the cancellation, which becomes readable when the work is to end.
    pub(crate) fn cancellation(&self) -> &'c Cancellation {
        self.cancellation
    }

    /// Returns an error if the work must end. Long work calls this now and then.
    pub(crate) fn check(&self) -> Result<(), Interruption> {
        if self.cancellation.is_requested() {
            return Err(Interruption::Canceled);
        }
        match self.own {
            Some(PhaseDeadline { at, limit, whose }) if Instant::now() >= at => Err(match whose {
                DeadlinePhase::Step => Interruption::StepOutOfTime { limit },
                DeadlinePhase::Collecting => Interruption::CollectingOutOfTime { limit },
            }),
            Some(PhaseDeadline { whose: DeadlinePhase::Collecting, .. }) => Ok(()),
            _ => self.job.check(),
        }
    }
}

impl Fault for Interruption {
    fn code(&self) -> FailureCode {
        match self {
            Self::JobOutOfTime { .. } | Self::AllowedTimeOver { .. } | Self::StepOutOfTime { .. } => {
                FailureCode::Timeout
            }
            Self::CollectingOutOfTime { .. } => FailureCode::ConstraintViolation,
            Self::Canceled => FailureCode::Canceled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const TICK: Duration = Duration::from_millis(20);

    #[test]
    fn job_ends_at_its_own_limit_when_the_host_sets_none() {
        let cancellation = Cancellation::new().unwrap();
        let job = JobTime::start(TICK, None, &|| None);
        let deadline = Deadline::of_job(&job, &cancellation);
        assert_eq!(deadline.check(), Ok(()));
        std::thread::sleep(TICK);
        assert_eq!(deadline.check(), Err(Interruption::JobOutOfTime { limit: TICK }));
        // Its files are collected nevertheless.
        assert_eq!(deadline.of_collecting(TICK * 100).check(), Ok(()));
    }

    #[test]
    fn artifact_collection_ends_at_its_limit_or_shortly_after_the_job_deadline() {
        let cancellation = Cancellation::new().unwrap();
        let limit = Duration::from_secs(60);
        for (job, at_most, at_least) in [(TICK, AFTER_END + TICK, AFTER_END), (limit * 2, limit, limit)] {
            let job = JobTime::alone(job);
            let begun = Instant::now();
            let at = Deadline::of_job(&job, &cancellation).of_collecting(limit).at();
            let left = at.saturating_duration_since(begun);
            assert!(left >= at_least.saturating_sub(TICK) && left <= at_most + TICK, "{left:?}");
        }
    }

    #[test]
    fn host_can_extend_the_job_deadline_but_not_a_step_timeout() {
        let cancellation = Cancellation::new().unwrap();
        let asked = AtomicU32::new(0);
        let remaining = || match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Some(TICK * 50),
            _ => None,
        };
        let job = JobTime::start(TICK, None, &remaining);
        let deadline = Deadline::of_job(&job, &cancellation);
        let step = deadline.of_step(Some(TICK));
        std::thread::sleep(TICK);
        assert_eq!(deadline.check(), Ok(()));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert_eq!(step.check(), Err(Interruption::StepOutOfTime { limit: TICK }));
        std::thread::sleep(TICK * 51);
        let over = deadline.check();
        assert!(matches!(over, Err(Interruption::AllowedTimeOver { .. })), "{over:?}");
        // Once the time is over it stays so, and the host is not asked again.
        assert_eq!((deadline.check().is_err(), asked.load(Ordering::SeqCst)), (true, 2));
    }

    #[test]
    fn job_deadline_can_be_extended_until_it_has_expired() {
        let cancellation = Cancellation::new().unwrap();
        let job = JobTime::start(TICK * 100, None, &|| None);
        let deadline = Deadline::of_job(&job, &cancellation);
        std::thread::sleep(TICK);
        let used = deadline.used_percent();
        assert!(used > 0);
        deadline.put_off(TICK * 100_000);
        assert!(deadline.used_percent() < used && deadline.check().is_ok());
        let over = JobTime::start(TICK, None, &|| None);
        std::thread::sleep(TICK);
        assert!(over.check().is_err());
        over.put_off(TICK * 100);
        assert!(over.check().is_err());
    }

    #[test]
    fn shorter_limit_of_the_host_applies_immediately() {
        let cancellation = Cancellation::new().unwrap();
        let job = JobTime::start(Duration::from_secs(600), Some(TICK), &|| None);
        std::thread::sleep(TICK);
        let over = Deadline::of_job(&job, &cancellation).check();
        assert_eq!(over, Err(Interruption::AllowedTimeOver { limit: TICK }));
    }
}
