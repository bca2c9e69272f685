//! A simulated node: it claims jobs, works on them, dies or pauses during them, and learns that they have another
//! owner.

use super::checker::Checker;
use super::orchestrator::Orchestrator;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::{JobId, RunId};
use belljar_contract::worker::job::JobOutcome;
use belljar_policy::lifecycle::{Fence, ReportedEnding};
use belljar_store::jobs::{
    CallbackAnswer, ChangeError, FinalReport, JobEnd, JobNews, Jobs, Owner, ReleaseReason, RunStart,
};
use belljar_testkit::random::Random;
use jiff::Timestamp;

/// A node, with its present instance.
pub(super) struct SimulatedNode {
    number: usize,
    instance: String,
    state: NodeCondition,
    held: Vec<HeldJob>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeCondition {
    Awake,
    /// The node is paused, and will go on as if no time had passed.
    Asleep,
    /// The node was killed, and has lost its memory.
    Dead,
}

/// A job that it works on, as far as it knows.
struct HeldJob {
    job_id: JobId,
    fence: Fence,
    started: Option<RunStart>,
    is_begun: bool,
    /// Final report, if there is one. It is repeated until its arrival is confirmed.
    came: Option<FinalReport>,
}

/// Step of a job.
struct JobStep<'s> {
    jobs: &'s Jobs,
    now: Timestamp,
    /// True if the node gets no answer from the database.
    loses_answer: bool,
}

// === impl SimulatedNode ===

impl SimulatedNode {
    pub(super) async fn start(number: usize, jobs: &Jobs, chance: &mut Random, now: Timestamp) -> Self {
        let node = Self {
            number,
            instance: chance.uuid().to_string(),
            state: NodeCondition::Awake,
            held: Vec::new(),
        };
        node.register(jobs, now).await;
        node
    }

    pub(super) fn instance(&self) -> String {
        self.instance.clone()
    }

    /// Returns true if no heartbeat of that instance was seen for longer than a lease.
    pub(super) fn is_silent_as(&self, instance: &str) -> bool {
        self.instance == instance && self.state != NodeCondition::Awake
    }

    /// Causes or ends a random fault.
    pub(super) async fn fault(&mut self, jobs: &Jobs, chance: &mut Random, now: Timestamp) {
        match (self.state, chance.below(3)) {
            (NodeCondition::Awake, 0) => self.state = NodeCondition::Asleep,
            (NodeCondition::Awake, 1) => {
                self.state = NodeCondition::Dead;
                self.held.clear();
            }
            (NodeCondition::Awake, _) => {
                // It sends a heartbeat. If it was given up meanwhile, it has lost its jobs.
                if !jobs.beat(&self.instance).await.unwrap() {
                    self.held.clear();
                    self.register(jobs, now).await;
                }
            }
            // It resumes, and doesn't know that it was paused.
            (NodeCondition::Asleep, _) => self.state = NodeCondition::Awake,
            (NodeCondition::Dead, _) => self.revive(jobs, chance, now).await,
        }
    }

    /// Revives the node in any state: a dead node becomes another instance, which cleans up after the former one.
    pub(super) async fn revive(&mut self, jobs: &Jobs, chance: &mut Random, now: Timestamp) {
        if self.state == NodeCondition::Dead {
            let former = std::mem::replace(&mut self.instance, chance.uuid().to_string());
            self.register(jobs, now).await;
            self.state = NodeCondition::Awake;
            self.give_up(jobs, &[former], now).await;
        }
        self.state = NodeCondition::Awake;
        if !jobs.beat(&self.instance).await.unwrap() {
            self.held.clear();
            self.register(jobs, now).await;
        }
    }

    /// Gives up silent instances, if it is awake to notice them.
    pub(super) async fn give_up(&mut self, jobs: &Jobs, silent: &[String], now: Timestamp) {
        for instance in silent.iter().filter(|instance| **instance != self.instance) {
            if self.state != NodeCondition::Awake {
                return;
            }
            for job in jobs.owned_by(instance).await.unwrap() {
                // Another node may have done it meanwhile.
                let _ = jobs.leave(&job.job_id, job.life.fence, ReleaseReason::Gone, now).await;
            }
            jobs.forget(instance).await.unwrap();
        }
        if self.state == NodeCondition::Awake {
            jobs.take_callbacks(&self.instance).await.unwrap();
        }
    }

    /// Does one thing for one of its jobs, or claims another.
    pub(super) async fn work(
        &mut self,
        jobs: &Jobs,
        checker: &mut Checker,
        chance: &mut Random,
        now: Timestamp,
    ) {
        if self.state != NodeCondition::Awake {
            return;
        }
        if self.held.is_empty() || (self.held.len() < 3 && chance.once_in(3)) {
            return self.claim(jobs, chance, now).await;
        }
        let which = chance.below(self.held.len());
        let loses_answer = chance.once_in(6);
        if chance.once_in(12) && !self.held[which].is_begun && self.held[which].came.is_none() {
            let held = self.held.swap_remove(which);
            let _ = jobs.leave(&held.job_id, held.fence, ReleaseReason::Unbegun, now).await;
            return;
        }
        let is_done = self.advance(which, checker, chance, &JobStep { jobs, now, loses_answer }).await;
        if is_done {
            self.held.swap_remove(which);
        }
    }

    /// Works on all of its jobs until they end.
    pub(super) async fn work_reliably(
        &mut self,
        jobs: &Jobs,
        checker: &mut Checker,
        chance: &mut Random,
        now: Timestamp,
    ) {
        // It gives up jobs that it owns without knowing.
        for job in jobs.owned_by(&self.instance).await.unwrap() {
            let knows = |held: &HeldJob| held.job_id == job.job_id && held.fence == job.life.fence;
            if !self.held.iter().any(knows) {
                let _ = jobs.leave(&job.job_id, job.life.fence, ReleaseReason::Gone, now).await;
            }
        }
        self.claim(jobs, chance, now).await;
        for which in (0..self.held.len()).rev() {
            if self.advance(which, checker, chance, &JobStep { jobs, now, loses_answer: false }).await {
                self.held.swap_remove(which);
            }
        }
    }

    /// Delivers one event to the orchestrator, perhaps again; the answer may be lost.
    pub(super) async fn deliver(
        &self,
        jobs: &Jobs,
        orchestrator: &mut Orchestrator,
        chance: &mut Random,
        now: Timestamp,
    ) {
        if self.state != NodeCondition::Awake {
            return;
        }
        let callbacks = jobs.callbacks_of(&self.instance).await.unwrap();
        let Some(callback) = chance.pick_any(&callbacks) else { return };
        let states = jobs.states_after(&callback.job_id, callback.told).await.unwrap();
        let Some(event) = states.first() else { return };
        orchestrator.hear(&callback.job_id, event);
        match chance.once_in(4) {
            true => jobs.note_callback_tried(&callback.job_id, &self.instance).await.unwrap(),
            false => self.note_heard(jobs, &callback.job_id, event, now).await,
        }
    }

    /// Delivers all events.
    pub(super) async fn deliver_reliably(
        &self,
        jobs: &Jobs,
        orchestrator: &mut Orchestrator,
        now: Timestamp,
    ) {
        for callback in jobs.callbacks_of(&self.instance).await.unwrap() {
            for event in jobs.states_after(&callback.job_id, callback.told).await.unwrap() {
                orchestrator.hear(&callback.job_id, &event);
                self.note_heard(jobs, &callback.job_id, &event, now).await;
            }
        }
    }

    async fn note_heard(
        &self,
        jobs: &Jobs,
        job_id: &JobId,
        event: &belljar_contract::worker::event::JobEvent,
        now: Timestamp,
    ) {
        let is_final = matches!(
            &event.happening,
            belljar_contract::worker::event::JobEventKind::Status { status, .. } if status.is_final()
        );
        let heard = if is_final { CallbackAnswer::Result } else { CallbackAnswer::Event };
        jobs.note_callback_heard(job_id, &self.instance, (event.id, heard), now).await.unwrap();
    }

    async fn register(&self, jobs: &Jobs, now: Timestamp) {
        let owner = Owner { instance: self.instance.clone(), node: format!("node {}", self.number) };
        jobs.register(&owner, now).await.unwrap();
    }

    async fn claim(&mut self, jobs: &Jobs, chance: &mut Random, now: Timestamp) {
        // An instance that was given up without knowing it gets no job.
        let Ok(Some(claimed)) = jobs.claim(&self.instance, now).await else { return };
        // The answer may get lost: then it owns a job without knowing.
        if chance.once_in(10) {
            return;
        }
        let (job_id, fence) = (claimed.job.job_id.clone(), claimed.fence());
        self.held.push(HeldJob { job_id, fence, started: None, is_begun: false, came: None });
    }

    /// Advances a job; returns true if it is done.
    async fn advance(
        &mut self,
        which: usize,
        checker: &mut Checker,
        chance: &mut Random,
        step: &JobStep<'_>,
    ) -> bool {
        let JobStep { jobs, now, loses_answer } = *step;
        let held = &mut self.held[which];
        if held.started.is_none() {
            let run_id = RunId::from_uuid(chance.uuid());
            held.started = Some(RunStart { run_id, at: now, deadline: now });
        }
        if !held.is_begun && held.came.is_none() {
            let told = JobNews { started: held.started.clone(), happenings: Vec::new() };
            let before = jobs.find(&held.job_id).await.unwrap().unwrap().life;
            return match jobs.tell(&held.job_id, held.fence, told).await {
                Ok(()) => {
                    let after = jobs.find(&held.job_id).await.unwrap().unwrap().life;
                    assert_eq!(after.fence, held.fence, "a report without the claim was accepted");
                    if before.state != after.state {
                        checker.begun(&held.job_id);
                    }
                    held.is_begun = !loses_answer;
                    false
                }
                Err(ChangeError::Refused(_)) => true,
                Err(error) => panic!("{error}"),
            };
        }
        let report = held.came.get_or_insert_with(|| came(chance)).clone();
        match jobs.end(&held.job_id, held.fence, report, now).await {
            Ok(JobEnd::Now(job)) => {
                assert_eq!(job.life.fence, held.fence, "a report without the claim was accepted");
                checker.ended_now(&held.job_id);
                // Without an answer the report is repeated.
                !loses_answer
            }
            Ok(JobEnd::Before(_)) | Err(ChangeError::Refused(_) | ChangeError::OtherOutcome) => true,
            Err(error) => panic!("{error}"),
        }
    }
}

fn came(chance: &mut Random) -> FinalReport {
    let endings = [
        ReportedEnding::Completed,
        ReportedEnding::Failed,
        ReportedEnding::Timeout,
        ReportedEnding::Canceled,
    ];
    let ending = endings[chance.below(endings.len())];
    let mut outcome = JobOutcome::of_failure(FailureCode::StepFailed, "");
    outcome.stdout = chance.draw().to_string();
    FinalReport { untold: JobNews::default(), ending, outcome, trust: None }
}
