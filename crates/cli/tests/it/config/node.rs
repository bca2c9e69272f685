//! The effects of members of `node`.

use crate::BELLJAR;
use crate::models;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, command, script};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn results_are_kept_as_long_as_the_retention_section_says() {
    let world = World::new(BELLJAR);
    // Returns true if an ended job, with an acknowledged result or not, still exists after a restart.
    let is_kept = |retention: &str, is_acknowledged: bool| {
        let config = world.write("node.yaml", format!("node: {{retention: {{{retention}}}}}\n"));
        let mut node = Node::start(&world, &["--config", &config.display().to_string()]);
        let job = command(&["true"]);
        let told = node.run(&job).json();
        let path = format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap());
        if is_acknowledged {
            let digest = json!({ "version": 1, "outcome_sha256": told["outcome_sha256"] });
            assert_eq!(node.post(&format!("{path}:ack"), &digest).status, 200);
        }
        assert_eq!(node.stopped_and_started(), Some(0));
        match retention {
            // The control: the default is several days.
            "" => node.get(&path).status == 200,
            _ => {
                until(|| node.get(&path).status == 404);
                false
            }
        }
    };
    assert!(is_kept("", true));
    assert!(is_kept("", false));
    assert!(!is_kept("acknowledged_seconds: 0", true));
    assert!(!is_kept("unacknowledged_seconds: 0", false));
    // The control: each retention applies to its own jobs.
    let config = world.write("node.yaml", "node: {retention: {acknowledged_seconds: 0}}\n");
    let mut node = Node::start(&world, &["--config", &config.display().to_string()]);
    let (kept, gone) = (command(&["true"]), command(&["true"]));
    node.run(&kept);
    let told = node.run(&gone).json();
    let path = |job: &Value| format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap());
    let digest = json!({ "version": 1, "outcome_sha256": told["outcome_sha256"] });
    assert_eq!(node.post(&format!("{}:ack", path(&gone)), &digest).status, 200);
    assert_eq!(node.stopped_and_started(), Some(0));
    until(|| node.get(&path(&gone)).status == 404);
    assert_eq!(node.get(&path(&kept)).status, 200);
}

#[test]
fn node_bills_calls_of_its_jobs_to_the_configured_account() {
    for (node, account) in [(json!({}), "local"), (json!({ "billing_account": "account-7" }), "account-7")] {
        let world = World::new(BELLJAR);
        let server = ModelServer::start(Script::always(Answer::text("hello")));
        let path = models::configure(&world, &server);
        let mut config: Value = serde_json::from_str(&world.read("config.yaml")).unwrap();
        config["node"] = node;
        world.write("config.yaml", config.to_string());
        let started = Node::start(&world, &["--config", &path]);
        let call =
            "curl -s \"$OPENAI_BASE_URL/chat/completions\" -d '{\"model\": \"small\", \"messages\": []}'";
        let mut job = script(call);
        job["sandbox"]["use_inference"] = json!(true);
        let told = started.run(&job).json();
        let requests = server.requests();
        assert_eq!(requests.len(), 1, "{told}");
        assert_eq!(requests[0].header("x-litellm-end-user-id"), Some(account));
        let recorded = models::recorded(&world.path().join("state/node/audit"), "inference_call");
        assert_eq!(recorded[0]["billing_account_id"], account, "{recorded:?}");
    }
}

/// Starts a collector that takes three seconds per response.
fn slow_collector() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 1 << 16]);
                std::thread::sleep(Duration::from_secs(3));
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            });
        }
    });
    url
}

#[test]
fn trace_collector_timeout_is_configurable() {
    let url = slow_collector();
    let traced = |more: &str, becomes: &dyn Fn(&Node<'_>) -> bool| {
        let world = World::new(BELLJAR);
        let config = world.write("node.yaml", format!("node: {{traces: {{endpoint: '{url}'{more}}}}}\n"));
        let node = Node::start(&world, &["--config", &config.display().to_string()]);
        node.run(&script("true"));
        until(|| becomes(&node));
        node.log().contains("traces don't arrive")
    };
    let is_exported = |node: &Node<'_>| {
        let counted = String::from_utf8(node.get("/metrics").body).unwrap();
        counted.lines().any(|line| line.starts_with("belljar_spans_total{exported=\"true\"}"))
    };
    assert!(traced(", timeout_seconds: 1", &|node| node.log().contains("traces don't arrive")));
    // The control: the timeout is ten seconds, unless the section sets another.
    assert!(!traced("", &is_exported));
}
