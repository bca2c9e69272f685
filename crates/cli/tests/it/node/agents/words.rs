//! The trust in a node's agents over HTTP: the reports, the permission to change it, and the time at which changes take
//! effect.

use super::{as_agent, configure};
use crate::node::on_each_database;
use crate::node::remote_tools::token;
use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::node::{Node, command, new_id};
use belljar_testkit::world::World;
use serde_json::{Value, json};

const TRUST: &str = "/v1/worker/trust";

const EARNED: &str = "
egress: {rules: [{host: elsewhere.example}]}
trust:
  strategy: milestone
  initial_level: sandboxed
  milestones:
    sandboxed_to_restricted: {tasks_completed: 2, quality_score_min: 7.0}
    restricted_to_standard: {tasks_completed: 3, quality_score_min: 7.0}
    standard_to_elevated: {tasks_completed: 4, quality_score_min: 7.0, requires_human_approval: true}
";

const SAID: &str = "
egress: {rules: [{host: elsewhere.example}]}
tool_access: {default_level: sandboxed, agents: [{name: worker, level: elevated}]}
";

fn reported(node: &Node<'_>, event: &Value) -> HttpResponse {
    let body = json!({ "version": 1, "event_id": new_id(), "event": event });
    node.post(&format!("{TRUST}/worker/events"), &body)
}

fn report(node: &Node<'_>, event: &Value) -> Value {
    let answered = reported(node, event);
    assert_eq!(answered.status, 201, "{:#}", answered.json());
    answered.json()
}

fn good_task(node: &Node<'_>) -> Value {
    report(node, &json!({ "type": "task_completed", "quality": 9.0 }))["state"]["global_level"].clone()
}

fn shown(node: &Node<'_>) -> Value {
    node.get(&format!("{TRUST}/worker")).json()
}

fn set(node: &Node<'_>, level: &str) -> HttpResponse {
    let body = json!({ "version": 1, "level": level, "reason": "not by itself" });
    node.post(&format!("{TRUST}/worker/level"), &body)
}

/// Returns a job of the agent that may use the network as the policy permits.
fn with_web(script: &str) -> Value {
    let mut job = as_agent("worker", command(&["python3", "-c", script]));
    job["sandbox"]["network_policy"] = json!("restricted");
    job
}

/// Removes the time of the report, which differs between two reports.
fn timeless(mut told: Value) -> Value {
    told["state"].as_object_mut().unwrap().remove("as_of").unwrap();
    told
}

#[test]
fn trust_is_the_same_over_http_and_command_line_and_an_event_counts_once() {
    let name = "node::agents::words::trust_is_the_same_over_http_and_command_line_and_an_event_counts_once";
    on_each_database(name, |world, database| {
        let node = Node::start(world, &[&["--config", &configure(world, EARNED)], database].concat());
        assert_eq!(node.get(&format!("{TRUST}/worker")).status, 404);
        assert_eq!(report(&node, &json!({ "type": "agent_hired" }))["state"]["global_level"], "sandboxed");
        let mut event = json!({
            "version": 1, "event_id": new_id(), "event": { "type": "task_completed", "quality": 9.0 },
        });
        let send = |event: &Value| node.post(&format!("{TRUST}/worker/events"), event);
        assert_eq!([&event, &event, &event].map(|event| send(event).status), [201, 200, 200]);
        assert_eq!(shown(&node)["state"]["global_level"], "sandboxed", "an event counts once");
        event["event"]["quality"] = json!(10);
        assert_eq!(send(&event).status, 409, "{:#}", send(&event).json());
        // The control: another event counts.
        assert_eq!(good_task(&node), "restricted");

        let file = format!("sqlite:{}", world.path().join("state/node/node.db").display());
        let database = database.last().copied().unwrap_or(&file);
        let of_command =
            ["trust", "show", "worker", "--json", "--config", "config.yaml", "--database", database];
        let mut by_http = shown(&node);
        assert_eq!(by_http.as_object_mut().unwrap().remove("version"), Some(json!(1)));
        assert_eq!(timeless(by_http), timeless(world.run(&of_command).succeeded().json()));
        let other = json!({ "version": 1, "event_id": new_id(), "event": { "type": "agent_hired" } });
        for other_agent in ["other", "a%2Fb%3Ac"] {
            assert_eq!(node.post(&format!("{TRUST}/{other_agent}/events"), &other).status, 201);
        }
        let page = node.get(&format!("{TRUST}?limit=2")).json();
        let of = |page: &Value, at: usize| page["agents"][at]["agent_id"].clone();
        assert_eq!([of(&page, 0), of(&page, 1)], ["a/b:c", "other"].map(Value::from));
        let next = page["next_page_token"].as_str().unwrap();
        let last = node.get(&format!("{TRUST}?limit=2&page_token={next}")).json();
        assert_eq!((of(&last, 0), last.get("next_page_token")), (json!("worker"), None));
        assert_eq!(last["agents"][0]["global_level"], "restricted");
    });
}

#[test]
fn promotion_over_http_requires_the_operator_token() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, EARNED)]);
    report(&node, &json!({ "type": "agent_hired" }));
    let levels: Vec<Value> = (0..5).map(|_| good_task(&node)).collect();
    assert_eq!(levels, ["sandboxed", "restricted", "standard", "standard", "standard"], "{}", shown(&node));
    let proposal = shown(&node)["state"]["pending"][0]["proposal_id"].as_str().unwrap().to_owned();
    let place = |verb: &str| format!("{TRUST}/worker/proposals/{proposal}:{verb}");

    let manager = token(&node, json!({ "kind": "project_manager", "agent_id": "lead" }));
    let job = node.submit(as_agent("other", command(&["python3", "-c", "import time; time.sleep(600)"])));
    let of_job = json!({ "kind": "sandbox", "task_id": node.job(&job)["task_id"], "job_id": job });
    let sandbox = token(&node, of_job);
    let level = json!({ "version": 1, "level": "restricted", "reason": "x" });
    let incident = json!({ "version": 1, "event_id": new_id(), "event": { "type": "security_incident" } });
    let says = [
        ("POST", place("approve"), json!({ "version": 1 })),
        ("POST", place("deny"), json!({ "version": 1 })),
        ("POST", format!("{TRUST}/worker/level"), level),
        ("POST", format!("{TRUST}/worker/events"), incident),
        ("POST", format!("{TRUST}/worker/verification"), json!({ "version": 1 })),
        ("GET", format!("{TRUST}/worker"), Value::Null),
        ("GET", TRUST.to_owned(), Value::Null),
    ];
    let before = timeless(shown(&node));
    for (method, path, body) in &says {
        for wrong in [manager.as_str(), sandbox.as_str(), "another-token-0123456789"] {
            let asked = HttpRequest::new(method, path).header("Authorization", &format!("Bearer {wrong}"));
            let asked = if body.is_null() { asked } else { asked.json(body.to_string()) };
            assert_eq!(asked.send(node.address()).unwrap().status, 401, "{method} {path}");
        }
    }
    assert_eq!(timeless(shown(&node)), before);

    // The control: the node's token may answer, and repeating the answer changes nothing.
    let yes = || node.send(&HttpRequest::new("POST", &place("approve")));
    for _ in 0..2 {
        let said = yes();
        assert_eq!((said.status, &said.json()["state"]["global_level"]), (200, &json!("elevated")));
    }
    assert_eq!(node.post(&place("deny"), &json!({ "version": 1 })).status, 409);
    assert_eq!(shown(&node)["changes"][2]["reason"], "human_approval");
    node.post(&format!("/v1/worker/jobs/{job}:cancel"), &json!({}));
    node.wait_for(&job, "canceled");
}

#[test]
fn unknown_or_malformed_trust_event_is_refused_and_not_recorded() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, EARNED)]);
    report(&node, &json!({ "type": "agent_hired" }));
    let before = timeless(shown(&node));
    let (one, version) = (new_id(), json!({ "version": 1 }));
    for (path, status) in [
        ("absent/verification", 404),
        (&format!("absent/proposals/{one}:approve"), 404),
        (&format!("worker/proposals/{one}:approve"), 404),
        (&format!("worker/proposals/{one}:deny"), 404),
        (&format!("worker/proposals/{one}:explode"), 404),
        ("worker/proposals/first:approve", 404),
        ("worker/level", 400),
        ("worker/events", 400),
        ("worker", 405),
    ] {
        assert_eq!(node.post(&format!("{TRUST}/{path}"), &version).status, status, "{path}");
    }
    let word = json!({ "type": "level_set", "level": "standard", "reason": "x", "by": "me" });
    let told = reported(&node, &word);
    assert_eq!((told.status, &told.json()["problems"][0]["path"]), (400, &json!("$.event")));
    let mut level = json!({ "version": 1, "level": "custom", "reason": "x", "category": "gardening" });
    let told = node.post(&format!("{TRUST}/worker/level"), &level).json().to_string();
    assert!(told.contains("$.level") && told.contains("$.category"), "{told}");
    level["level"] = json!("standard");
    level.as_object_mut().unwrap().remove("category");
    assert_eq!(node.post(&format!("{TRUST}/absent/level"), &level).status, 404);
    for query in ["limit=0", "limit=501", "order=up"] {
        assert_eq!(node.get(&format!("{TRUST}?{query}")).status, 400, "{query}");
    }
    assert_eq!(timeless(shown(&node)), before);
    assert_eq!(node.get(TRUST).json()["agents"].as_array().unwrap().len(), 1);
    // The control.
    assert_eq!(set(&node, "standard").json()["state"]["global_level"], "standard");
    assert_eq!(shown(&node)["changes"][0]["by"], "operator");
    assert_eq!(node.post(&format!("{TRUST}/worker/verification"), &version).status, 200);
}

#[test]
fn trust_report_over_http_takes_effect_before_its_response() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, EARNED), "--max-concurrency", "8"]);
    report(&node, &json!({ "type": "agent_hired" }));
    let sleep = "import time; time.sleep(600)";
    assert_eq!(node.run(&with_web("pass")).status, 403);
    assert_eq!(set(&node, "restricted").status, 200);
    let lost = node.submit(with_web(sleep));
    let kept = node.submit(as_agent("worker", command(&["python3", "-c", sleep])));
    for id in [&lost, &kept] {
        node.wait_for(id, "in_progress");
    }
    assert_eq!(report(&node, &json!({ "type": "security_incident" }))["state"]["global_level"], "sandboxed");
    assert_eq!(node.run(&with_web("pass")).status, 403);
    assert_eq!(node.wait_for(&lost, "failed")["failure_code"], "policy_violation");
    // The control: a job that uses none of the lost permissions continues.
    assert_eq!(node.job(&kept)["status"], "in_progress");
    node.post(&format!("/v1/worker/jobs/{kept}:cancel"), &json!({}));
    node.wait_for(&kept, "canceled");
}

#[test]
fn without_earning_rules_only_an_operator_sets_the_level() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &["--config", &configure(&world, SAID)]);
    assert_eq!(node.get(TRUST).json()["agents"], json!([]));
    assert_eq!(set(&node, "sandboxed").status, 404, "unknown agent");
    report(&node, &json!({ "type": "agent_hired" }));
    assert_eq!(node.run(&with_web("pass")).json()["status"], "completed", "the configured level holds");
    assert_eq!(set(&node, "sandboxed").status, 200);
    assert_eq!(node.run(&with_web("pass")).status, 403);
    good_task(&node);
    node.killed_and_started();
    assert_eq!(node.run(&with_web("pass")).status, 403);
    // The control: another level.
    assert_eq!(set(&node, "standard").status, 200);
    assert_eq!(node.run(&with_web("pass")).json()["status"], "completed");
}
