//! The one checker: every invariant of jobs, by everything that can be observed.

use super::client::WantedJob;
use super::witness::CallbackWitness;
use belljar_testkit::node::Node;
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// The state of a world's jobs when no more changes are expected.
pub(super) struct SettledJobs<'s> {
    pub(super) world: &'s World,
    pub(super) node: &'s Node<'s>,
    pub(super) orchestrator: Option<&'s Orchestrator>,
    pub(super) witness: Option<&'s CallbackWitness>,
    /// A mark in the command line of every long-running process that a job starts.
    pub(super) mark: &'s str,
}

const FINAL: [&str; 5] = ["completed", "failed", "timeout", "canceled", "node_failure"];

// === impl SettledJobs ===

impl SettledJobs<'_> {
    /// Checks every invariant.
    pub(super) fn check(&self, wanted: &[WantedJob]) {
        for wanted in wanted {
            self.check_job(wanted);
        }
        self.check_listed(wanted);
        wait::until(|| processes_with(self.mark) == 0);
        let state = self.world.path().join("state/node");
        let mut verify = self.world.command(&["audit", "verify"]);
        let verified = verify.env("BELLJAR_STATE_DIR", &state).output().unwrap();
        assert!(verified.status.success(), "the audit: {verified:?}");
        wait::until(|| entries(&state.join("runs")).is_empty());
        let unfinished: Vec<_> =
            entries(&state.join("artifacts")).into_iter().filter(|name| name.starts_with('.')).collect();
        assert_eq!(unfinished, Vec::<String>::new(), "unfinished files");
        for parent in fs::read_to_string(state.join("control-groups")).unwrap_or_default().lines() {
            let deployment = belljar_sandbox::state::StateDirectory::at(&state).deployment();
            let groups = entries(Path::new(parent)).into_iter().filter(|name| name.contains(&deployment));
            assert_eq!(groups.count(), 0, "control groups in {parent}");
        }
    }

    fn check_job(&self, wanted: &WantedJob) {
        let (id, job) = (wanted.id(), self.node.job(wanted.id()));
        let status = job["status"].as_str().unwrap_or_default();
        assert!(FINAL.contains(&status), "{id} is {job}");
        let events = self.node.events(id);
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["id"], number + 1, "events have no gaps");
        }
        let told: Vec<&str> =
            events.iter().filter(|event| event["event"] == "status").map(status_of).collect();
        assert_eq!(told.first(), Some(&"accepted"));
        let ends = told.iter().filter(|status| FINAL.contains(status)).count();
        assert_eq!((ends, told.last()), (1, Some(&status)), "{id} ended once: {told:?}");
        let begun = told.iter().filter(|status| **status == "in_progress").count() as u64;
        let may = wanted.job["max_attempts"].as_u64().unwrap_or(1);
        assert!(
            begun <= may && job["attempt"].as_u64().unwrap() <= may,
            "{id} was begun too often: {told:?}"
        );
        if let Some(witness) = self.witness.filter(|_| wanted.job["sandbox"]["use_inference"] == true) {
            let seen = witness.has_seen(id) as u64;
            let least = u64::from(status == "completed");
            assert!((least..=may).contains(&seen), "{id} is {status}, and has called {seen} times: {told:?}");
        }
        // The recorded digest is that of the outcome.
        let digest = job["outcome_sha256"].as_str().unwrap();
        if status == "completed" {
            assert_eq!(job["exit_code"], 0);
        } else {
            assert!(job["failure_code"].is_string(), "{job}");
        }
        for artifact in job["artifacts"].as_array().into_iter().flatten() {
            let path = format!("/v1/worker/jobs/{id}/artifacts/{}", artifact["sha256"].as_str().unwrap());
            let answered = self.node.get(&path);
            assert_eq!(answered.status, 200, "{id}: {}", String::from_utf8_lossy(&answered.body));
            // The artifact of a killed job may be shorter; its digest is that of the stored content.
            let content = answered.body.as_slice();
            assert!(content == b"kept\n" || status != "completed", "{id}: {content:?}");
            let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(artifact["sha256"], sha256, "{id}");
        }
        if let Some(orchestrator) = self.orchestrator {
            self.check_told(orchestrator, id, digest);
        }
    }

    /// Checks that the orchestrator received the end of the job at least once, and always the same end.
    fn check_told(&self, orchestrator: &Orchestrator, id: &str, digest: &str) {
        let of_end = |messages: Vec<belljar_testkit::orchestrator::ReceivedMessage>| -> Vec<Value> {
            let of_job = messages.into_iter().filter(|message| message.body["job"]["job_id"] == id);
            of_job
                .filter(|message| FINAL.contains(&status_of(&message.body["event"])))
                .map(|message| message.body)
                .collect()
        };
        wait::until(|| !of_end(orchestrator.taken()).is_empty());
        for message in of_end(orchestrator.received()) {
            assert_eq!(message["job"]["outcome_sha256"], digest);
        }
    }

    /// Checks that the node lists no job that the client didn't submit.
    fn check_listed(&self, wanted: &[WantedJob]) {
        let mut listed = Vec::new();
        let mut token = String::new();
        loop {
            let page = self.node.get(&format!("/v1/worker/jobs?limit=1000{token}")).json();
            let ids = page["jobs"].as_array().unwrap().iter();
            listed.extend(ids.map(|job| job["job_id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_page_token"].as_str() else { break };
            token = format!("&page_token={next}");
        }
        let mut ids: Vec<_> = wanted.iter().map(|wanted| wanted.id().to_owned()).collect();
        ids.sort();
        listed.sort();
        assert_eq!(listed, ids);
    }
}

fn status_of(event: &Value) -> &str {
    event["status"].as_str().unwrap_or_default()
}

/// Returns the number of processes with this text in their command line.
fn processes_with(mark: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
