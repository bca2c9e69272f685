//! An orchestrator that receives callbacks about its jobs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_testkit::node::{Node, command, script};
use belljar_testkit::orchestrator::{Orchestrator, ReceivedMessage, Reply};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const SECRET: &str = "a-secret-for-signatures";

/// Returns the section `node` of a configuration with callbacks to that URL.
pub(super) fn configuration(world: &World, url: &str) -> Value {
    world.write("callback-secret", SECRET);
    json!({ "callback": { "url": url, "secret_file": world.path().join("callback-secret") } })
}

/// Returns the options for a configuration with callbacks to that URL.
fn configured(world: &World, url: &str) -> Vec<String> {
    let config = json!({ "node": configuration(world, url) });
    let path = world.write("config.yaml", config.to_string());
    vec!["--config".to_owned(), path.display().to_string()]
}

fn start<'w>(world: &'w World, arguments: &[String]) -> Node<'w> {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    Node::start(world, &arguments)
}

/// Returns the statuses of a job, in the order in which they were first received.
fn story(received: &[ReceivedMessage], id: &str) -> Vec<String> {
    let mut told = Vec::new();
    for message in received.iter().filter(|message| message.body["job"]["job_id"] == id) {
        let status = message.body["event"]["status"].as_str().unwrap().to_owned();
        if !told.contains(&status) {
            told.push(status);
        }
    }
    told
}

#[test]
fn callbacks_report_each_state_signed_in_order_and_the_last_with_the_result() {
    let world = World::new(crate::BELLJAR);
    let orchestrator = Orchestrator::start();
    let node = start(&world, &configured(&world, &orchestrator.url("/status")));
    let job = script("echo done; sleep 0.3");
    let id = node.submit(job);
    wait::until(|| node.job(&id)["acknowledged_at"].is_string());
    let received = orchestrator.received();
    assert_eq!(story(&received, &id), ["accepted", "in_progress", "completed"]);
    for message in &received {
        assert_eq!((message.path.as_str(), &message.body["version"]), ("/status", &json!(1)));
        let header = |name: &str| message.header(name).unwrap_or_default().to_owned();
        assert_eq!(header("webhook-id"), format!("{id}.{}", message.body["event"]["id"]));
        let signed =
            [format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes(), &message.bytes]
                .concat();
        let expected = Orchestrator::hmac_sha256(SECRET.as_bytes(), &signed);
        assert_eq!(header("webhook-signature"), format!("v1,{}", STANDARD.encode(expected)));
    }
    let last = &received.last().unwrap().body;
    assert_eq!(
        (&last["job"]["stdout"], &last["job"]["outcome_sha256"]),
        (&json!("done\n"), &node.job(&id)["outcome_sha256"])
    );
}

#[test]
fn rejected_callback_is_repeated_unchanged() {
    let world = World::new(crate::BELLJAR);
    let orchestrator = Orchestrator::start();
    orchestrator.refuse(2);
    let node = start(&world, &configured(&world, &orchestrator.url("/")));
    let id = node.submit(command(&["true"]));
    wait::until(|| node.job(&id)["acknowledged_at"].is_string());
    let received = orchestrator.received();
    assert!(received.len() >= 4, "{}", received.len());
    let ids: Vec<_> =
        received.iter().map(|message| message.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!((&ids[0], &ids[1]), (&ids[2], &ids[2]));
    let digests: Vec<Value> = received
        .iter()
        .filter(|message| message.body["event"]["status"] == "completed")
        .map(|message| message.body["job"]["outcome_sha256"].clone())
        .collect();
    assert!(digests.iter().all(|digest| digest.is_string() && *digest == digests[0]));
}

#[test]
fn callbacks_are_sent_in_order_and_unchanged_whatever_the_orchestrator_answers() {
    let world = World::new(crate::BELLJAR);
    let orchestrator = Orchestrator::start();
    let late = Reply::Late(Duration::from_millis(700));
    let bad = [Reply::HangsUp, Reply::Failed, late, Reply::Half, Reply::Taken, Reply::Failed, Reply::Taken];
    orchestrator.reply(bad.into_iter().cycle().take(24));
    let node = start(&world, &configured(&world, &orchestrator.url("/")));
    let ids: Vec<String> = (0..8).map(|_| node.submit(command(&["true"]))).collect();
    for id in &ids {
        let job = node.wait_for(id, "completed");
        // While callbacks are sent, a client acknowledges the job as well, and twice.
        let path = format!("/v1/worker/jobs/{id}:ack");
        let known = json!({ "version": 1, "outcome_sha256": job["outcome_sha256"] });
        let acknowledged = [(); 2].map(|()| node.post(&path, &known).json()["acknowledged_at"].clone());
        assert!(acknowledged[0].is_string() && acknowledged[0] == acknowledged[1], "{acknowledged:?}");
        wait::until(|| story(&orchestrator.taken(), id).last().is_some_and(|last| last == "completed"));
        assert_eq!(node.job(id)["acknowledged_at"], acknowledged[0], "the first acknowledgment stays");
    }
    let received = orchestrator.received();
    for id in &ids {
        assert_eq!(story(&received, id), ["accepted", "in_progress", "completed"]);
        let of_job: Vec<_> =
            received.iter().filter(|message| message.body["job"]["job_id"] == id.as_str()).collect();
        // A repeated callback has the same id, and no older one follows an accepted one.
        let numbers: Vec<_> =
            of_job.iter().map(|message| message.body["event"]["id"].as_u64().unwrap()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        for message in &of_job {
            let same = of_job.iter().find(|other| other.header("webhook-id") == message.header("webhook-id"));
            assert_eq!(message.body["event"], same.unwrap().body["event"]);
        }
        let ends = of_job.iter().filter(|message| message.body["event"]["status"] == "completed");
        let digests: HashSet<_> = ends.map(|end| end.body["job"]["outcome_sha256"].to_string()).collect();
        assert_eq!(digests.len(), 1);
    }
    assert!(received.len() > 3 * ids.len(), "some came again: {}", received.len());
}

#[test]
fn undelivered_callbacks_are_sent_by_the_next_node() {
    let world = World::new(crate::BELLJAR);
    let orchestrator = Orchestrator::start();
    orchestrator.refuse(usize::MAX);
    let mut node = start(&world, &configured(&world, &orchestrator.url("/status")));
    let id = node.submit(command(&["true"]));
    node.wait_for(&id, "completed");
    wait::until(|| !orchestrator.received().is_empty());
    assert_eq!(node.job(&id)["acknowledged_at"], Value::Null);
    node.killed_and_started();
    orchestrator.refuse(0);
    wait::until(|| node.job(&id)["acknowledged_at"].is_string());
    assert_eq!(story(&orchestrator.taken(), &id), ["accepted", "in_progress", "completed"]);
}

#[test]
fn unresponsive_callback_origin_delays_no_other() {
    const MOST_AT_ONCE: usize = 16;
    let world = World::new(crate::BELLJAR);
    let orchestrator = Orchestrator::start();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (origin, held) = (format!("http://{}", silent.local_addr().unwrap()), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&held);
    std::thread::spawn(move || {
        let mut connections = Vec::new();
        for connection in silent.incoming() {
            connections.push(connection);
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut section = configuration(&world, &orchestrator.url("/status"));
    section["callback"]["allowed_origins"] = json!([origin]);
    let config = world.write("config.yaml", json!({ "node": section }).to_string());
    let node = start(&world, &["--config".to_owned(), config.display().to_string()]);
    for _ in 0..MOST_AT_ONCE + 4 {
        let mut job = command(&["true"]);
        job["callback_url"] = json!(format!("{origin}/status"));
        node.submit(job);
    }
    wait::until(|| held.load(Ordering::SeqCst) >= MOST_AT_ONCE);
    let id = node.submit(command(&["true"]));
    wait::until(|| node.job(&id)["acknowledged_at"].is_string());
    // No callback to the unresponsive origin was given up by then, so none had made room for another.
    assert_eq!(held.load(Ordering::SeqCst), MOST_AT_ONCE);
}

#[test]
fn job_may_set_its_callback_url_only_where_the_configuration_allows_it() {
    let world = World::new(crate::BELLJAR);
    let (orchestrator, other) = (Orchestrator::start(), Orchestrator::start());
    let node = start(&world, &configured(&world, &orchestrator.url("/status")));
    let with = |url: String| {
        let mut job = command(&["true"]);
        job["callback_url"] = json!(url);
        node.run(&job)
    };
    let refused = with(other.url("/status"));
    assert_eq!(refused.status, 403);
    assert!(refused.json()["detail"].as_str().unwrap().contains("sends no messages to http://"));
    assert_eq!(with("http://169.254.169.254/latest".to_owned()).status, 403);
    let taken = with(orchestrator.url("/elsewhere"));
    let id = taken.json()["job_id"].as_str().unwrap().to_owned();
    wait::until(|| node.job(&id)["acknowledged_at"].is_string());
    assert!(orchestrator.received().iter().all(|message| message.path == "/elsewhere"));
    assert!(other.received().is_empty());
    // A node without a callback URL refuses a job that asks for one.
    let lonely = World::new(crate::BELLJAR);
    let node = Node::start(&lonely, &[]);
    let mut job = command(&["true"]);
    job["callback_url"] = json!(orchestrator.url("/"));
    assert_eq!(node.run(&job).status, 403);
}
