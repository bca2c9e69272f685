//! Tests every history of a job against a second model.

use super::*;
use proptest::prelude::*;

/// Model with the same rules in another form: it describes valid histories instead of transitions.
#[derive(Debug, Default)]
struct Model {
    /// Number of each claim.
    claims: Vec<u64>,
    /// Number of claims that were given back before the job began.
    given_back: u32,
    /// Claim of the current owner.
    owner: Option<u64>,
    has_begun: bool,
    wants_stop: bool,
    end: Option<JobState>,
}

impl Model {
    /// Applies an input. Returns true if it is possible.
    fn takes(&mut self, input: LifecycleEvent, max_attempts: u32) -> bool {
        let holds = |fence: Fence| self.owner == Some(fence.0) && self.end.is_none();
        let attempts = self.claims.len() as u32 - self.given_back;
        match input {
            LifecycleEvent::Claim if self.end.is_some() || self.owner.is_some() => false,
            LifecycleEvent::Claim => {
                let number = self.claims.last().unwrap_or(&0) + 1;
                self.claims.push(number);
                self.owner = Some(number);
                self.has_begun = false;
                true
            }
            LifecycleEvent::GiveBack(fence) if holds(fence) && !self.has_begun => {
                self.owner = None;
                self.given_back += 1;
                self.end = self.wants_stop.then_some(JobState::Canceled);
                true
            }
            LifecycleEvent::Start(fence) if holds(fence) => {
                self.has_begun = true;
                true
            }
            LifecycleEvent::End(fence, ending) if holds(fence) => {
                self.owner = None;
                self.end = Some(ending.state());
                true
            }
            // Repeated ending.
            LifecycleEvent::End(fence, ending) => {
                self.claims.last() == Some(&fence.0) && self.end == Some(ending.state())
            }
            LifecycleEvent::Lose(fence) if holds(fence) => {
                self.owner = None;
                self.has_begun = false;
                if self.wants_stop {
                    self.end = Some(JobState::Canceled);
                } else if attempts >= max_attempts {
                    self.end = Some(JobState::NodeFailure);
                }
                true
            }
            LifecycleEvent::Cancel => {
                if self.end.is_none() {
                    self.wants_stop = true;
                    if self.owner.is_none() {
                        self.end = Some(JobState::Canceled);
                    }
                }
                true
            }
            LifecycleEvent::GiveBack(_) | LifecycleEvent::Start(_) | LifecycleEvent::Lose(_) => false,
        }
    }

    fn state(&self) -> JobState {
        match (self.end, self.has_begun) {
            (Some(end), _) => end,
            (None, true) => JobState::InProgress,
            (None, false) => JobState::Accepted,
        }
    }
}

fn input() -> impl Strategy<Value = LifecycleEvent> {
    let fence = (0..6_u64).prop_map(Fence);
    let ending = prop_oneof![
        Just(ReportedEnding::Completed),
        Just(ReportedEnding::Failed),
        Just(ReportedEnding::Timeout),
        Just(ReportedEnding::Canceled),
        Just(ReportedEnding::NodeFailure),
    ];
    prop_oneof![
        4 => Just(LifecycleEvent::Claim),
        1 => fence.clone().prop_map(LifecycleEvent::GiveBack),
        2 => fence.clone().prop_map(LifecycleEvent::Start),
        2 => (fence.clone(), ending).prop_map(|(fence, ending)| LifecycleEvent::End(fence, ending)),
        3 => fence.prop_map(LifecycleEvent::Lose),
        1 => Just(LifecycleEvent::Cancel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn lifecycle_histories_agree_with_the_model(
        max_attempts in 1..4_u32,
        inputs in prop::collection::vec(input(), 0..40),
    ) {
        let (mut job, mut model) = (JobLifecycle::accepted(max_attempts), Model::default());
        for input in inputs {
            let before = job.clone();
            let done = job.apply(input);
            prop_assert_eq!(done.is_ok(), model.takes(input, max_attempts), "{:?}", input);
            match done {
                Ok(LifecycleChange::Changed) => prop_assert_ne!(&job, &before),
                Ok(LifecycleChange::Unchanged) | Err(_) => prop_assert_eq!(&job, &before),
            }
            prop_assert_eq!(job.state, model.state());
            prop_assert_eq!(job.is_owned, model.owner.is_some());
            prop_assert_eq!(job.attempt, model.claims.len() as u32 - model.given_back);
            prop_assert!(job.fence >= before.fence);
            prop_assert!(!before.state.is_final() || job == before);
        }
    }

    #[test]
    fn job_attempts_never_exceed_the_maximum(
        max_attempts in 1..4_u32,
        inputs in prop::collection::vec(input(), 0..60),
    ) {
        let mut job = JobLifecycle::accepted(max_attempts);
        for input in inputs {
            let _ = job.apply(input);
            prop_assert!(job.attempt <= max_attempts);
        }
    }
}

#[test]
fn stale_fence_cannot_change_the_next_attempt() {
    let mut job = JobLifecycle::accepted(2);
    job.apply(LifecycleEvent::Claim).unwrap();
    let stale = job.fence;
    job.apply(LifecycleEvent::Start(stale)).unwrap();
    job.apply(LifecycleEvent::Lose(stale)).unwrap();
    job.apply(LifecycleEvent::Claim).unwrap();
    for input in [
        LifecycleEvent::Start(stale),
        LifecycleEvent::End(stale, ReportedEnding::Completed),
        LifecycleEvent::Lose(stale),
        LifecycleEvent::GiveBack(stale),
    ] {
        let before = job.clone();
        assert_eq!(job.apply(input), Err(LifecycleRefusal::Fenced), "{input:?}");
        assert_eq!(job, before);
    }
    // Control: the current owner may end it.
    let fence = job.fence;
    assert_eq!(
        job.apply(LifecycleEvent::End(fence, ReportedEnding::Completed)),
        Ok(LifecycleChange::Changed)
    );
}

#[test]
fn unclaimed_job_is_canceled_at_once_and_claimed_job_by_its_owner() {
    let mut waiting = JobLifecycle::accepted(1);
    waiting.apply(LifecycleEvent::Cancel).unwrap();
    assert_eq!(waiting.state, JobState::Canceled);
    assert_eq!(
        waiting.apply(LifecycleEvent::Claim),
        Err(LifecycleRefusal::Over { state: JobState::Canceled })
    );

    let mut running = JobLifecycle::accepted(1);
    running.apply(LifecycleEvent::Claim).unwrap();
    running.apply(LifecycleEvent::Start(running.fence)).unwrap();
    running.apply(LifecycleEvent::Cancel).unwrap();
    assert_eq!((running.state, running.cancel_requested), (JobState::InProgress, true));
    // The job may complete before its owner gets the request.
    running.apply(LifecycleEvent::End(running.fence, ReportedEnding::Completed)).unwrap();
    assert_eq!(running.state, JobState::Completed);
}
