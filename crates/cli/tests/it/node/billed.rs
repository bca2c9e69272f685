//! A node's usage reports of its jobs' and sessions' model calls: the sums of the call records, and the accounts that they
//! are for.

use super::remote_tools::{call, envelope, token};
use super::sessions::open;
use crate::models::{configure, recorded};
use crate::usage_totals::{cheap_models, program};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, TOKEN, command, new_id, steps};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns a job with a command that makes this many whole calls, and disconnects during this many others.
pub(super) fn calling((whole, cut): (usize, usize)) -> Value {
    let argv = program(whole, cut);
    let mut job = command(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    job["sandbox"]["use_inference"] = json!(true);
    job
}

/// Returns the output of `usage list` for a run of a node.
pub(super) fn listed(world: &World, run: &Value) -> Value {
    let mut list = world.command(&["usage", "list", "--json", "--run", run.as_str().unwrap()]);
    let state = world.path().join("state/node");
    ProgramOutput::from(list.env("BELLJAR_STATE_DIR", state).output().unwrap()).succeeded().json()
}

/// Returns the usage in the audit record of a run's end.
pub(super) fn ended(world: &World, kind: &str, (member, id): (&str, &Value)) -> Value {
    let ends = recorded(&world.path().join("state/node/audit"), kind);
    let end = ends.iter().find(|end| end[member] == *id).unwrap_or_else(|| panic!("{id}: {ends:?}"));
    end["usage"].clone()
}

#[test]
fn job_session_and_planner_job_report_usage_sums_and_null_if_unknown() {
    let (world, server) = (World::new(crate::BELLJAR), cheap_models());
    let node = Node::start(&world, &["--config", &configure(&world, &server)]);
    let exact = json!({
        "calls": 5, "input_tokens": 55, "output_tokens": 35, "cost_usd": "0.000002",
        "degraded_calls": 0, "uncounted_calls": 0, "unended_calls": 0,
    });
    let of_job = node.run(&calling((5, 0))).json();
    assert_eq!(of_job["inference"], exact, "{of_job}");
    assert_eq!(ended(&world, "job_run_ended", ("job_id", &of_job["job_id"])), exact);
    assert_eq!(listed(&world, &of_job["run_id"])["totals"], exact);

    let cut = node.run(&calling((0, 1))).json();
    let unknown = json!({
        "calls": 1, "input_tokens": null, "output_tokens": null, "cost_usd": null,
        "degraded_calls": 1, "uncounted_calls": 1, "unended_calls": 0,
    });
    assert_eq!(cut["inference"], unknown, "{cut}");
    let id = cut["job_id"].as_str().unwrap();
    let shown = world.run(&[
        "job",
        "--node",
        &format!("http://{}", node.address()),
        "--token-file",
        "token",
        "show",
        id,
    ]);
    assert!(shown.stdout.contains("models      1 call, ? + ? tokens, ? USD"), "{shown:?}");

    let request = json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "use_inference": true });
    let session = open(&node, &request);
    let done =
        node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": program(5, 0) })).json();
    assert_eq!(done["stdout"], "called\n", "{done}");
    let of_session = node.send(&HttpRequest::new("POST", &format!("{session}/end"))).json();
    assert_eq!(of_session["inference"], exact, "{of_session}");
    assert_eq!(ended(&world, "session_ended", ("session_id", &request["session_id"])), exact);

    let job = calling((5, 0));
    let planner = token(&node, json!({ "kind": "project_manager" }));
    let wanted = json!({ "task_id": job["task_id"], "job_id": job["job_id"], "sandbox": job["sandbox"] });
    let answer = call(node.address(), &planner, "job.submit", &wanted);
    assert_eq!(envelope(&answer)["status"], "ok", "{answer}");
    let of_planner = node.wait_for(job["job_id"].as_str().unwrap(), "completed");
    assert_eq!(of_planner["inference"], exact, "{of_planner}");
}

/// Returns the metadata header of the last call.
fn metadata(server: &ModelServer) -> Value {
    let requests = server.requests();
    let said = requests.last().and_then(|request| request.header("x-litellm-spend-logs-metadata"));
    serde_json::from_str(said.unwrap()).unwrap()
}

#[test]
fn calls_of_jobs_and_sessions_carry_the_user_and_trace_of_their_request() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let node = Node::start(&world, &["--config", &configure(&world, &server)]);
    let asked = |target: &str, document: &Value, parent: Option<&str>| {
        let asked = HttpRequest::new("POST", target).header("Authorization", &format!("Bearer {TOKEN}"));
        let asked = parent.iter().fold(asked, |asked, parent| asked.header("traceparent", parent));
        asked.json(document.to_string()).send(node.address()).unwrap()
    };
    let run = |mut job: Value, parent: Option<&str>| {
        job["version"] = json!(1);
        job["wait"] = json!(true);
        asked("/v1/worker/jobs:run", &job, parent).json()
    };
    let mut job = calling((1, 0));
    job["user_id"] = json!("ada");
    let told = run(job.clone(), Some(PARENT));
    let expected = |told: &Value, trace: &str| {
        json!({
            "run_id": told["run_id"], "attempt": 1, "graph_id": "sandbox:job", "session_id": job["job_id"],
            "user_id": "ada", "trace_user_id": "ada", "existing_trace_id": trace,
        })
    };
    assert_eq!(metadata(&server), expected(&told, TRACE), "{told}");
    // A repeated submission with another trace returns the first job.
    assert_eq!(run(job.clone(), None)["run_id"], told["run_id"]);
    // Without a trace of the caller the node derives one from the job; an unparsable one is ignored.
    let mut other = calling((1, 0));
    other["user_id"] = json!("ada");
    let told = run(other.clone(), Some("00-zero"));
    let said = metadata(&server);
    let trace = other["job_id"].as_str().unwrap().replace('-', "");
    assert_eq!((&said["run_id"], &said["existing_trace_id"]), (&told["run_id"], &json!(trace)), "{said}");
    // The trace in the document takes precedence over the header.
    let mut own = calling((1, 0));
    own["traceparent"] = json!(PARENT.replace(TRACE, &"a".repeat(32)));
    run(own, Some(PARENT));
    assert_eq!(metadata(&server)["existing_trace_id"], "a".repeat(32));
    let mut bad = calling((1, 0));
    bad["traceparent"] = json!("00-zero");
    assert!(run(bad, None).to_string().contains("$.traceparent"));

    let request = json!({
        "version": 1, "task_id": new_id(), "session_id": new_id(), "use_inference": true, "user_id": "ada",
    });
    let opened = asked(super::sessions::SESSIONS, &request, Some(PARENT));
    assert_eq!(opened.status, 201, "{}", opened.json());
    let session = format!("{}/{}", super::sessions::SESSIONS, request["session_id"].as_str().unwrap());
    node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": program(1, 0) }));
    let expected = json!({
        "run_id": opened.json()["run_id"], "attempt": 1, "graph_id": "sandbox:session", "user_id": "ada",
        "session_id": request["session_id"], "trace_user_id": "ada", "existing_trace_id": TRACE,
    });
    assert_eq!(metadata(&server), expected);
}

#[test]
fn missing_credential_stops_a_node_at_start_and_later_each_run_that_needs_it() {
    let (world, server) = (World::new(crate::BELLJAR), cheap_models());
    let config = configure(&world, &server);
    let key = world.path().join("key");
    let gone = world.path().join("gone");
    std::fs::rename(&key, &gone).unwrap();
    let log = Node::refused(&world, &["--config", &config]);
    assert!(log.contains("the credential of the provider") && log.contains("house"), "{log}");
    std::fs::rename(&gone, &key).unwrap();
    let node = Node::start(&world, &["--config", &config]);
    assert_eq!(node.run(&calling((1, 0))).json()["status"], "completed");
    std::fs::rename(&key, &gone).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    let told = node.run(&calling((1, 0))).json();
    assert_eq!((&told["failure_code"], &told["stdout"]), (&json!("node_failure"), &json!("")), "{told}");
    let why = "this node has no credential for the provider \"house\" of these models";
    assert!(told["failure_message"].as_str().unwrap().contains(why), "{told}");
    assert!(node.log().contains("models can't be called"), "{}", node.log());
    let request = json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "use_inference": true });
    let refused = node.post(super::sessions::SESSIONS, &request);
    assert_eq!(refused.status, 503, "{}", refused.json());
    assert!(refused.json()["detail"].as_str().unwrap().contains(why), "{}", refused.json());
    // The control: a job without model calls needs no credential.
    assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
}

#[test]
fn job_whose_provider_is_down_reports_that_and_not_an_unknown_model() {
    let world = World::new(crate::BELLJAR);
    let config = configure(&world, &cheap_models());
    let node = Node::start(&world, &["--config", &config]);
    let mut job = steps(&json!([]));
    let spec = &mut job["sandbox"]["job_spec"];
    spec["inference"] = json!({ "allowed_models": ["small"] });
    spec["context"] = json!({ "requirements": ["there is a greeting"] });
    let told = node.run(&job).json();
    let message = told["failure_message"].as_str().unwrap();
    assert!(message.contains("this model's provider can't be reached"), "{told}");
    assert!(!message.contains("/api/chat") && !message.contains("not among the available models"), "{told}");
}
