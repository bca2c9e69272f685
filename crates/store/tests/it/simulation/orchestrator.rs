//! A simulated orchestrator that submits jobs and receives callbacks.

use super::node::SimulatedNode;
use belljar_contract::id::JobId;
use belljar_contract::worker::assignment::{Assignment, RunJobRequest};
use belljar_contract::worker::event::JobEvent;
use belljar_store::jobs::{AcceptedJob, Jobs, Submission};
use belljar_testkit::random::Random;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// A simulated client that submits jobs.
#[derive(Default)]
pub(super) struct Orchestrator {
    accepted: Vec<JobId>,
    assignments: Vec<Assignment>,
    /// Received events of each job, in order of arrival; some may have come twice.
    heard: BTreeMap<String, Vec<u64>>,
}

const TASKS: usize = 3;

// === impl Orchestrator ===

impl Orchestrator {
    /// Returns the jobs whose acceptance was reported to it.
    pub(super) fn accepted(&self) -> &[JobId] {
        &self.accepted
    }

    /// Submits a job, perhaps one that it has submitted before.
    pub(super) async fn submit(
        &mut self,
        jobs: &Jobs,
        nodes: &[SimulatedNode],
        chance: &mut Random,
        now: Timestamp,
    ) {
        let again = chance.once_in(4).then(|| chance.pick_any(&self.assignments).cloned()).flatten();
        let is_known = again.is_some();
        let assignment = again.unwrap_or_else(|| assignment(chance));
        let callback = chance.pick_any(nodes).map(|node| ("http://127.0.0.1:1/".to_owned(), node.instance()));
        let submission = Submission {
            assignment: assignment.clone(),
            resolved: None,
            idempotency_key: None,
            most_waiting: 1_000,
            callback,
            hired: None,
            now,
        };
        let submitted = jobs.submit(submission).await.unwrap();
        assert_eq!(is_known, matches!(submitted, AcceptedJob::Known(_)), "{submitted:?}");
        if !is_known {
            self.accepted.push(assignment.job_id.clone());
            self.assignments.push(assignment);
        }
    }

    /// Cancels a job, or acknowledges a result that it may not even have.
    pub(super) async fn bother(&self, jobs: &Jobs, chance: &mut Random, now: Timestamp) {
        let Some(job_id) = chance.pick_any(&self.accepted) else { return };
        if chance.once_in(2) {
            jobs.cancel(job_id, Duration::ZERO, now).await.unwrap();
        } else {
            // For a job that isn't over, this is rejected.
            let _ = jobs.acknowledge(job_id, None, now).await;
        }
    }

    /// Receives an event.
    pub(super) fn hear(&mut self, job_id: &JobId, event: &JobEvent) {
        self.heard.entry(job_id.key()).or_default().push(event.id);
    }

    /// Checks that it has received each state, in order, and nothing else.
    pub(super) fn check_told(&self, job_id: &JobId, states: &[JobEvent]) {
        let heard = self.heard.get(&job_id.key()).cloned().unwrap_or_default();
        let mut in_order: Vec<u64> = Vec::new();
        for id in heard {
            match in_order.last() {
                // Delivered again, because the acknowledgement was lost.
                Some(last) if id <= *last => {
                    assert!(in_order.contains(&id), "{job_id}: {id} is no event of it");
                }
                _ => in_order.push(id),
            }
        }
        let expected: Vec<u64> = states.iter().map(|event| event.id).collect();
        assert_eq!(in_order, expected, "{job_id}");
    }
}

fn assignment(chance: &mut Random) -> Assignment {
    let task = chance.below(TASKS);
    let document = serde_json::json!({
        "version": 1,
        "task_id": format!("00000000-0000-0000-0000-00000000000{task}"),
        "job_id": chance.uuid().to_string(),
        "max_attempts": 1 + chance.below(3),
        "sandbox": { "command": ["true"] },
    });
    RunJobRequest::parse(document.to_string().as_bytes()).unwrap().assignment
}
