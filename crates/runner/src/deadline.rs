//! Until when a step may run.
//!
//! Deadlines are on the monotonic clock: setting the wall clock moves none of them.

use crate::cancellation::Cancellation;
use crate::fault::Fault;
use belljar_contract::failure::FailureCode;
use std::time::{Duration, Instant};

/// When the work at hand ends at the latest, and whether somebody wants it to end now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline<'c> {
    at: Instant,
    limit: Duration,
    whose: Whose,
    cancellation: &'c Cancellation,
}

/// Why work was ended before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Interrupted {
    #[error("the job ran longer than constraints.max_runtime_seconds ({} s)", limit.as_secs())]
    JobOutOfTime { limit: Duration },
    #[error("the step ran longer than its timeout_seconds ({} s)", limit.as_secs())]
    StepOutOfTime { limit: Duration },
    #[error("collecting the artifacts took longer than {} s", limit.as_secs())]
    CollectingOutOfTime { limit: Duration },
    #[error("the runner was asked to stop")]
    Canceled,
}

#[derive(Debug, Clone, Copy)]
enum Whose {
    Job,
    Step,
    Collecting,
}

// === impl Deadline ===

impl<'c> Deadline<'c> {
    /// The deadline of a job that starts now.
    pub(crate) fn of_job(limit: Duration, cancellation: &'c Cancellation) -> Self {
        Self { at: Instant::now() + limit, limit, whose: Whose::Job, cancellation }
    }

    /// The deadline of collecting what is kept, which is done also for a job that ran out of time.
    pub(crate) fn of_collecting(limit: Duration, cancellation: &'c Cancellation) -> Self {
        Self { at: Instant::now() + limit, limit, whose: Whose::Collecting, cancellation }
    }

    /// The deadline of a step that starts now: its own, unless the job's comes first.
    pub(crate) fn of_step(self, limit: Option<Duration>) -> Self {
        match limit.map(|limit| (limit, Instant::now() + limit)) {
            Some((limit, at)) if at < self.at => Self { at, limit, whose: Whose::Step, ..self },
            _ => self,
        }
    }

    /// When it is.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// What becomes readable when somebody wants the work to end now.
    pub(crate) fn cancellation(&self) -> &'c Cancellation {
        self.cancellation
    }

    /// Goes on, or says why not. Work that takes long asks this now and then.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        if self.cancellation.is_requested() {
            return Err(Interrupted::Canceled);
        }
        match (Instant::now() < self.at, self.whose) {
            (true, _) => Ok(()),
            (false, Whose::Job) => Err(Interrupted::JobOutOfTime { limit: self.limit }),
            (false, Whose::Step) => Err(Interrupted::StepOutOfTime { limit: self.limit }),
            (false, Whose::Collecting) => Err(Interrupted::CollectingOutOfTime { limit: self.limit }),
        }
    }
}

impl Fault for Interrupted {
    fn code(&self) -> FailureCode {
        match self {
            Self::JobOutOfTime { .. } | Self::StepOutOfTime { .. } => FailureCode::Timeout,
            Self::CollectingOutOfTime { .. } => FailureCode::ConstraintViolation,
            Self::Canceled => FailureCode::Canceled,
        }
    }
}
