//! Jobs that an orchestrator stops: a single one, or all.

use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::node::{Node, new_id, script, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const STOP_ALL: &str = "/v1/worker/admin/stop-all-orchestrator-directed";

/// Exits by itself on SIGTERM.
pub(super) const POLITE: &str = "trap 'echo bye; exit 0' TERM; echo begun; while :; do sleep 0.05; done";

/// Ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM; echo begun; while :; do sleep 0.05; done";

pub(super) fn stop(node: &Node<'_>, job: &Value, grace_seconds: u64) -> HttpResponse {
    let request = json!({
        "version": 1, "task_id": job["task_id"], "job_id": job["job_id"], "grace_seconds": grace_seconds,
    });
    node.post("/v1/worker/jobs:stop", &request)
}

/// Submits a job, waits until it has printed that it has begun, and returns its id.
pub(super) fn begun(node: &Node<'_>, job: &Value) -> String {
    let id = node.submit(job.clone());
    let mut events = node.begin(&HttpRequest::new("GET", &format!("/v1/worker/jobs/{id}/events")));
    while !events.line().unwrap().unwrap().contains("begun") {}
    id
}

#[test]
fn stopped_job_is_asked_to_end_and_killed_only_if_it_does_not() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let polite = script(POLITE);
    let id = begun(&node, &polite);
    let asked = Instant::now();
    let answered = stop(&node, &polite, 60);
    assert_eq!(answered.status, 200, "{}", answered.json());
    let told = answered.json();
    assert_eq!((&told["was_running"], &told["status"]), (&json!(true), &json!("canceled")));
    assert!(asked.elapsed() < Duration::from_secs(30), "the node waited although the job had ended");
    assert_eq!(node.job(&id)["stdout"], "begun\nbye\n");

    let stubborn = script(STUBBORN);
    let id = begun(&node, &stubborn);
    let asked = Instant::now();
    assert_eq!(stop(&node, &stubborn, 1).json()["status"], "canceled");
    assert!(asked.elapsed() >= Duration::from_secs(1), "it was killed at once");
    assert_eq!(node.job(&id)["stdout"], "begun\n");
}

#[test]
fn stopped_runner_job_reports_its_finished_steps() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = steps(&json!([
        { "type": "write_file", "args": { "path": "a", "content": "text" } },
        { "type": "run_command", "args": { "argv": ["sh", "-c", "echo begun; sleep 60"] } },
    ]));
    let id = begun(&node, &job);
    assert_eq!(stop(&node, &job, 60).json()["status"], "canceled");
    let told = node.job(&id);
    let statuses: Vec<_> =
        told["sba_result"]["steps"].as_array().unwrap().iter().map(|step| step["status"].clone()).collect();
    assert_eq!(statuses, ["success", "failure"], "{told}");
    assert_eq!(told["sba_result"]["failure_code"], "canceled");
}

#[test]
fn stop_of_a_job_that_is_not_running_succeeds() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let unknown = script("true");
    let told = stop(&node, &unknown, 0).json();
    assert_eq!((&told["was_running"], &told["status"]), (&json!(false), &Value::Null));
    let over = script("true");
    node.run(&over);
    let told = stop(&node, &over, 0).json();
    assert_eq!((&told["was_running"], &told["status"]), (&json!(false), &json!("completed")));
    // A request for another task's job is refused.
    let mut others = over;
    others["task_id"] = json!(new_id());
    assert_eq!(stop(&node, &others, 0).status, 409);
    let mistaken =
        node.post("/v1/worker/jobs:stop", &json!({ "version": 1, "job_id": "x", "grace_seconds": 301 }));
    let places: Vec<_> = mistaken.json()["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["path"].clone())
        .collect();
    assert_eq!(mistaken.status, 400);
    for place in ["$.task_id", "$.job_id", "$.grace_seconds"] {
        assert!(places.contains(&json!(place)), "{place} of {places:?}");
    }
}

#[test]
fn stop_all_ends_all_jobs_and_the_node_accepts_new_ones() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--max-concurrency", "2"]);
    let running = [begun(&node, &script(POLITE)), begun(&node, &script(STUBBORN))];
    let waiting = node.submit(script("true"));
    let answered = node.post(STOP_ALL, &json!({ "version": 1, "grace_seconds": 1 }));
    assert_eq!(answered.status, 200, "{}", answered.json());
    let told = answered.json();
    assert_eq!((&told["stopped_jobs"], &told["still_running"]), (&json!(3), &json!(0)), "{told}");
    for id in running.iter().chain([&waiting]) {
        assert_eq!(node.job(id)["status"], "canceled");
    }
    assert_eq!(node.story(&waiting), ["accepted 0", "canceled 0"]);
    // An empty body requests the same, and no job is left.
    let nothing = node.send(&HttpRequest::new("POST", STOP_ALL));
    assert_eq!((nothing.status, &nothing.json()["stopped_jobs"]), (200, &json!(0)));
    assert_eq!(node.run(&script("true")).json()["status"], "completed");
}
