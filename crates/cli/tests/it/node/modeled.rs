//! Models for a node's jobs.

use super::sessions::open;
use crate::models::{KEY, configure, recorded};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::node::{Node, command, new_id, steps};
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::time::Duration;

/// Calls each model of its arguments, and prints the result.
const CALLS: &str = r#"
import json, os, sys, urllib.error, urllib.request
for model in sys.argv[1:]:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    try:
        url = os.environ.get("OPENAI_BASE_URL", "http://localhost:8080/v1") + "/chat/completions"
        answer = json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode())))
        print(model, answer["choices"][0]["message"]["content"])
    except urllib.error.HTTPError as error:
        print(model, json.load(error)["error"]["code"])
    except urllib.error.URLError as error:
        print(model, type(error.reason).__name__)
"#;

pub(super) fn calls(models: &[&str]) -> Vec<String> {
    ["python3", "-c", CALLS].iter().chain(models).map(|&argument| argument.to_owned()).collect()
}

fn calling_command(models: &[&str], use_inference: bool) -> Value {
    let argv = calls(models);
    let mut job = command(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    job["sandbox"]["use_inference"] = json!(use_inference);
    job
}

fn calling_job(models: &[&str], allowed: &[&str]) -> Value {
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": calls(models) } }]));
    job["sandbox"]["job_spec"]["inference"] = json!({ "allowed_models": allowed });
    job
}

#[test]
fn job_calls_its_allowed_models_and_each_call_is_billed_and_recorded() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let node = Node::start(&world, &["--config", &config]);

    let of_command = node.run(&calling_command(&["small", "other", "none"], true)).json();
    assert_eq!(of_command["stdout"], "small hello\nother hello\nnone model_not_allowed\n", "{of_command}");
    assert_eq!(of_command["inference"]["calls"], 2);

    let of_job = node.run(&calling_job(&["small", "other"], &["small", "elsewhere"])).json();
    let stdout = &of_job["sba_result"]["steps"][0]["result"]["stdout"];
    assert_eq!(*stdout, "small hello\nother model_not_allowed\n", "{of_job}");
    assert_eq!(of_job["inference"]["calls"], 1);

    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.header("authorization") == Some(&format!("Bearer {KEY}"))));
    let audit = world.path().join("state/node/audit");
    let runs: Vec<_> = recorded(&audit, "inference_call").iter().map(|call| call["run_id"].clone()).collect();
    let expected = [&of_command["run_id"]; 3].into_iter().chain([&of_job["run_id"]; 2]);
    assert_eq!(runs, expected.cloned().collect::<Vec<_>>());
    let ends = recorded(&audit, "job_run_ended");
    assert_eq!(ends.len(), 2);
    assert_eq!(ends[0]["job_id"], of_command["job_id"]);
    assert_eq!(ends[0]["usage"], of_command["inference"]);
}

#[test]
fn call_interrupted_with_its_node_is_recorded_as_begun_and_not_ended() {
    let world = World::new(crate::BELLJAR);
    let slow = Answer::text("hello").after(Duration::from_secs(60));
    let server = ModelServer::start(Script::queue([Answer::text("hello"), slow]));
    let config = configure(&world, &server);
    let mut node = Node::start(&world, &["--config", &config]);
    node.submit(calling_command(&["small", "other"], true));
    wait::until(|| server.request_count() == 2);
    node.killed_and_started();

    let state = world.path().join("state/node");
    let [begun, ended] =
        ["inference_call_begun", "inference_call"].map(|kind| recorded(&state.join("audit"), kind));
    assert_eq!((begun.len(), ended.len()), (2, 1));
    assert_eq!(begun[0]["call_id"], ended[0]["call_id"]);
    assert_eq!((&begun[1]["model"], &begun[1]["provider"]), (&json!("other"), &json!("house")), "{begun:?}");
    let list = |arguments: &[&str]| {
        let mut list = world.command(&["usage", "list"]);
        ProgramOutput::from(list.args(arguments).env("BELLJAR_STATE_DIR", &state).output().unwrap())
            .succeeded()
            .stdout
    };
    let totals: Value = serde_json::from_str(&list(&["--json"])).unwrap();
    assert_eq!((&totals["totals"]["calls"], &totals["totals"]["unended_calls"]), (&json!(1), &json!(1)));
    assert!(list(&[]).ends_with("; of 1 more no end is recorded\n"), "{}", list(&[]));
}

#[test]
fn job_that_did_not_request_models_has_none() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let node = Node::start(&world, &["--config", &config]);
    let told = node.run(&calling_command(&["small"], false)).json();
    assert_eq!(told["stdout"], "small ConnectionRefusedError\n", "{told}");
    assert!(told["inference"].is_null());
    assert!(server.requests().is_empty());
}

#[test]
fn models_that_a_node_does_not_have_are_refused_before_the_job_is_accepted() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let refused = |node: &Node<'_>, job: &Value, why: &str| {
        let answered = node.run(job);
        assert_eq!(answered.status, 403, "{}", answered.json());
        assert!(answered.json()["detail"].as_str().unwrap().contains(why), "{}", answered.json());
        assert_eq!(node.get(&format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap())).status, 404);
    };
    let with = Node::start(&world, &["--config", &config]);
    refused(&with, &calling_job(&[], &["none"]), "it has: other, small");
    drop(with);
    let without = Node::start(&world, &[]);
    refused(&without, &calling_job(&[], &["small"]), "$.sandbox.job_spec.inference.allowed_models");
    refused(&without, &calling_command(&[], true), "$.sandbox.use_inference");
}

#[test]
fn session_that_requested_models_calls_them_and_is_billed_at_its_end() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let node = Node::start(&world, &["--config", &config]);
    let request = |use_inference: bool| json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "use_inference": use_inference });
    let exec = |session: &str, models: &[&str]| {
        node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": calls(models) })).json()
    };
    let (asked, without) = (request(true), request(false));
    let (session, other) = (open(&node, &asked), open(&node, &without));
    assert_eq!(exec(&session, &["small"])["stdout"], "small hello\n");
    assert_eq!(exec(&session, &["none", "other"])["stdout"], "none model_not_allowed\nother hello\n");
    assert_eq!(exec(&other, &["small"])["stdout"], "small ConnectionRefusedError\n");
    assert!(node.get(&session).json()["inference"].is_null(), "the session still runs");

    let end = |session: &str| node.send(&HttpRequest::new("POST", &format!("{session}/end"))).json();
    let (ended, others) = (end(&session), end(&other));
    assert_eq!((&ended["inference"]["calls"], &others["inference"]), (&json!(2), &Value::Null), "{ended}");
    let audit = world.path().join("state/node/audit");
    let ends = recorded(&audit, "session_ended");
    assert_eq!((ends.len(), &ends[0]["session_id"]), (1, &asked["session_id"]));
    assert_eq!(ends[0]["usage"], ended["inference"]);
    let runs: Vec<_> = recorded(&audit, "inference_call").iter().map(|call| call["run_id"].clone()).collect();
    assert_eq!(runs, vec![ended["run_id"].clone(); 3]);
}

#[test]
fn session_that_requests_models_of_a_node_without_any_is_refused() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let request = json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "use_inference": true });
    let answered = node.post(super::sessions::SESSIONS, &request);
    assert_eq!(answered.status, 403, "{}", answered.json());
    assert!(answered.json()["detail"].as_str().unwrap().contains("$.use_inference"), "{}", answered.json());
}

#[test]
fn job_calls_models_of_its_named_source_or_is_refused() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let mut with: Value = serde_json::from_str(&world.read("config.yaml")).unwrap();
    let inference = &mut with["inference"];
    let away = json!({ "name": "away", "kind": "ollama", "url": "https://models.example" });
    inference["providers"].as_array_mut().unwrap().push(away);
    inference["models"].as_array_mut().unwrap().push(json!({ "name": "far", "provider": "away" }));
    world.write("config.yaml", with.to_string());
    let node = Node::start(&world, &["--config", &config]);
    let asking = |allowed: &[&str], source: &str| {
        let mut job = calling_job(&["small", "far"], allowed);
        job["sandbox"]["job_spec"]["inference"]["source"] = json!(source);
        node.run(&job)
    };
    let stdout =
        |told: &Value| told["sba_result"]["steps"][0]["result"]["stdout"].as_str().unwrap().to_owned();
    // This test's provider is on this machine, and the other one isn't.
    let told = asking(&["small", "far"], "worker").json();
    assert_eq!(stdout(&told), "small hello\nfar model_not_allowed\n", "{told}");
    let told = stdout(&asking(&["small", "far"], "api_egress").json());
    assert!(
        told.starts_with("small model_not_allowed\nfar ") && !told.contains("far model_not_allowed"),
        "{told}"
    );
    for (model, source) in [("far", "worker"), ("small", "api_egress")] {
        let refused = asking(&[model], source);
        assert_eq!(refused.status, 403, "{}", refused.json());
        let why = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(why.contains("$.sandbox.job_spec.inference.source") && why.contains(source), "{why}");
    }
}

/// Returns a job with an agent, and a model that directs it.
fn job_of_an_agent() -> (Value, Script) {
    let call = |tool: &str, arguments: Value| Answer::tool(ToolCall::new(tool, arguments));
    let way = [
        call("write_file", json!({ "path": "greeting.txt", "content": "hello" })),
        call("todo_update", json!({ "id": 1, "status": "done" })),
        call("finish", json!({ "summary": "it is written" })),
    ];
    let mut job = steps(&json!([]));
    let spec = &mut job["sandbox"]["job_spec"];
    spec["inference"] = json!({ "allowed_models": ["elsewhere", "small"] });
    let check = json!({ "text": "it greets", "check": { "argv": ["grep", "-q", "hello", "greeting.txt"] } });
    spec["context"] = json!({ "requirements": ["there is a greeting"], "acceptance_criteria": [check] });
    (job, Script::queue(way))
}

#[test]
fn agent_works_in_a_nodes_sandbox_with_the_models_of_its_job() {
    let world = World::new(crate::BELLJAR);
    let (job, script) = job_of_an_agent();
    let server = ModelServer::start(script);
    let config = configure(&world, &server);
    let node = Node::start(&world, &["--config", &config]);
    let told = node.run(&job).json();
    let result = &told["sba_result"];
    assert_eq!(result["status"], "success", "{told}");
    assert_eq!(
        (&result["agent"]["models"], &result["agent"]["turns"]),
        (&json!(["small"]), &json!(3)),
        "{told}"
    );
    assert_eq!(result["agent"]["verification"][0]["by"], "command");
    assert_eq!(told["inference"]["calls"], 3);
}
