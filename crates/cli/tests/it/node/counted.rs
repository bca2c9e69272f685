//! The metrics of a node: each counter increases when its event happens.

use super::reported;
use super::told;
use belljar_testkit::collector::Collector;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, TOKEN, command, new_id, script};
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::world::World;
use belljar_testkit::{http::HttpRequest, wait};
use serde_json::json;
use std::collections::BTreeMap;

/// Returns all values, by name and labels.
fn counts(node: &Node<'_>) -> BTreeMap<String, f64> {
    let answered = node.get("/metrics");
    assert!(answered.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = String::from_utf8(answered.body).unwrap();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// Returns the names of all metrics.
fn families(node: &Node<'_>) -> Vec<String> {
    let text = String::from_utf8(node.get("/metrics").body).unwrap();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn every_metric_changes_with_its_event() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let orchestrator = Orchestrator::start();
    let models = std::fs::read_to_string(crate::models::configure(&world, &server)).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&models).unwrap();
    config["node"] = told::configuration(&world, &orchestrator.url("/status"));
    let collector = Collector::start(&[]);
    config["node"]["traces"] = json!({ "endpoint": collector.url() });
    config["egress"] = json!({ "rules": [] });
    let path = world.write("both.yaml", config.to_string());
    let node = Node::start(&world, &["--config", path.to_str().unwrap()]);
    let before = counts(&node);

    let argv = super::modeled::calls(&["small"]);
    let mut job = command(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    job["sandbox"]["use_inference"] = json!(true);
    assert_eq!(node.run(&job).json()["status"], "completed");
    assert_eq!(
        node.run(&reported::short_command(&format!("{}; exit 1", reported::ASK))).json()["status"],
        "failed"
    );
    node.run(&super::web::command("curl -s http://other.example/", "restricted"));
    let session =
        super::sessions::open(&node, &json!({ "version": 1, "task_id": new_id(), "session_id": new_id() }));
    node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": ["true"] }));
    let running = node.submit(script("sleep 60"));
    node.wait_for(&running, "in_progress");
    wait::until(|| counts(&node)["belljar_callbacks_total{taken=\"true\"}"] >= 6.0);
    config["egress"]["rules"] = json!([{ "host": "pkgs.example" }]);
    world.write("both.yaml", config.to_string());
    wait::until(|| counts(&node)["belljar_web_policy_generation"] == 2.0);
    wait::until(|| counts(&node).contains_key("belljar_spans_total{exported=\"true\"}"));

    let after = counts(&node);
    let grown = |name: &str| {
        let of_family = |(sample, value): (&String, &f64)| {
            let is_it = sample.strip_prefix(name).is_some_and(|rest| {
                ["", "_total", "_count"].iter().any(|end| {
                    rest.strip_prefix(end).is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
                })
            });
            is_it && *value > before.get(sample).copied().unwrap_or_default()
        };
        after.iter().any(of_family)
    };
    let still: Vec<_> = families(&node).into_iter().filter(|name| !grown(name)).collect();
    assert_eq!(still, Vec::<String>::new(), "metrics that did not change: {after:#?}");
    assert_eq!(after["belljar_jobs_accepted_total"], 4.0);
    assert_eq!(after["belljar_jobs_ended_total{status=\"completed\"}"], 2.0);
    assert_eq!(after["belljar_jobs_ended_total{status=\"failed\"}"], 1.0);
    assert_eq!((after["belljar_jobs_running"], after["belljar_sessions_open"]), (1.0, 1.0));
    assert_eq!(after["belljar_model_calls_total"], 1.0);
    assert_eq!(after["belljar_extensions_total{granted=\"true\"}"], 1.0);
    assert_eq!(after["belljar_requests_total{operation=\"RunJob\",code=\"200\"}"], 3.0);
    assert_eq!(after["belljar_web_requests_total{allowed=\"false\"}"], 1.0);
    assert_eq!(after["belljar_web_policy_changes_total{taken=\"true\"}"], 2.0);

    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{running}:cancel")));
    wait::until(|| counts(&node)["belljar_jobs_running"] == 0.0);
    assert_eq!(counts(&node)["belljar_jobs_ended_total{status=\"canceled\"}"], 1.0);
    // The metrics require the token.
    assert_eq!(HttpRequest::new("GET", "/metrics").send(node.address()).unwrap().status, 401);
    assert!(!String::from_utf8(node.get("/metrics").body).unwrap().contains(TOKEN));
}
