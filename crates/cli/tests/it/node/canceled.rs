//! Jobs that a client cancels.

use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, script, steps};
use belljar_testkit::world::World;
use serde_json::json;
use std::time::{Duration, Instant};

fn cancel(node: &Node<'_>, id: &str) -> serde_json::Value {
    let answered = node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{id}:cancel")));
    assert_eq!(answered.status, 200);
    answered.json()
}

#[test]
fn canceled_job_is_killed_at_once_and_its_output_is_kept() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for job in [
        script("echo begun; sleep 60"),
        steps(&json!([{ "type": "run_command", "args": { "argv": ["sleep", "60"] } }])),
    ] {
        let is_command = job["sandbox"]["command"].is_array();
        let id = node.submit(job);
        node.wait_for(&id, "in_progress");
        let begun = Instant::now();
        assert_eq!(cancel(&node, &id)["cancel_requested"], true);
        let told = node.wait_for(&id, "canceled");
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(told["failure_code"], "canceled");
        if is_command {
            assert_eq!(told["stdout"], "begun\n");
        }
        assert_eq!(node.story(&id), ["accepted 0", "in_progress 1", "canceled 1"]);
    }
}

#[test]
fn canceled_waiting_job_never_starts_and_a_finished_one_is_unchanged() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--max-concurrency", "1"]);
    let first = node.submit(script("sleep 60"));
    let waiting = node.submit(script("true"));
    node.wait_for(&first, "in_progress");
    assert_eq!(cancel(&node, &waiting)["status"], "canceled");
    cancel(&node, &first);
    node.wait_for(&first, "canceled");
    assert_eq!(node.story(&waiting), ["accepted 0", "canceled 0"]);
    let over = script("true");
    let told = node.run(&over).json();
    assert_eq!(cancel(&node, over["job_id"].as_str().unwrap()), told);
}
