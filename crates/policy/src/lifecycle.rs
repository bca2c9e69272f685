//! Life cycle of a job: its events and states.
//!
//! ```text
//!                  claim                start                end
//!  waiting ────────────────► claimed ──────────► running ──────────► completed, failed, timeout, canceled
//!    │  ▲                      │  │                │
//!    │  │ give back            │  │ lose           │ lose
//!    │  ├──────────────────────┘  ▼                ▼
//!    │  │ an attempt is left   ┌─────────────────────┐ none is left
//!    │  └──────────────────────┤  its owner is gone  ├─────────────► node_failure
//!    │ cancel                  └──────────┬──────────┘
//!    ▼                                    │ cancellation was requested
//!  canceled ◄─────────────────────────────┘
//! ```
//! From its claim on, a job has one owner, who proves it with the claim's fence (fencing token): a number that no other claim
//! of the job has. An input with another fence comes from a former owner and changes nothing. Final states have no successors.
//! Repeating an input is no error.

use belljar_contract::worker::state::JobState;

/// Life of a job so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLifecycle {
    /// Current state.
    pub state: JobState,
    /// Number of attempts so far.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// True if the job has an owner.
    pub is_owned: bool,
    /// Number of the latest claim.
    pub fence: Fence,
    /// True if cancellation was requested.
    pub cancel_requested: bool,
}

/// Fencing token: the number of a claim, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

/// Event in the life of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// A worker takes the job.
    Claim,
    /// The owner has not begun the job and returns it.
    GiveBack(Fence),
    /// The runner has read and validated the job.
    Start(Fence),
    /// The job has ended.
    End(Fence, ReportedEnding),
    /// The owner is lost, or abandons the job.
    Lose(Fence),
    /// A client requests cancellation.
    Cancel,
}

/// Ending of a job that its owner reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedEnding {
    /// The job succeeded.
    Completed,
    /// The job failed.
    Failed,
    /// The job exceeded its time limit.
    Timeout,
    /// The job was stopped on request.
    Canceled,
    /// The node could not execute the job.
    NodeFailure,
}

/// Effect of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleChange {
    /// The job has changed.
    Changed,
    /// The job was already in this state.
    Unchanged,
}

/// Reason why an input is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LifecycleRefusal {
    /// The fence is not that of the latest claim, or the job has no owner any more.
    #[error("the job has another owner now")]
    Fenced,
    /// The job is over.
    #[error("the job is over: {state}")]
    Over {
        /// Final state.
        state: JobState,
    },
    /// The job has an owner.
    #[error("the job has an owner")]
    Owned,
    /// The job has begun.
    #[error("the job has begun")]
    Begun,
}

// === impl JobLifecycle ===

impl JobLifecycle {
    /// Returns the life of a job that was just accepted.
    pub fn accepted(max_attempts: u32) -> Self {
        Self {
            state: JobState::Accepted,
            attempt: 0,
            max_attempts,
            is_owned: false,
            fence: Fence::default(),
            cancel_requested: false,
        }
    }

    /// Applies an input to the job.
    ///
    /// # Errors
    /// [`LifecycleRefusal`], if it is not possible; the job stays unchanged.
    pub fn apply(&mut self, input: LifecycleEvent) -> Result<LifecycleChange, LifecycleRefusal> {
        match input {
            LifecycleEvent::Claim => self.claim(),
            LifecycleEvent::GiveBack(fence) => self.give_back(fence),
            LifecycleEvent::Start(fence) => self.start(fence),
            LifecycleEvent::End(fence, ending) => self.end(fence, ending),
            LifecycleEvent::Lose(fence) => self.lose(fence),
            LifecycleEvent::Cancel => Ok(self.cancel()),
        }
    }

    fn claim(&mut self) -> Result<LifecycleChange, LifecycleRefusal> {
        if self.state.is_final() {
            return Err(LifecycleRefusal::Over { state: self.state });
        }
        if self.is_owned {
            return Err(LifecycleRefusal::Owned);
        }
        self.is_owned = true;
        self.attempt += 1;
        self.fence = Fence(self.fence.0 + 1);
        Ok(LifecycleChange::Changed)
    }

    fn give_back(&mut self, fence: Fence) -> Result<LifecycleChange, LifecycleRefusal> {
        self.check_owner(fence)?;
        if self.state == JobState::InProgress {
            return Err(LifecycleRefusal::Begun);
        }
        self.is_owned = false;
        self.attempt -= 1;
        if self.cancel_requested {
            self.state = JobState::Canceled;
        }
        Ok(LifecycleChange::Changed)
    }

    fn start(&mut self, fence: Fence) -> Result<LifecycleChange, LifecycleRefusal> {
        self.check_owner(fence)?;
        Ok(self.turn(JobState::InProgress))
    }

    fn end(&mut self, fence: Fence, ending: ReportedEnding) -> Result<LifecycleChange, LifecycleRefusal> {
        let state = ending.state();
        let was_claimed = fence != Fence::default();
        if was_claimed && self.fence == fence && self.state == state {
            return Ok(LifecycleChange::Unchanged);
        }
        self.check_owner(fence)?;
        self.is_owned = false;
        Ok(self.turn(state))
    }

    fn lose(&mut self, fence: Fence) -> Result<LifecycleChange, LifecycleRefusal> {
        self.check_owner(fence)?;
        self.is_owned = false;
        self.state = match (self.cancel_requested, self.attempt < self.max_attempts) {
            (true, _) => JobState::Canceled,
            (false, true) => JobState::Accepted,
            (false, false) => JobState::NodeFailure,
        };
        Ok(LifecycleChange::Changed)
    }

    /// Requests cancellation. The owner of a job ends it; a job without an owner is over at once.
    fn cancel(&mut self) -> LifecycleChange {
        if self.state.is_final() || self.cancel_requested {
            return LifecycleChange::Unchanged;
        }
        self.cancel_requested = true;
        if !self.is_owned {
            self.state = JobState::Canceled;
        }
        LifecycleChange::Changed
    }

    fn check_owner(&self, fence: Fence) -> Result<(), LifecycleRefusal> {
        if self.fence != fence {
            return Err(LifecycleRefusal::Fenced);
        }
        if self.state.is_final() {
            return Err(LifecycleRefusal::Over { state: self.state });
        }
        if !self.is_owned {
            return Err(LifecycleRefusal::Fenced);
        }
        Ok(())
    }

    fn turn(&mut self, state: JobState) -> LifecycleChange {
        let change = if self.state == state { LifecycleChange::Unchanged } else { LifecycleChange::Changed };
        self.state = state;
        change
    }
}

// === impl ReportedEnding ===

impl ReportedEnding {
    /// Returns the state of a job with this ending.
    pub const fn state(self) -> JobState {
        match self {
            Self::Completed => JobState::Completed,
            Self::Failed => JobState::Failed,
            Self::Timeout => JobState::Timeout,
            Self::Canceled => JobState::Canceled,
            Self::NodeFailure => JobState::NodeFailure,
        }
    }
}

#[cfg(test)]
mod tests;
