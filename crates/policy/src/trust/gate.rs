//! What a step up takes.

use super::record::{Record, days};
use belljar_contract::trust::{Quality, Share};
use jiff::Timestamp;

/// What a step takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gate {
    /// What the agent must have earned.
    pub(super) needs: Needs,
    /// Whether a person is asked then.
    pub(super) asks_person: bool,
}

/// What must have been earned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// So high a score.
    Score(Share),
    /// A record such as this.
    Record(Criteria),
}

/// What a record must have. Where there is nothing in it, that is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Criteria {
    /// Tasks that were completed.
    pub(super) tasks_completed: u64,
    /// How well, on average. A task of which nobody said so counts as done badly.
    pub(super) quality_min: Quality,
    /// Days since the record was begun.
    pub(super) time_active_days: u32,
    /// Days without a failure, of which the record must have that many.
    pub(super) clean_history_days: u32,
}

/// What counts for how much, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weights {
    /// How hard completed tasks were.
    pub(super) task_difficulty: u64,
    /// How many of all were completed.
    pub(super) completion_rate: u64,
    /// How few of the last ones failed.
    pub(super) error_rate: u64,
    /// How content people were.
    pub(super) human_feedback: u64,
}

// === impl Gate ===

impl Gate {
    /// How good what was done must be, if that is asked for.
    pub(super) fn quality_min(&self) -> Option<Quality> {
        match self.needs {
            Needs::Score(_) => None,
            Needs::Record(criteria) => Some(criteria.quality_min),
        }
    }

    /// From when on the record has what the step takes, if nothing else is recorded.
    pub(super) fn met_from(&self, record: &Record, weights: Option<&Weights>) -> Option<Timestamp> {
        match self.needs {
            Needs::Score(least) => {
                weights.filter(|weights| weights.score(record) >= least).map(|_| record.since())
            }
            Needs::Record(criteria) => criteria.met_from(record),
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
    /// All of it in one number.
    pub(super) fn score(&self, record: &Record) -> Share {
        let Self { task_difficulty, completion_rate, error_rate, human_feedback } = self;
        let sum = task_difficulty * record.difficulty().steps()
            + completion_rate * record.completion_rate().steps()
            + error_rate * record.recent_successes().steps()
            + human_feedback * record.feedback().steps();
        Share::from_steps(sum / 1_000)
    }

    /// What all of them make.
    pub(super) fn sum(&self) -> u64 {
        self.task_difficulty + self.completion_rate + self.error_rate + self.human_feedback
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self { task_difficulty: 300, completion_rate: 250, error_rate: 250, human_feedback: 200 }
    }
}
