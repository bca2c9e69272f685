//! An orchestrator's side of an interrupted conversation: it remembers which requests were acknowledged, and repeats
//! the others.

use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{self, Node};
use belljar_testkit::wait;
use serde_json::{Value, json};

/// A job that the client wants.
#[derive(Debug, Clone)]
pub(super) struct WantedJob {
    pub(super) job: Value,
    /// True if the node has acknowledged the job.
    pub(super) is_accepted: bool,
    /// Request that follows.
    pub(super) also: FollowUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowUp {
    Nothing,
    /// The job is canceled once it is accepted.
    Cancel,
    /// Its result is acknowledged.
    Acknowledge,
}

/// The node has exited or no longer responds.
#[derive(Debug)]
pub(super) struct NodeGone;

// === impl WantedJob ===

impl WantedJob {
    pub(super) fn new(job: Value, also: FollowUp) -> Self {
        Self { job, is_accepted: false, also }
    }

    /// Returns a short job that leaves a file.
    pub(super) fn leaving_a_file() -> Self {
        Self::new(node::script("echo kept > /job/artifacts/a; echo said"), FollowUp::Acknowledge)
    }

    /// Returns a job for the runner.
    pub(super) fn of_steps() -> Self {
        let steps = json!([{ "type": "run_command", "args": { "argv": ["true"] } }]);
        Self::new(node::steps(&steps), FollowUp::Nothing)
    }

    /// Returns a job that may be retried.
    pub(super) fn repeatable() -> Self {
        let mut job = node::script("echo begun; sleep 0.12; echo done");
        job["max_attempts"] = json!(4);
        Self::new(job, FollowUp::Nothing)
    }

    /// Returns a job that takes longer than any test waits.
    pub(super) fn endless(mark: &str, also: FollowUp) -> Self {
        Self::new(node::script(mark), also)
    }

    pub(super) fn id(&self) -> &str {
        self.job["job_id"].as_str().unwrap()
    }

    /// Sends requests until the job has begun, also while the node can't respond. Otherwise the next node would begin
    /// it, and an endless job would never end.
    pub(super) fn pursue_until_begun(&mut self, node: &Node<'_>) {
        wait::until(|| {
            if !self.is_accepted {
                // A node that is gone at the moment is asked again.
                let _ = self.pursue(node);
            }
            self.is_accepted
                && !["accepted", ""].contains(&node.job(self.id())["status"].as_str().unwrap_or_default())
        });
    }

    /// Sends every request that has no response yet. Returns true if the job is over and every request has its
    /// response.
    pub(super) fn pursue(&mut self, node: &Node<'_>) -> Result<bool, NodeGone> {
        let send = |asked: &HttpRequest| node.try_send(asked).map_err(|_| NodeGone);
        if !self.is_accepted {
            let mut job = self.job.clone();
            job["wait"] = json!(false);
            let answered = send(&HttpRequest::new("POST", "/v1/worker/jobs:run").json(job.to_string()))?;
            self.is_accepted = answered.status == 202;
            // A node that is about to die or is overloaded is asked again.
            assert!(
                self.is_accepted || answered.status == 503,
                "{}",
                String::from_utf8_lossy(&answered.body)
            );
            if self.is_accepted && self.also == FollowUp::Cancel {
                send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{}:cancel", self.id())))?;
            }
            return Ok(false);
        }
        let answered = send(&HttpRequest::new("GET", &format!("/v1/worker/jobs/{}", self.id())))?;
        if answered.status == 503 {
            return Ok(false);
        }
        assert_eq!(answered.status, 200, "an accepted job is lost: {}", self.id());
        let job = answered.json();
        let is_over = !["accepted", "in_progress"].contains(&job["status"].as_str().unwrap());
        if !is_over && self.also == FollowUp::Cancel && job["cancel_requested"] == false {
            send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{}:cancel", self.id())))?;
        }
        if is_over && self.also == FollowUp::Acknowledge && job["acknowledged_at"].is_null() {
            let document = json!({ "version": 1, "outcome_sha256": job["outcome_sha256"] });
            let path = format!("/v1/worker/jobs/{}:ack", self.id());
            let answered = send(&HttpRequest::new("POST", &path).json(document.to_string()))?;
            assert!([200, 503].contains(&answered.status), "{}", String::from_utf8_lossy(&answered.body));
            return Ok(false);
        }
        Ok(is_over)
    }
}

/// Sends requests for all jobs until the node is gone (an error) or no request is left.
pub(super) fn pursue_all(node: &Node<'_>, wanted: &mut [WantedJob]) -> Result<(), NodeGone> {
    let given_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let mut all_over = true;
        for wanted in wanted.iter_mut() {
            all_over &= wanted.pursue(node)?;
        }
        if all_over {
            return Ok(());
        }
        if std::time::Instant::now() > given_up {
            let open: Vec<_> = wanted
                .iter()
                .map(|wanted| node.job(wanted.id()))
                .filter(|job| job["ended_at"].is_null())
                .collect();
            panic!("these do not end: {open:#?}\n{}", node.log());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
