//! A node's responses about a job: the cause of a failure, and the job that they are about.

use super::sessions::SESSIONS;
use belljar_testkit::foreign_root::Docker;
use belljar_testkit::node::{Node, command, new_id, script, steps};
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Images that the test makes: one declares a volume.
const WITH: &str = "belljar/with-volume-of-node";
const WITHOUT: &str = "belljar/without-volume-of-node";

fn detail(told: &Value) -> &str {
    told["detail"].as_str().unwrap_or_default()
}

#[test]
fn request_cannot_set_the_variables_of_the_nodes_own_endpoints() {
    let world = World::new(crate::BELLJAR);
    world.write("config.yaml", "egress: {rules: []}\n");
    let node = Node::start(&world, &["--config", "config.yaml"]);
    for name in ["HTTP_PROXY", "https_proxy", "BELLJAR_STATUS_SOCKET", "SBA_JOB_STATUS_URL"] {
        let mut job = command(&["true"]);
        job["sandbox"]["network_policy"] = json!("restricted");
        job["sandbox"]["env"] = json!({ name: "http://127.0.0.1:1" });
        let told = node.run(&job);
        assert_eq!(told.status, 400, "{name} {}", told.json());
        assert!(detail(&told.json()).contains(&format!("$.sandbox.env.{name}")), "{}", told.json());
        assert_eq!(node.get(&format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap())).status, 404);
    }
    let set = json!({ "argv": ["true"], "env": { "MCP_GATEWAY_URL": "http://127.0.0.1:1" } });
    let told = node.run(&steps(&json!([{ "type": "run_command", "args": set }])));
    assert_eq!(told.status, 400, "{}", told.json());
    assert!(detail(&told.json()).contains("steps[0]: env.MCP_GATEWAY_URL"), "{}", told.json());
    let mut session = json!({ "version": 1, "task_id": new_id(), "session_id": new_id() });
    session["network_policy"] = json!("restricted");
    session["env"] = json!({ "HTTP_PROXY": "http://127.0.0.1:1" });
    let told = node.post(SESSIONS, &session);
    assert_eq!(told.status, 400, "{}", told.json());
    // The control: without that endpoint the variable has the request's value, and other variables always have it.
    let mut job = script("echo $HTTP_PROXY $OTHER");
    job["sandbox"]["env"] = json!({ "HTTP_PROXY": "http://own", "OTHER": "other" });
    assert_eq!(node.run(&job).json()["stdout"], "http://own other\n");
}

#[test]
fn ids_in_upper_case_are_the_same_ids() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let of_runner = steps(&json!([{ "type": "run_command", "args": { "argv": ["true"] } }]));
    for mut job in [script("echo once"), of_runner] {
        let first = node.run(&job);
        assert_eq!(first.status, 200, "{}", first.json());
        for name in ["task_id", "job_id"] {
            job[name] = json!(job[name].as_str().unwrap().to_uppercase());
        }
        let again = node.run(&job);
        assert_eq!((again.status, again.json()), (200, first.json()));
        // The control: another job with this id is refused.
        job["sandbox"]["timeout_seconds"] = json!(7);
        assert_eq!(node.run(&job).status, 409);
    }
    let mut session = json!({ "version": 1, "task_id": new_id(), "session_id": new_id() });
    assert_eq!(node.post(SESSIONS, &session).status, 201);
    session["session_id"] = json!(session["session_id"].as_str().unwrap().to_uppercase());
    assert_eq!(node.post(SESSIONS, &session).status, 200);
}

#[test]
fn missing_program_is_named_in_the_failure_without_blaming_the_sandbox() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let told = node.run(&command(&["nosuch"])).json();
    assert_eq!((&told["failure_code"], &told["exit_code"]), (&json!("step_failed"), &json!(127)));
    let message = told["failure_message"].as_str().unwrap();
    assert!(message.contains("can't run \"nosuch\"") && message.contains("PATH"), "{message}");
    assert!(!message.contains("stage") && !message.contains("sandbox can't"), "{message}");
}

#[test]
fn job_timeout_message_states_the_allowed_time() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": ["sleep", "60"] } }]));
    job["sandbox"]["timeout_seconds"] = json!(2);
    let told = node.run(&job).json();
    assert_eq!(told["failure_code"], "timeout", "{told}");
    let message = told["failure_message"].as_str().unwrap();
    assert!(message.contains("exceeded its time limit of 2 s"), "{message}");
}

#[test]
fn image_that_declares_volumes_is_refused_before_the_job_is_accepted() {
    let name = "image_that_declares_volumes_is_refused_before_the_job_is_accepted";
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip(name, &reason),
    };
    let world = World::new(crate::BELLJAR);
    let archive = world.write("empty.tar", [0_u8; 1024]).display().to_string();
    engine.command(&["import", "--change=VOLUME /data", &archive, WITH]).unwrap();
    engine.command(&["import", &archive, WITHOUT]).unwrap();
    let config = json!({ "node": { "sandbox": { "allowed_images": [WITH, WITHOUT] } } });
    world.write("config.yaml", config.to_string());
    let socket = engine.socket().display().to_string();
    let node = Node::start(&world, &["--config", "config.yaml", "--docker-socket", &socket]);
    let mut job = script("true");
    job["sandbox"]["image"] = json!(WITH);
    let told = node.run(&job);
    assert_eq!(told.status, 403, "{}", told.json());
    assert!(detail(&told.json()).contains("/data"), "{}", told.json());
    assert_eq!(node.get(&format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap())).status, 404);
    let mut session = json!({ "version": 1, "task_id": new_id(), "session_id": new_id() });
    session["image"] = json!(WITH);
    assert_eq!(node.post(SESSIONS, &session).status, 403);
    // The control: an image without volumes is accepted, and the job fails because the image is empty.
    job["sandbox"]["image"] = json!(WITHOUT);
    assert_eq!(node.run(&job).status, 200);
    engine.command(&["rmi", WITH, WITHOUT]).unwrap();
}
