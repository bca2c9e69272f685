//! Requirements of a step up.

use super::record::{Record, days};
use belljar_contract::trust::{Quality, Share};
use jiff::Timestamp;

/// Gate of a step up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gate {
    /// Requirements that the agent must have earned.
    pub(super) needs: StepRequirements,
    /// True if the step then requires a user's approval.
    pub(super) asks_person: bool,
}

/// Requirements of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepRequirements {
    /// Minimum score.
    Score(Share),
    /// Criteria of the record.
    Record(Criteria),
}

/// Criteria of a record. The default requires nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Criteria {
    /// Minimum number of completed tasks.
    pub(super) tasks_completed: u64,
    /// Minimum average quality. A task of unknown quality counts as bad.
    pub(super) quality_min: Quality,
    /// Minimum number of days since the record was begun.
    pub(super) time_active_days: u32,
    /// Minimum number of days without a failure, within the record.
    pub(super) clean_history_days: u32,
}

/// Weights of the score, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weights {
    /// Difficulty of completed tasks.
    pub(super) task_difficulty: u64,
    /// Share of completed tasks.
    pub(super) completion_rate: u64,
    /// Share of recent tasks without failure.
    pub(super) error_rate: u64,
    /// Feedback of users.
    pub(super) human_feedback: u64,
}

// === impl Gate ===

impl Gate {
    /// Returns the minimum quality, if the gate requires one.
    pub(super) fn quality_min(&self) -> Option<Quality> {
        match self.needs {
            StepRequirements::Score(_) => None,
            StepRequirements::Record(criteria) => Some(criteria.quality_min),
        }
    }

    /// Returns the time from which the record meets the gate, if nothing else is recorded.
    pub(super) fn met_from(&self, record: &Record, weights: Option<&Weights>) -> Option<Timestamp> {
        match self.needs {
            StepRequirements::Score(least) => {
                weights.filter(|weights| weights.score(record) >= least).map(|_| record.since())
            }
            StepRequirements::Record(criteria) => criteria.met_from(record),
        }
    }
}

// === impl Criteria ===

impl Criteria {
    fn met_from(&self, record: &Record) -> Option<Timestamp> {
        let is_enough = record.completed() >= self.tasks_completed && record.quality() >= self.quality_min;
        if !is_enough {
            return None;
        }
        let active = record.since().checked_add(days(self.time_active_days)).ok()?;
        let clean = record.clean_since().checked_add(days(self.clean_history_days)).ok()?;
        Some(active.max(clean))
    }
}

// === impl Weights ===

impl Weights {
    /// Returns the score of a record.
    pub(super) fn score(&self, record: &Record) -> Share {
        let Self { task_difficulty, completion_rate, error_rate, human_feedback } = self;
        let sum = task_difficulty * record.difficulty().steps()
            + completion_rate * record.completion_rate().steps()
            + error_rate * record.recent_successes().steps()
            + human_feedback * record.feedback().steps();
        Share::from_steps(sum / 1_000)
    }

    /// Returns the sum of the weights.
    pub(super) fn sum(&self) -> u64 {
        self.task_difficulty + self.completion_rate + self.error_rate + self.human_feedback
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self { task_difficulty: 300, completion_rate: 250, error_rate: 250, human_feedback: 200 }
    }
}
