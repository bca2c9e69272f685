//! Invariants of jobs that hold under all faults.

use belljar_contract::id::JobId;
use belljar_contract::worker::event::{JobEvent, JobEventKind};
use belljar_store::jobs::JobRecord;
use std::collections::BTreeMap;

/// Observations about jobs.
#[derive(Default)]
pub(super) struct Checker {
    jobs: BTreeMap<String, JobObservation>,
}

#[derive(Debug, Default, PartialEq)]
struct JobObservation {
    /// State and outcome of the job at its end.
    end: Option<String>,
    attempt: u32,
    fence: u64,
    /// Number of recorded reports that it has begun.
    begun: u32,
    /// Number of reports of its end that were new.
    ended: u32,
}

// === impl Checker ===

impl Checker {
    /// A node was believed that it has begun with a job.
    pub(super) fn begun(&mut self, job_id: &JobId) {
        self.of(job_id).begun += 1;
    }

    /// Notes that the database accepted a node's first report of a job's end.
    pub(super) fn ended_now(&mut self, job_id: &JobId) {
        let seen = self.of(job_id);
        seen.ended += 1;
        assert_eq!(seen.ended, 1, "{job_id} has ended twice");
    }

    /// Checks the stored state of an accepted job after any step.
    pub(super) fn check(&mut self, job_id: &JobId, found: Option<&JobRecord>) {
        let job = found.unwrap_or_else(|| panic!("{job_id} was accepted, and is lost"));
        let seen = self.of(job_id);
        let life = &job.life;
        assert!(life.attempt <= life.max_attempts, "{job_id} was begun too often: {life:?}");
        // The number of attempts decreases if an attempt was not begun; the fencing token never does.
        assert!(life.fence.0 >= seen.fence, "{job_id} goes back: {life:?}");
        assert_eq!(life.is_owned, job.owner.is_some(), "{job_id}");
        assert!(
            !(life.is_owned && life.state.is_final()),
            "{job_id} has ended but still has an owner: {life:?}"
        );
        (seen.attempt, seen.fence) = (life.attempt, life.fence.0);
        let end = life
            .state
            .is_final()
            .then(|| format!("{} {:?} {:?}", life.state, job.outcome_sha256, job.ended_at));
        match (&seen.end, &end) {
            (Some(before), Some(now)) => assert_eq!(before, now, "{job_id} has ended in two ways"),
            (Some(before), None) => panic!("{job_id} was over ({before}), and is not any more"),
            (None, _) => seen.end = end,
        }
    }

    /// Checks all reported states of a job that is over.
    pub(super) fn check_story(&mut self, job_id: &JobId, states: &[JobEvent]) {
        let seen = self.of(job_id);
        let told: Vec<_> = states
            .iter()
            .map(|event| match &event.happening {
                JobEventKind::Status { status, attempt, .. } => (*status, *attempt),
                other => panic!("{other:?}"),
            })
            .collect();
        let finals = told.iter().filter(|(status, _)| status.is_final()).count();
        assert_eq!(finals, 1, "{job_id}: {told:?}");
        assert!(told.last().is_some_and(|(status, _)| status.is_final()), "{job_id}: {told:?}");
        let begun = told.iter().filter(|(status, _)| status.as_str() == "in_progress");
        let begun: Vec<u32> = begun.map(|(_, attempt)| *attempt).collect();
        assert!(begun.is_sorted_by(|one, next| one < next), "{job_id}: {told:?}");
        assert_eq!(begun.len(), seen.begun as usize, "{job_id}: {told:?}");
        assert!(seen.begun <= seen.attempt, "{job_id}: {told:?}");
    }

    pub(super) fn ended(&self) -> usize {
        self.jobs.values().filter(|seen| seen.end.is_some()).count()
    }

    pub(super) fn begun_again(&self) -> usize {
        self.jobs.values().filter(|seen| seen.begun > 1).count()
    }

    /// Returns the course of each job.
    pub(super) fn story(&self) -> Vec<String> {
        self.jobs.iter().map(|(job_id, seen)| format!("{job_id} {seen:?}")).collect()
    }

    fn of(&mut self, job_id: &JobId) -> &mut JobObservation {
        self.jobs.entry(job_id.key()).or_default()
    }
}
