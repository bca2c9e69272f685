//! Jobs that a client follows, submits twice, lists, and acknowledges.

use super::on_each_database;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN, command, script};
use belljar_testkit::world::World;
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;

#[test]
fn events_are_streamed_while_the_job_runs_and_resume_after_the_last_seen() {
    on_each_database(
        "node::followed::events_are_streamed_while_the_job_runs_and_resume_after_the_last_seen",
        |world, arguments| {
            let node = Node::start(world, arguments);
            let id = node.submit(script("echo one; sleep 1; echo two; sleep 60"));
            let path = format!("/v1/worker/jobs/{id}/events");
            let mut events = node.begin(&HttpRequest::new("GET", &path));
            let mut last = String::new();
            loop {
                let line = events.line().unwrap().expect("it goes on");
                if let Some(seen) = line.strip_prefix("id: ") {
                    last = seen.to_owned();
                }
                if line.contains("one\\n") {
                    break;
                }
            }
            assert_eq!(node.job(&id)["status"], "in_progress");
            drop(events);
            let mut again = node.begin(&HttpRequest::new("GET", &path).header("Last-Event-ID", &last));
            let first = again.line().unwrap().unwrap();
            assert_eq!(first, format!("id: {}", last.parse::<u64>().unwrap() + 1));
            node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{id}:cancel")));
            let mut rest = Vec::new();
            while let Some(line) = again.line().unwrap() {
                rest.extend(line.strip_prefix("data: ").map(str::to_owned));
            }
            assert!(
                rest.iter().any(|data| data.contains("two")) && rest.last().unwrap().contains("canceled")
            );
            // A request for events after the end returns an empty response.
            let all = node.events(&id);
            let after = node.get(&format!("{path}?after={}", all.len()));
            assert_eq!((after.status, after.body.len()), (200, 0));
        },
    );
}

#[test]
fn same_job_is_run_once_however_often_it_is_submitted() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = script("date +%s%N");
    let first = node.run(&job).json();
    assert_eq!(node.run(&job).json(), first);
    let mut other = job.clone();
    other["sandbox"]["command"] = json!(["true"]);
    let refused = node.run(&other);
    assert_eq!((refused.status, &refused.json()["type"]), (409, &json!("urn:cynodeai:error:conflict")));
    // With a key that was used for another job.
    let keyed = |job: &serde_json::Value| {
        node.send(
            &HttpRequest::new("POST", "/v1/worker/jobs:run")
                .header("Idempotency-Key", "k1")
                .json(job.to_string()),
        )
    };
    let job = command(&["true"]);
    assert_eq!(keyed(&job).status, 200);
    assert_eq!(keyed(&job).status, 200);
    assert_eq!(keyed(&command(&["true"])).status, 409);
    let twice = HttpRequest::new("POST", "/v1/worker/jobs:run")
        .header("Idempotency-Key", "k1")
        .header("Idempotency-Key", "k2")
        .json(job.to_string());
    assert_eq!(node.send(&twice).status, 400, "duplicate parameters are refused");
}

#[test]
fn waiting_client_that_disconnects_changes_nothing() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let jobs: Vec<_> = (0..10).map(|_| script("sleep 0.5; echo done")).collect();
    for job in &jobs {
        let body = job.to_string();
        let mut stream = TcpStream::connect(node.address()).unwrap();
        let head = format!(
            "POST /v1/worker/jobs:run HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        // The client disconnects as soon as the request is sent: sometimes before the node has written to its database.
    }
    for job in &jobs {
        let id = job["job_id"].as_str().unwrap();
        // The node may not have read the request by then: a client without a response asks again.
        let mut again = job.clone();
        again["wait"] = json!(false);
        assert_eq!(node.run(&again).status, 202);
        assert_eq!(node.wait_for(id, "completed")["stdout"], "done\n");
        assert_eq!(node.story(id), ["accepted 0", "in_progress 1", "completed 1"]);
    }
}

#[test]
fn result_is_acknowledged_by_its_digest() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = command(&["true"]);
    let told = node.run(&job).json();
    let path = format!("/v1/worker/jobs/{}:ack", job["job_id"].as_str().unwrap());
    let other = node.post(&path, &json!({ "version": 1, "outcome_sha256": "0".repeat(64) }));
    assert_eq!(other.status, 409);
    let known = node.post(&path, &json!({ "version": 1, "outcome_sha256": told["outcome_sha256"] }));
    assert_eq!(known.status, 200);
    assert!(known.json()["acknowledged_at"].is_string());
    // The response equals that of later requests.
    assert_eq!(node.job(job["job_id"].as_str().unwrap()), known.json());
    let running = node.submit(script("sleep 60"));
    let early = node.post(&format!("/v1/worker/jobs/{running}:ack"), &json!({ "version": 1 }));
    assert_eq!(early.status, 409);
}

#[test]
fn jobs_are_listed_in_pages() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut ids: Vec<String> = (0..5).map(|_| node.submit(command(&["true"]))).collect();
    ids.iter().for_each(|id| drop(node.wait_for(id, "completed")));
    ids.reverse();
    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let page = node.get(&format!("/v1/worker/jobs?limit=2{token}")).json();
        listed.extend(
            page["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_page_token"].as_str() else { break };
        token = format!("&page_token={next}");
    }
    assert_eq!(listed, ids);
    let none = node.get("/v1/worker/jobs?status=failed").json();
    assert_eq!(none["jobs"], json!([]));
}
