//! Record of an agent's work, as far as it counts.
//!
//! Unknown values count as zero, never as good. A task of unknown quality has quality 0. A share of fewer tasks than the
//! minimum is computed over the minimum.

use belljar_contract::trust::{Quality, Share};
use jiff::{SignedDuration, Timestamp};

/// Sums over the work since the record was begun. All results are integers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    since: Timestamp,
    completed: u64,
    /// Number of completed tasks that are unassessed jobs.
    jobs: u64,
    failed: u64,
    difficulty: u64,
    quality: u64,
    feedback: u64,
    feedbacks: u64,
    last_failed_at: Option<Timestamp>,
    recent: RecentResults,
    lately: UnverifiedWork,
}

/// Results of the latest tasks, the latest in the lowest bit; 1 for a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RecentResults {
    failures: u32,
    tasks: u32,
}

/// Work since the last verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UnverifiedWork {
    completed: u64,
    quality: u64,
}

/// Completed task.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CompletedTask {
    pub(super) difficulty: Share,
    pub(super) quality: Quality,
}

/// Number of latest tasks that the error rate covers.
const RECENT: u32 = 20;

/// Minimum number of tasks for a share; fewer count as this many.
const FEWEST: u64 = 10;

/// Length of a day in hours, regardless of clock changes.
const HOURS_OF_DAY: i64 = 24;

/// Returns that number of days.
pub(super) fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(HOURS_OF_DAY * i64::from(days))
}

/// Returns the number of whole days between two times; 0 if `to` is earlier.
pub(super) fn days_between(from: Timestamp, to: Timestamp) -> u32 {
    u32::try_from(to.duration_since(from).as_hours() / HOURS_OF_DAY).unwrap_or_default()
}

// === impl Record ===

impl Record {
    /// Returns an empty record.
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
            recent: RecentResults::default(),
            lately: UnverifiedWork::default(),
        }
    }

    /// Returns a record that is empty except for the work that is not yet verified.
    pub(super) fn begun_anew(&self, since: Timestamp) -> Self {
        Self { lately: self.lately, ..Self::begun(since) }
    }

    /// Returns such a record with the results of the latest tasks: a denial doesn't erase failures.
    pub(super) fn begun_after_denial(&self, since: Timestamp) -> Self {
        Self { recent: self.recent, ..self.begun_anew(since) }
    }

    pub(super) fn complete(&mut self, task: CompletedTask) {
        self.completed = self.completed.saturating_add(1);
        self.difficulty = self.difficulty.saturating_add(task.difficulty.steps());
        self.quality = self.quality.saturating_add(task.quality.steps());
        self.lately.completed = self.lately.completed.saturating_add(1);
        self.lately.quality = self.lately.quality.saturating_add(task.quality.steps());
        self.recent.push(false);
    }

    pub(super) fn complete_job(&mut self) {
        self.complete(CompletedTask::default());
        self.jobs = self.jobs.saturating_add(1);
    }

    /// Adds the assessment of one of the jobs, which then counts as judged.
    pub(super) fn assess(&mut self, task: CompletedTask, is_lately: bool) {
        self.jobs = self.jobs.saturating_sub(1);
        self.difficulty = self.difficulty.saturating_add(task.difficulty.steps());
        self.quality = self.quality.saturating_add(task.quality.steps());
        if is_lately {
            self.lately.quality = self.lately.quality.saturating_add(task.quality.steps());
        }
    }

    /// Returns true if it includes jobs that no user has judged.
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

    /// Notes that the agent was verified.
    pub(super) fn verify(&mut self) {
        self.lately = UnverifiedWork::default();
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

    /// Returns the average quality of completed tasks.
    pub(super) fn quality(&self) -> Quality {
        Quality::from_steps(self.quality.checked_div(self.completed).unwrap_or_default())
    }

    /// Returns the average quality of tasks since the last verification.
    pub(super) fn quality_lately(&self) -> Quality {
        Quality::from_steps(self.lately.quality.checked_div(self.lately.completed).unwrap_or_default())
    }

    /// Returns the average difficulty of completed tasks.
    pub(super) fn difficulty(&self) -> Share {
        Share::from_steps(self.difficulty / self.completed.max(FEWEST))
    }

    /// Returns the share of tasks that were completed.
    pub(super) fn completion_rate(&self) -> Share {
        share(self.completed, self.completed.saturating_add(self.failed).max(FEWEST))
    }

    /// Returns the share of the latest tasks that succeeded; missing tasks count as not successful.
    pub(super) fn recent_successes(&self) -> Share {
        share(u64::from(self.recent.tasks - self.recent.failed()), u64::from(RECENT))
    }

    /// Returns the share of the latest tasks that failed. For few tasks the minimum number is the base, so that it stays low.
    pub(super) fn error_rate(&self) -> Share {
        share(u64::from(self.recent.failed()), u64::from(self.recent.tasks).max(FEWEST))
    }

    /// Returns the average feedback of users.
    pub(super) fn feedback(&self) -> Share {
        Share::from_steps(self.feedback.checked_div(self.feedbacks).unwrap_or_default())
    }

    /// Returns the number of whole days since the record was begun.
    pub(super) fn active_days(&self, now: Timestamp) -> u32 {
        days_between(self.since, now)
    }

    /// Returns the time of the latest failure, or the beginning of the record.
    pub(super) fn clean_since(&self) -> Timestamp {
        self.last_failed_at.unwrap_or(self.since)
    }

    /// Returns the number of whole days without a failure within the record.
    pub(super) fn clean_days(&self, now: Timestamp) -> u32 {
        days_between(self.clean_since(), now)
    }
}

fn share(part: u64, whole: u64) -> Share {
    Share::from_steps(part.saturating_mul(Share::MOST.steps()).checked_div(whole).unwrap_or_default())
}

// === impl RecentResults ===

impl RecentResults {
    fn push(&mut self, is_failure: bool) {
        self.failures = ((self.failures << 1) + u32::from(is_failure)) & ((1 << RECENT) - 1);
        self.tasks = (self.tasks + 1).min(RECENT);
    }

    fn failed(self) -> u32 {
        self.failures.count_ones()
    }
}
