//! What an agent has done, as far as it counts.
//!
//! What nobody has said counts as nothing, never as good: a task of unknown quality has none, and a share of fewer tasks than
//! say something is one of as many.

use belljar_contract::trust::{Quality, Share};
use jiff::{SignedDuration, Timestamp};

/// Sums over what was done since the record was begun. What is reckoned from them are whole numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    since: Timestamp,
    completed: u64,
    /// Those of them that are jobs which were not assessed.
    jobs: u64,
    failed: u64,
    difficulty: u64,
    quality: u64,
    feedback: u64,
    feedbacks: u64,
    last_failed_at: Option<Timestamp>,
    recent: Recent,
    lately: Lately,
}

/// How the last tasks went, the last one lowest: a bit for each that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Recent {
    failures: u32,
    tasks: u32,
}

/// What was completed since the agent was last looked at again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lately {
    completed: u64,
    quality: u64,
}

/// A completed task.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Completed {
    pub(super) difficulty: Share,
    pub(super) quality: Quality,
}

/// So many of the last tasks say how often an agent fails now.
const RECENT: u32 = 20;

/// Fewer tasks say too little: a share of them is one of as many.
const FEWEST: u64 = 10;

/// A day, whatever clocks do.
const HOURS_OF_DAY: i64 = 24;

/// That many days.
pub(super) fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(HOURS_OF_DAY * i64::from(days))
}

/// Whole days from one time to another; none where that came before.
pub(super) fn days_between(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.duration_since(from).as_hours() / HOURS_OF_DAY).unwrap_or_default()
}

// === impl Record ===

impl Record {
    /// An empty one.
    pub(super) fn begun(since: Timestamp) -> Self {
        Self {
            since,
            completed: 0,
            jobs: 0,
            failed: 0,
            difficulty: 0,
            quality: 0,
            feedback: 0,
            feedbacks: 0,
            last_failed_at: None,
            recent: Recent::default(),
            lately: Lately::default(),
        }
    }

    /// One that is empty but for what the agent is yet to be looked at again for.
    pub(super) fn begun_anew(&self, since: Timestamp) -> Self {
        Self { lately: self.lately, ..Self::begun(since) }
    }

    /// One in which there is how the last tasks went, besides: nobody's failures are forgotten for a no.
    pub(super) fn begun_after_denial(&self, since: Timestamp) -> Self {
        Self { recent: self.recent, ..self.begun_anew(since) }
    }

    pub(super) fn complete(&mut self, task: Completed) {
        self.completed = self.completed.saturating_add(1);
        self.difficulty = self.difficulty.saturating_add(task.difficulty.steps());
        self.quality = self.quality.saturating_add(task.quality.steps());
        self.lately.completed = self.lately.completed.saturating_add(1);
        self.lately.quality = self.lately.quality.saturating_add(task.quality.steps());
        self.recent.push(false);
    }

    pub(super) fn complete_job(&mut self) {
        self.complete(Completed::default());
        self.jobs = self.jobs.saturating_add(1);
    }

    /// Adds what was said of one of the jobs, which is judged by that.
    pub(super) fn assess(&mut self, task: Completed, is_lately: bool) {
        self.jobs = self.jobs.saturating_sub(1);
        self.difficulty = self.difficulty.saturating_add(task.difficulty.steps());
        self.quality = self.quality.saturating_add(task.quality.steps());
        if is_lately {
            self.lately.quality = self.lately.quality.saturating_add(task.quality.steps());
        }
    }

    /// Whether a part of it is jobs, which no person has judged.
    pub(super) fn has_jobs(&self) -> bool {
        self.jobs > 0
    }

    pub(super) fn fail(&mut self, at: Timestamp) {
        self.failed = self.failed.saturating_add(1);
        self.last_failed_at = Some(at);
        self.recent.push(true);
    }

    pub(super) fn hear(&mut self, score: Share) {
        self.feedback = self.feedback.saturating_add(score.steps());
        self.feedbacks = self.feedbacks.saturating_add(1);
    }

    /// The agent was looked at again.
    pub(super) fn verify(&mut self) {
        self.lately = Lately::default();
    }

    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// How well completed tasks were done.
    pub(super) fn quality(&self) -> Quality {
        Quality::from_steps(self.quality.checked_div(self.completed).unwrap_or_default())
    }

    /// How well those were that were completed since the agent was last looked at again.
    pub(super) fn quality_lately(&self) -> Quality {
        Quality::from_steps(self.lately.quality.checked_div(self.lately.completed).unwrap_or_default())
    }

    /// How hard completed tasks were.
    pub(super) fn difficulty(&self) -> Share {
        Share::from_steps(self.difficulty / self.completed.max(FEWEST))
    }

    /// How many of all tasks were completed.
    pub(super) fn completion_rate(&self) -> Share {
        share(self.completed, self.completed.saturating_add(self.failed).max(FEWEST))
    }

    /// How many of the last tasks were completed; those that there weren't are none of them.
    pub(super) fn recent_successes(&self) -> Share {
        share(u64::from(self.recent.tasks - self.recent.failed()), u64::from(RECENT))
    }

    /// At how many of the last tasks the agent failed. Of fewer than say something it is not yet many.
    pub(super) fn error_rate(&self) -> Share {
        share(u64::from(self.recent.failed()), u64::from(self.recent.tasks).max(FEWEST))
    }

    /// How content people were.
    pub(super) fn feedback(&self) -> Share {
        Share::from_steps(self.feedback.checked_div(self.feedbacks).unwrap_or_default())
    }

    /// Whole days since the record was begun.
    pub(super) fn active_days(&self, now: Timestamp) -> u32 {
        days_between(self.since, now)
    }

    /// The last failure, or the beginning of the record.
    pub(super) fn clean_since(&self) -> Timestamp {
        self.last_failed_at.unwrap_or(self.since)
    }

    /// Whole days without a failure. The record must have them: before it there were none.
    pub(super) fn clean_days(&self, now: Timestamp) -> u32 {
        days_between(self.clean_since(), now)
    }
}

fn share(part: u64, whole: u64) -> Share {
    Share::from_steps(part.saturating_mul(Share::MOST.steps()).checked_div(whole).unwrap_or_default())
}

// === impl Recent ===

impl Recent {
    fn push(&mut self, is_failure: bool) {
        self.failures = ((self.failures << 1) + u32::from(is_failure)) & ((1 << RECENT) - 1);
        self.tasks = (self.tasks + 1).min(RECENT);
    }

    fn failed(self) -> u32 {
        self.failures.count_ones()
    }
}
