//! A node that reloads its files (SIGHUP).

use super::bridged::HINTED;
use super::modeled::calls;
use super::processes_with;
use super::remote_tools::{call, envelope, list, names, token};
use super::tools::{job_of, told};
use crate::models::configure;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, TOKEN, command, script};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const OTHER_TOKEN: &str = "another-token-of-tests-0123456789";
const READ_AGAIN: &str = "were read again";

fn hang_up(node: &Node<'_>) {
    kill_process(Pid::from_raw(node.pid().cast_signed()).unwrap(), Signal::HUP).unwrap();
}

/// Sends the signal, and waits until the log contains that text once more.
fn reload(node: &Node<'_>, told: &str) {
    let before = node.log().matches(told).count();
    hang_up(node);
    wait::until(|| node.log().matches(told).count() > before);
}

fn calling(model: &str) -> Value {
    let argv = calls(&[model]);
    let mut job = command(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    job["sandbox"]["use_inference"] = json!(true);
    job
}

#[test]
fn hangup_ends_neither_the_node_nor_its_jobs() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let id = node.submit(script("read -r line < /dev/null; sleep 3; echo done"));
    node.wait_for(&id, "in_progress");
    for _ in 0..3 {
        hang_up(&node);
    }
    assert_eq!(node.wait_for(&id, "completed")["stdout"], "done\n");
    assert_eq!(node.stop(), Some(0));
}

#[test]
fn hangup_reloads_the_token_and_the_models() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let with_models = world.read("config.yaml");
    world.write("config.yaml", "node: {}\n");
    let node = Node::start(&world, &["--config", &config]);
    assert_eq!(node.run(&calling("small")).status, 403);
    world.write("config.yaml", &with_models);
    assert_eq!(node.run(&calling("small")).status, 403, "files are reloaded only on the signal");
    reload(&node, READ_AGAIN);
    assert_eq!(node.run(&calling("small")).json()["stdout"], "small hello\n");

    world.write("token", OTHER_TOKEN);
    reload(&node, READ_AGAIN);
    let with = |token: &str| {
        let asked =
            HttpRequest::new("GET", "/v1/worker/jobs").header("Authorization", &format!("Bearer {token}"));
        asked.send(node.address()).unwrap().status
    };
    assert_eq!((with(OTHER_TOKEN), with(TOKEN)), (200, 401));
}

#[test]
fn mistake_in_a_reloaded_file_changes_nothing() {
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    let node = Node::start(&world, &["--config", &config]);
    let before = world.read("config.yaml");
    world.write("config.yaml", "inference: {models: {small}}\n");
    reload(&node, "the previous configuration still applies");
    assert_eq!(node.run(&calling("small")).json()["stdout"], "small hello\n");
    world.write("config.yaml", before);
    world.write("token", "short");
    reload(&node, "the previous configuration still applies");
    assert_eq!(node.get("/v1/worker/jobs").status, 200);
}

#[test]
fn hangup_connects_to_the_mcp_servers_that_are_configured_now() {
    let world = World::new(crate::BELLJAR);
    let script = |name: &str| world.path().join(format!("servers/{name}.py")).display().to_string();
    let config = |name: &str| {
        world.write(&format!("servers/{name}.py"), HINTED);
        let server = json!({
            "name": name, "transport": "stdio", "command": "python3", "args": [script(name)],
            "lend": [world.path().join("servers")], "connect_timeout_seconds": 60,
        });
        world.write("config.yaml", json!({ "mcp": { "servers": [server] } }).to_string())
    };
    let path = config("former");
    let node = Node::start(&world, &["--config", path.to_str().unwrap()]);
    let planner = token(&node, json!({ "kind": "project_manager" }));
    let listed = || names(&list(&node, &planner));
    let has = |tool: &str| listed().iter().any(|name| name == tool);
    let called = |tool: &str| call(node.address(), &planner, tool, &json!({}));
    wait::until(|| has("mcp_former_look") && has("mcp_former_change"));
    let before = listed();
    assert_eq!(envelope(&called("mcp_former_look"))["status"], "ok");
    assert!(processes_with(&script("former")) > 0);

    config("latter");
    assert_eq!(listed(), before, "files are reloaded only on the signal");
    reload(&node, READ_AGAIN);
    wait::until(|| has("mcp_latter_look") && has("mcp_latter_change"));
    let mut expected: Vec<_> = before.iter().map(|name| name.replace("_former_", "_latter_")).collect();
    let mut after = listed();
    expected.sort_unstable();
    after.sort_unstable();
    assert_eq!(after, expected, "the node's own tools are unchanged");
    let done = called("mcp_latter_look");
    assert_eq!(
        (&envelope(&done)["status"], &envelope(&done)["data"]["content"]),
        (&json!("ok"), &json!("done"))
    );
    let gone = called("mcp_former_look");
    assert_eq!(envelope(&gone)["domain_code"], "not_found", "{gone}");
    wait::until(|| processes_with(&script("former")) == 0);
    assert!(processes_with(&script("latter")) > 0);
}

#[test]
fn hangup_applies_the_current_access_rules_to_agents() {
    let world = World::new(crate::BELLJAR);
    let config = |denied: &str| {
        let rules = format!("tool_access: {{agents: [{{name: reader, level: elevated{denied}}}]}}\n");
        world.write("config.yaml", rules)
    };
    let path = config("");
    let node = Node::start(&world, &["--config", path.to_str().unwrap()]);
    let list = r#"tell(call("artifact.list", task_id=TASK))"#;
    let listed = || {
        let mut job = job_of(None, list);
        job["agent_id"] = json!("reader");
        told(&node, &job).remove(0)
    };
    assert_eq!(listed()["status"], "ok");
    config(", denied: [artifact.list]");
    assert_eq!(listed()["status"], "ok", "files are reloaded only on the signal");
    reload(&node, READ_AGAIN);
    assert_eq!(listed()["domain_code"], "permission_denied");
}
