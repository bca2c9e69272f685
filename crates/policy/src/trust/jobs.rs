//! Completed jobs that count for the trust in an agent.
//!
//! No user has judged such a job. So it counts once for its content and once for its task, only if commands have checked the
//! result, and only a limited number counts per hour and day: a level requires different work over time, however fast jobs end.

use super::{IgnoredReason, identity};
use belljar_contract::category::Category;
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, whole};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

/// Rules by which completed jobs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobRules {
    /// True if only jobs count whose acceptance criteria were checked by commands.
    needs_check: bool,
    /// Maximum number of jobs that count within an hour.
    an_hour: u32,
    /// Maximum number of jobs that count within a day.
    a_day: u32,
    /// Minimum time at a level before jobs lead to the next one, in hours.
    hours_at_level: u32,
}

/// Jobs that have counted. Work before a demotion doesn't count again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CountedJobs {
    contents: BTreeSet<Uuid>,
    /// Tasks by their keys, because a task id can be written in two ways.
    tasks: BTreeSet<String>,
    /// Times at which the jobs of the last day counted, the oldest first.
    lately: VecDeque<Timestamp>,
    /// Track and time of each unassessed job, by the event of its end.
    unassessed: BTreeMap<Uuid, (Option<Category>, Timestamp)>,
    assessed: BTreeSet<Uuid>,
}

/// Completed job.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompletedJob<'e> {
    pub(super) at: Timestamp,
    /// Event of its end.
    pub(super) event_id: Uuid,
    /// Track in which it counts.
    pub(super) track: Option<Category>,
    pub(super) task_id: &'e TaskId,
    pub(super) content: Uuid,
    pub(super) is_checked: bool,
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Maximum of each figure: one job per second, and ten years.
const MOST_AN_HOUR: u64 = 3_600;
const MOST_A_DAY: u64 = 86_400;
const MOST_HOURS: u64 = 87_600;

/// Returns the id of the event that records the end of a job. It is the same for all attempts and repetitions.
pub fn end_of_job(job_id: &JobId) -> Uuid {
    identity::of_joined(["job_ended", &job_id.key()])
}

// === impl JobRules ===

impl JobRules {
    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let usual = Self::default();
        let Some(mut members) = Members::open(node, log) else { return usual };
        let needs_check = members.or("needs_check", usual.needs_check, boolean);
        let mut figure = |name, usual, least: u64, most: u64| {
            members.or(name, usual, |node, log| u32::try_from(whole(node, log, least..=most)?).ok())
        };
        let read = Self {
            needs_check,
            an_hour: figure("an_hour", usual.an_hour, 1, MOST_AN_HOUR),
            a_day: figure("a_day", usual.a_day, 1, MOST_A_DAY),
            hours_at_level: figure("hours_at_level", usual.hours_at_level, 0, MOST_HOURS),
        };
        members.finish();
        read
    }

    /// Returns the minimum time at a level before jobs lead to the next one.
    pub(super) fn time_at_level(&self) -> SignedDuration {
        SignedDuration::from_hours(self.hours_at_level.into())
    }
}

impl Default for JobRules {
    fn default() -> Self {
        Self { needs_check: true, an_hour: 4, a_day: 12, hours_at_level: 24 }
    }
}

// === impl CountedJobs ===

impl CountedJobs {
    /// Counts a job.
    ///
    /// # Errors
    /// [`IgnoredReason`], with the reason why it doesn't count.
    pub(super) fn count(&mut self, rules: &JobRules, job: CompletedJob<'_>) -> Result<(), IgnoredReason> {
        if rules.needs_check && !job.is_checked {
            return Err(IgnoredReason::Unchecked);
        }
        let task = job.task_id.key();
        if self.contents.contains(&job.content) || self.tasks.contains(&task) {
            return Err(IgnoredReason::Repeated);
        }
        while self.lately.front().is_some_and(|at| job.at.duration_since(*at) >= DAY) {
            self.lately.pop_front();
        }
        let within_hour =
            self.lately.iter().rev().take_while(|at| job.at.duration_since(**at) < HOUR).count();
        if within_hour >= rules.an_hour as usize || self.lately.len() >= rules.a_day as usize {
            return Err(IgnoredReason::TooFast);
        }
        self.lately.push_back(job.at);
        self.contents.insert(job.content);
        self.tasks.insert(task);
        self.unassessed.insert(job.event_id, (job.track, job.at));
        Ok(())
    }

    /// Takes the track and the time of the counted job whose end is that event. Works once for each job.
    ///
    /// # Errors
    /// [`IgnoredReason`], if no such job has counted, or it was already assessed.
    pub(super) fn assess(&mut self, event_id: Uuid) -> Result<(Option<Category>, Timestamp), IgnoredReason> {
        if self.assessed.contains(&event_id) {
            return Err(IgnoredReason::Assessed);
        }
        let counted = self.unassessed.remove(&event_id).ok_or(IgnoredReason::NotCounted)?;
        self.assessed.insert(event_id);
        Ok(counted)
    }
}
