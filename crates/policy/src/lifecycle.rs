//! The life of a job: what may happen to it, and what comes of that.
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
//!    ▼                                    │ somebody wanted it to stop
//!  canceled ◄─────────────────────────────┘
//! ```
//! One owner has a job from its claim on, and proves it with the claim's fence: a number that no other claim of the job
//! has. Whoever comes with another fence has lost the job, and changes nothing. From a final state nothing leads on; to
//! say once more what has happened already is no mistake.

use belljar_contract::worker::state::JobState;

/// A job's life so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// How far it is.
    pub state: JobState,
    /// How often it was begun.
    pub attempt: u32,
    /// How often it may be.
    pub max_attempts: u32,
    /// Whether somebody owns it.
    pub is_owned: bool,
    /// The number of its last claim.
    pub fence: Fence,
    /// Whether somebody wants it to stop.
    pub cancel_requested: bool,
}

/// The number of a claim, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

/// Something that happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Somebody takes it, to carry it out.
    Claim,
    /// Its owner has not begun, and won't.
    GiveBack(Fence),
    /// The runner has read and validated it.
    Start(Fence),
    /// It is over.
    End(Fence, Ending),
    /// Its owner is gone, or leaves it.
    Lose(Fence),
    /// Somebody wants it to stop.
    Cancel,
}

/// How a job ends whose owner lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It did what it should.
    Completed,
    /// It failed.
    Failed,
    /// It ran out of time.
    Timeout,
    /// It was stopped, because somebody wanted it to.
    Canceled,
    /// The node could not carry it out.
    NodeFailure,
}

/// What comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The job is another.
    Changed,
    /// It was so already.
    Unchanged,
}

/// It can't happen to this job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another claim came after that of who says so, or the job has no owner any more.
    #[error("the job is not theirs any more")]
    Fenced,
    /// The job is over.
    #[error("the job is over: {state}")]
    Over {
        /// How it ended.
        state: JobState,
    },
    /// It has an owner.
    #[error("the job has an owner")]
    Owned,
    /// It has begun.
    #[error("the job has begun")]
    Begun,
}

// === impl Lifecycle ===

impl Lifecycle {
    /// The life of a job that was just accepted.
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

    /// Lets something happen to the job.
    ///
    /// # Errors
    /// [`Refused`] when it can't; the job is what it was.
    pub fn apply(&mut self, input: Input) -> Result<Change, Refused> {
        match input {
            Input::Claim => self.claim(),
            Input::GiveBack(fence) => self.give_back(fence),
            Input::Start(fence) => self.start(fence),
            Input::End(fence, ending) => self.end(fence, ending),
            Input::Lose(fence) => self.lose(fence),
            Input::Cancel => Ok(self.cancel()),
        }
    }

    fn claim(&mut self) -> Result<Change, Refused> {
        if self.state.is_final() {
            return Err(Refused::Over { state: self.state });
        }
        if self.is_owned {
            return Err(Refused::Owned);
        }
        self.is_owned = true;
        self.attempt += 1;
        self.fence = Fence(self.fence.0 + 1);
        Ok(Change::Changed)
    }

    fn give_back(&mut self, fence: Fence) -> Result<Change, Refused> {
        self.check_owner(fence)?;
        if self.state == JobState::InProgress {
            return Err(Refused::Begun);
        }
        self.is_owned = false;
        self.attempt -= 1;
        if self.cancel_requested {
            self.state = JobState::Canceled;
        }
        Ok(Change::Changed)
    }

    fn start(&mut self, fence: Fence) -> Result<Change, Refused> {
        self.check_owner(fence)?;
        Ok(self.turn(JobState::InProgress))
    }

    fn end(&mut self, fence: Fence, ending: Ending) -> Result<Change, Refused> {
        let state = ending.state();
        let was_claimed = fence != Fence::default();
        if was_claimed && self.fence == fence && self.state == state {
            return Ok(Change::Unchanged);
        }
        self.check_owner(fence)?;
        self.is_owned = false;
        Ok(self.turn(state))
    }

    fn lose(&mut self, fence: Fence) -> Result<Change, Refused> {
        self.check_owner(fence)?;
        self.is_owned = false;
        self.state = match (self.cancel_requested, self.attempt < self.max_attempts) {
            (true, _) => JobState::Canceled,
            (false, true) => JobState::Accepted,
            (false, false) => JobState::NodeFailure,
        };
        Ok(Change::Changed)
    }

    /// A job that somebody owns is ended by them; one that nobody owns is over at once.
    fn cancel(&mut self) -> Change {
        if self.state.is_final() || self.cancel_requested {
            return Change::Unchanged;
        }
        self.cancel_requested = true;
        if !self.is_owned {
            self.state = JobState::Canceled;
        }
        Change::Changed
    }

    fn check_owner(&self, fence: Fence) -> Result<(), Refused> {
        if self.fence != fence {
            return Err(Refused::Fenced);
        }
        if self.state.is_final() {
            return Err(Refused::Over { state: self.state });
        }
        if !self.is_owned {
            return Err(Refused::Fenced);
        }
        Ok(())
    }

    fn turn(&mut self, state: JobState) -> Change {
        let change = if self.state == state { Change::Unchanged } else { Change::Changed };
        self.state = state;
        change
    }
}

// === impl Ending ===

impl Ending {
    /// The state that it leads to.
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
