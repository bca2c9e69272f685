//! The spans that a node sends to a trace collector.

use super::modeled::calls;
use crate::models::configure;
use belljar_testkit::collector::{Collector, Span};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, script, steps};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::net::TcpListener;

const CANARY: &str = "a-secret-that-no-trace-has";

fn of_job(collector: &Collector, id: &str) -> Vec<Span> {
    let trace = id.replace('-', "");
    collector.spans().into_iter().filter(|span| span.trace == trace).collect()
}

/// Returns the children of a span, in the order of their start.
fn below<'s>(spans: &'s [Span], parent: &Span) -> Vec<&'s Span> {
    let mut below: Vec<_> = spans.iter().filter(|span| span.parent == parent.id).collect();
    below.sort_by_key(|span| span.times);
    below
}

#[track_caller]
fn one<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

fn names<'s>(spans: &[&'s Span]) -> Vec<&'s str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

/// Writes a configuration with models and a collector, and returns its path.
fn with_collector(world: &World, server: &ModelServer, url: &str) -> String {
    let path = configure(world, server);
    let mut config: Value = serde_json::from_str(&world.read("config.yaml")).unwrap();
    config["node"] = json!({ "traces": { "endpoint": url } });
    world.write("config.yaml", config.to_string());
    path
}

#[test]
fn job_trace_spans_acceptance_to_record_with_steps_and_model_calls() {
    let world = World::new(crate::BELLJAR);
    let (server, collector) =
        (ModelServer::start(Script::always(Answer::text(CANARY))), Collector::start(&[]));
    let node = Node::start(&world, &["--config", &with_collector(&world, &server, &collector.url())]);
    let mut job = steps(&json!([
        { "type": "write_file", "args": { "path": CANARY, "content": CANARY } },
        { "type": "run_command", "args": { "argv": calls(&["small", "other", CANARY]) } },
    ]));
    job["sandbox"]["job_spec"]["inference"] = json!({ "allowed_models": ["small", "other"] });
    job["sandbox"]["env"] = json!({ "SECRET": CANARY });
    let told = node.run(&job).json();
    assert_eq!(told["status"], "completed", "{told:#}");
    let id = job["job_id"].as_str().unwrap();
    until(|| of_job(&collector, id).iter().any(|span| span.name == "job"));

    let spans = of_job(&collector, id);
    let root = one(&spans, "job");
    assert_eq!((root.parent.as_str(), &root.failure), ("", &None));
    assert_eq!(root.attributes["belljar.state"], "completed");
    assert_eq!(root.attributes["belljar.task_id"], job["task_id"].as_str().unwrap());
    assert_eq!(names(&below(&spans, root)), ["queue", "attempt"]);
    let attempt = one(&spans, "attempt");
    assert_eq!(names(&below(&spans, attempt)), ["sandbox", "run", "collect", "record"]);
    let sandbox = one(&spans, "sandbox");
    assert_eq!(sandbox.attributes["belljar.run_id"], told["run_id"].as_str().unwrap());
    assert!(below(&spans, sandbox).len() >= 10, "the stages of its launch: {spans:#?}");
    let run = below(&spans, one(&spans, "run"));
    assert_eq!(names(&run), ["step", "step", "chat gpt-4o-mini", "chat other", "chat"]);
    assert_eq!(run[0].attributes["belljar.step.type"], "write_file");
    assert_eq!(run[2].attributes["http.response.status_code"], "200");
    assert_eq!(run[2].attributes["gen_ai.request.model"], "gpt-4o-mini");
    assert_eq!(run[4].attributes["error.type"], "model_not_allowed");
    for span in &spans {
        assert!(span.times.0 <= span.times.1, "{span:?}");
        if let Some(parent) = spans.iter().find(|parent| parent.id == span.parent) {
            assert!(
                parent.times.0 <= span.times.0 && span.times.1 <= parent.times.1,
                "{span:?} in {parent:?}"
            );
        }
    }
    assert!(!collector.has_heard(CANARY), "the trace contains private data");
    // The control: it has the expected data.
    assert!(collector.has_heard("belljar.job_id"));
}

#[test]
fn web_requests_of_a_job_are_traced_without_the_requested_hostname() {
    let world = World::new(crate::BELLJAR);
    let collector = Collector::start(&[]);
    let server = crate::egress::HelloServer::start();
    let config = json!({
        "node": { "traces": { "endpoint": collector.url() } },
        "egress": { "rules": [{ "host": "localhost", "ports": [server.address.port()], "networks": ["127.0.0.0/8", "::1"] }] },
    });
    world.write("config.yaml", config.to_string());
    let node = Node::start(&world, &["--config", "config.yaml"]);
    let text = format!("{}; curl -s http://{CANARY}.example/", super::web::fetching(server.address.port()));
    let told = node.run(&super::web::command(&text, "restricted")).json();
    let id = told["job_id"].as_str().unwrap();
    until(|| of_job(&collector, id).iter().any(|span| span.name == "job"));
    let spans = of_job(&collector, id);
    let run = below(&spans, one(&spans, "run"));
    assert_eq!(names(&run), ["web", "web"]);
    let attributes = [&run[0].attributes, &run[1].attributes];
    assert_eq!(attributes.map(|all| all["http.response.status_code"].as_str()), ["200", "403"]);
    assert_eq!(
        (attributes[0]["belljar.web.rule"].as_str(), run[1].failure.as_deref()),
        ("0", Some("no_rule_for_host"))
    );
    assert!(!collector.has_heard(CANARY), "the trace contains private data");
}

#[test]
fn failed_job_has_an_error_span_and_a_killed_nodes_job_is_one_trace() {
    let world = World::new(crate::BELLJAR);
    let collector = Collector::start(&[]);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url().as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=a%20b"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut node = Node::start_with(&world, &[], &variables);
    let failed = script("exit 3");
    node.run(&failed);
    // Unsent spans are lost when a node is killed.
    let failed = failed["job_id"].as_str().unwrap();
    until(|| !of_job(&collector, failed).is_empty());
    let mut again = script("echo begun; sleep 2");
    again["max_attempts"] = json!(2);
    let id = super::stopped::begun(&node, &again);
    node.killed_and_started();
    node.wait_for(&id, "completed");
    until(|| of_job(&collector, &id).iter().any(|span| span.name == "job"));
    let spans = of_job(&collector, &id);
    assert_eq!(one(&spans, "attempt").attributes["belljar.attempt"], "2");
    assert_eq!(one(&spans, "attempt").parent, one(&spans, "job").id);
    let spans = of_job(&collector, failed);
    assert_eq!(one(&spans, "job").failure.as_deref(), Some("step_failed"));
    assert!(collector.heads().iter().all(|head| head.starts_with("POST /v1/traces HTTP/1.1\r\n")));
    assert!(collector.heads()[0].contains("x-team: a b\r\n"), "{:?}", collector.heads());
}

#[test]
fn busy_trace_collector_is_retried_and_an_unreachable_one_delays_no_job() {
    let world = World::new(crate::BELLJAR);
    let busy = Collector::start(&["HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"]);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let mut node = Node::start(&world, &["--config", &with_collector(&world, &server, &busy.url())]);
    let job = script("true");
    node.run(&job);
    until(|| !busy.spans().is_empty());
    assert_eq!(busy.heads().len(), 2);
    // Unsent spans are sent before a node stops.
    let last = script("true");
    node.run(&last);
    assert_eq!(node.stop(), Some(0));
    one(&of_job(&busy, last["job_id"].as_str().unwrap()), "job");
    drop(node);

    let unused_address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let node = Node::start(
        &world,
        &["--config", &with_collector(&world, &server, &format!("http://{unused_address}"))],
    );
    assert_eq!(node.run(&script("true")).json()["status"], "completed");
    until(|| {
        let counted = String::from_utf8(node.get("/metrics").body).unwrap();
        counted.lines().any(|line| line.starts_with("belljar_spans_total{exported=\"false\"}"))
    });
}

#[test]
fn log_lines_about_a_job_name_its_id() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let job = script("exit 3");
    let told = node.run(&job).json();
    let log = node.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let over: Vec<_> = lines.filter(|line| line["fields"]["message"] == "a job is over").collect();
    assert_eq!(over.len(), 1, "{log}");
    assert_eq!((&over[0]["span"]["job_id"], &over[0]["span"]["attempt"]), (&job["job_id"], &json!(1)));
    assert_eq!(
        (&over[0]["fields"]["run_id"], &over[0]["fields"]["failure"]),
        (&told["run_id"], &json!("step_failed"))
    );
}
