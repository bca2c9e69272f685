//! Network access of a node's jobs.

use super::sessions::open;
use crate::egress::HelloServer;
use crate::models::recorded;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, new_id, script, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Returns a rule for one port of this machine.
pub(super) fn rule(port: u16) -> String {
    format!("{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}")
}

/// Writes a configuration with these rules, and returns its path.
pub(super) fn configure(world: &World, rules: &str) -> String {
    world.write("config.yaml", format!("egress: {{rules: [{rules}]}}\n")).display().to_string()
}

/// Returns a shell command that requests a page through the proxy, also where a client would bypass it for the name.
pub(super) fn fetching(port: u16) -> String {
    format!("unset NO_PROXY no_proxy; curl -sSf http://localhost:{port}/")
}

/// Returns a job with a command and that network policy.
pub(super) fn command(text: &str, network_policy: &str) -> Value {
    let mut job = script(text);
    job["sandbox"]["network_policy"] = json!(network_policy);
    job
}

/// Returns a job for the runner with or without network access, with a script for each step.
pub(super) fn job(scripts: &[&str], ext_net_allowed: bool) -> Value {
    let step = |text: &&str| json!({ "type": "run_command", "args": { "argv": ["sh", "-c", text] } });
    let mut job = steps(&json!(scripts.iter().map(step).collect::<Vec<_>>()));
    job["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(ext_net_allowed);
    job
}

#[test]
fn jobs_with_web_access_reach_what_the_policy_allows_and_each_request_is_recorded() {
    let (world, server, other) = (World::new(crate::BELLJAR), HelloServer::start(), HelloServer::start());
    let config = configure(&world, &rule(server.address.port()));
    let node = Node::start(&world, &["--config", &config]);
    let (there, beside) = (fetching(server.address.port()), fetching(other.address.port()));

    let of_command = node.run(&command(&format!("{there}; {beside}"), "restricted")).json();
    assert_eq!(of_command["stdout"], "hello\n", "{of_command}");
    let of_job = node.run(&job(&[&there], true)).json();
    assert_eq!(of_job["sba_result"]["steps"][0]["result"]["stdout"], "hello\n", "{of_job}");
    assert_eq!((server.asked(), other.asked()), (2, 0));
    assert_eq!((&of_command["web"]["passages"], &of_job["web"]["passages"]), (&json!(1), &json!(1)));
    assert_eq!(of_job["web"], of_job["sba_result"]["web"]);
    assert_eq!(of_job["web"]["received_bytes"], 63, "its head and its body: {of_job}");

    let audit = world.path().join("state/node/audit");
    let runs: Vec<_> = recorded(&audit, "egress").iter().map(|passage| passage["run_id"].clone()).collect();
    let expected = [&of_command["run_id"], &of_command["run_id"], &of_job["run_id"]];
    assert_eq!(runs, expected.map(Clone::clone));
    let ends = recorded(&audit, "egress_run_ended");
    assert_eq!((&ends[1]["job_id"], &ends[1]["usage"]), (&of_job["job_id"], &of_job["web"]));
}

/// Prints every sign of a proxy, seen from inside.
const LOOK: &str = "env | grep -ci proxy; ls -d /web-sock 2>/dev/null | grep -c web; \
                    python3 -c 'import socket\ntry: socket.create_connection((\"127.0.0.1\", 3128), 5); print(\"there\")\n\
                    except ConnectionRefusedError: print(\"refused\")'";

#[test]
fn job_without_web_access_has_no_proxy() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let config = configure(&world, &rule(server.address.port()));
    let node = Node::start(&world, &["--config", &config]);
    let seen = |job: &Value| {
        let told = node.run(job).json();
        let step = told["sba_result"]["steps"][0]["result"]["stdout"].as_str();
        let stdout = step.unwrap_or_else(|| told["stdout"].as_str().unwrap()).to_owned();
        (stdout, told["web"].is_object())
    };
    for job in [script(LOOK), command(LOOK, "none"), job(&[LOOK], false)] {
        assert_eq!(seen(&job), ("0\n0\nrefused\n".to_owned(), false));
    }
    // The control.
    for job in [command(LOOK, "restricted"), job(&[LOOK], true)] {
        let (stdout, has_web) = seen(&job);
        assert!(stdout.ends_with("\n1\nthere\n") && !stdout.starts_with("0\n") && has_web, "{stdout}");
    }
}

#[test]
fn denied_job_is_ext_net_required_and_names_the_missing_rule() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let config = configure(&world, &rule(server.address.port()));
    let node = Node::start(&world, &["--config", &config]);
    let denied = fetching(1);

    let of_job = node.run(&job(&["true", &denied], true)).json();
    assert_eq!((&of_job["status"], &of_job["failure_code"]), (&json!("failed"), &json!("ext_net_required")));
    let message = of_job["failure_message"].as_str().unwrap();
    assert!(message.contains("localhost:1,") && !message.contains("rule"), "{message}");
    assert_eq!(of_job["sba_result"]["failure_code"], "ext_net_required");
    assert_eq!(of_job["sba_result"]["steps"][1]["error"]["type"], "ext_net_required");
    let expected = json!({ "host": "localhost", "port": 1, "reason": "no_rule_for_port",
        "rule_needed": "{host: \"localhost\", ports: [1], methods: [GET]}" });
    assert_eq!(of_job["web"]["denied"], json!([expected]), "{of_job}");

    let of_command = node.run(&command(&denied, "restricted")).json();
    assert_eq!(of_command["failure_code"], "ext_net_required", "{of_command}");
    assert_eq!((&of_command["web"]["denied"], &of_command["exit_code"]), (&json!([expected]), &json!(22)));
}

#[test]
fn unrelated_denial_is_not_reported_as_the_failure_cause() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let config = configure(&world, &rule(server.address.port()));
    let node = Node::start(&world, &["--config", &config]);
    let denied = format!("{} || true", fetching(1));
    let code = |job: &Value| node.run(job).json()["failure_code"].clone();
    // Denied in another step than the one that failed.
    assert_eq!(code(&job(&[&denied, "exit 3"], true)), "step_failed");
    // No request was made, whatever the output is.
    let printed = "echo 'curl: (6) Could not resolve host: pkgs.example' >&2; exit 6";
    assert_eq!(code(&job(&[printed], true)), "step_failed");
    // Denied, and not failed.
    let told = node.run(&job(&[&denied], true)).json();
    assert_eq!((&told["status"], &told["web"]["denied"][0]["port"]), (&json!("completed"), &json!(1)));
    // The controls: denied in the step that failed, and the same output without a proxy that could have seen a request.
    assert_eq!(code(&job(&["true", &format!("{denied}; exit 3")], true)), "ext_net_required");
    assert_eq!(code(&job(&[printed], false)), "ext_net_required");
}

#[test]
fn node_without_a_policy_denies_all_requests_and_names_the_missing_setting() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let node = Node::start(&world, &[]);
    let told = node.run(&job(&[&fetching(server.address.port())], true)).json();
    assert_eq!(told["failure_code"], "ext_net_required", "{told}");
    assert_eq!(told["web"]["denied"][0]["reason"], "no_rules");
    assert_eq!(server.asked(), 0);
}

#[test]
fn request_that_both_allows_and_forbids_the_web_is_refused() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut wanted = job(&["true"], true);
    wanted["sandbox"]["network_policy"] = json!("none");
    let answered = node.run(&wanted);
    assert_eq!(answered.status, 400, "{}", answered.json());
    assert!(answered.json()["detail"].as_str().unwrap().contains("$.sandbox.network_policy"));
    // The control.
    wanted["sandbox"]["network_policy"] = json!("restricted");
    assert_eq!(node.run(&wanted).status, 200);
}

#[test]
fn session_reaches_the_web_only_if_it_requested_access() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let config = configure(&world, &rule(server.address.port()));
    let node = Node::start(&world, &["--config", &config]);
    let request = |policy: Value| json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "network_policy": policy });
    let exec = |session: &str, text: &str| {
        let command = json!({ "version": 1, "command": ["sh", "-c", text] });
        node.post(&format!("{session}/exec"), &command).json()
    };
    let (session, other) = (open(&node, &request(json!("restricted"))), open(&node, &request(json!("none"))));
    assert_eq!(exec(&session, &fetching(server.address.port()))["stdout"], "hello\n");
    exec(&session, &fetching(1));
    assert_eq!(exec(&other, LOOK)["stdout"], "0\n0\nrefused\n");
    let end = |session: &str| node.send(&HttpRequest::new("POST", &format!("{session}/end"))).json();
    let (ended, others) = (end(&session), end(&other));
    assert_eq!(
        (&ended["web"]["passages"], &ended["web"]["denied"][0]["port"]),
        (&json!(1), &json!(1)),
        "{ended}"
    );
    assert!(others["web"].is_null(), "{others}");
    let ends = recorded(&world.path().join("state/node/audit"), "egress_run_ended");
    assert_eq!((ends.len(), &ends[0]["usage"]), (1, &ended["web"]));
}
