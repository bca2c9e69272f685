//! Sessions of agents: the effect of their level on the sandbox itself, and on a live session when the level is lowered.

use super::configure;
use crate::egress::HelloServer;
use crate::egress::git_server::GitServer;
use crate::node::remote_tools::{call, envelope, token};
use crate::node::sessions::{SESSIONS, open};
use crate::node::web;
use belljar_testkit::http::HttpResponse;
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};

const AGENTS: &str = "
    - {name: looker, level: sandboxed, autonomy: full, allowed: ['sandbox.*']}
    - {name: reader, level: restricted}
    - {name: local, level: elevated, sub_constraints: {git: local_only}}
    - {name: open, level: elevated, autonomy: full}
";

const EARNED: &str = "
egress: {rules: [{host: elsewhere.example}]}
trust: {strategy: milestone, initial_level: restricted, milestones: {restricted_to_standard: {tasks_completed: 1000}}}
";

fn house(rules: &str) -> String {
    format!("egress: {{{rules}}}\ntool_access:\n  default_level: sandboxed\n  agents:{AGENTS}")
}

/// Returns a session for that agent, with network access or without.
fn wanted(agent: &str, network: &str) -> Value {
    json!({
        "version": 1, "task_id": new_id(), "session_id": new_id(), "agent_id": agent, "network_policy": network,
    })
}

fn run(node: &Node<'_>, session: &str, argv: &[&str]) -> HttpResponse {
    node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": argv }))
}

/// Returns the output of a script in a session.
fn python(node: &Node<'_>, session: &str, script: &str) -> String {
    let told = run(node, session, &["python3", "-c", script]).json();
    assert!(told["stdout"].is_string(), "{told:#}");
    told["stdout"].as_str().unwrap().to_owned()
}

/// Returns the message of a refusal.
fn refusal(answered: &HttpResponse) -> String {
    assert_eq!(answered.status, 403, "{:#}", answered.json());
    assert_eq!(answered.json()["type"], "urn:cynodeai:error:authorization");
    answered.json()["detail"].as_str().unwrap().to_owned()
}

#[test]
fn agent_without_web_access_is_refused_a_web_session_and_has_no_web_in_others() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let port = server.address.port();
    let rules = format!("rules: [{}]", web::rule(port));
    let node = Node::start(&world, &["--config", &configure(&world, &house(&rules))]);
    let fetch = format!(
        "import os, urllib.request
for name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name, None)
try: print(urllib.request.urlopen('http://localhost:{port}/').read().decode(), end='')
except OSError as error: print(getattr(error, 'code', 'nothing'))"
    );
    assert_eq!(
        refusal(&node.post(SESSIONS, &wanted("looker", "restricted"))),
        "$.network_policy: the agent looker reaches nothing of the web (`network: none`): expected `none`"
    );
    let mut of_nobody = wanted("", "restricted");
    of_nobody.as_object_mut().unwrap().remove("agent_id");
    let told = refusal(&node.post(SESSIONS, &of_nobody));
    assert!(told.contains("a session without `agent_id`, at the level sandboxed"), "{told}");
    assert_eq!(node.get(SESSIONS).json()["sessions"], json!([]));
    let sealed = open(&node, &wanted("looker", "none"));
    assert_eq!(python(&node, &sealed, &fetch), "nothing\n");
    assert_eq!(server.asked(), 0);
    // The control: the same session for an agent with network access.
    let wide = wanted("open", "restricted");
    let session = open(&node, &wide);
    assert_eq!(python(&node, &session, &fetch), "hello\n");
    assert_eq!((server.asked(), &node.get(&session).json()["agent_id"]), (1, &json!("open")));
    let mut other = wide.clone();
    other["agent_id"] = json!("local");
    assert_eq!(node.post(SESSIONS, &other).status, 409, "the session belongs to one agent");
}

#[test]
fn session_starts_no_program_that_its_agents_level_does_not_list() {
    let world = World::new(crate::BELLJAR);
    let config = format!("{}node: {{sandbox: {{allowed_images: ['debian:12']}}}}\n", house("rules: []"));
    let node = Node::start(&world, &["--config", &configure(&world, &config)]);
    let listed = open(&node, &wanted("looker", "none"));
    let told = "$.command[0]: \"/bin/sh\" is none of the programs that the agent looker may start (`terminal`, `commands`): \
                git, node, python3";
    assert_eq!(refusal(&run(&node, &listed, &["/bin/sh", "-c", "true"])), told);
    let terminal = json!({ "version": 1, "cols": 80, "rows": 24 });
    assert_eq!(refusal(&node.post(&format!("{listed}/pty:open"), &terminal)), told);
    let around = "import shutil, subprocess, sys
shutil.copy(sys.executable, '/workspace/git')
for program in ('/bin/ls', '/bin/sh', '/workspace/git'):
    try: print(subprocess.run([program, '-c', 'true'], capture_output=True).returncode >= 0)
    except PermissionError: print('refused')";
    assert_eq!(python(&node, &listed, around), "refused\nrefused\nrefused\n");
    // The control.
    let all = open(&node, &wanted("open", "none"));
    assert_eq!(python(&node, &all, around), "True\nTrue\nTrue\n");
    assert_eq!(run(&node, &all, &["/bin/sh", "-c", "true"]).json()["status"], "completed");
    assert_eq!(node.post(&format!("{all}/pty:open"), &terminal).status, 201);

    // An image can't enforce it, and so it is refused.
    let mut of_image = wanted("looker", "none");
    of_image["image"] = json!("debian:12");
    let told = refusal(&node.post(SESSIONS, &of_image));
    assert!(
        told.starts_with("$.image: docker.io/library/debian:12, and the agent looker may start listed"),
        "{told}"
    );
}

#[test]
fn git_access_in_a_session_is_limited_by_the_agents_level() {
    let world = World::new(crate::BELLJAR);
    let server = GitServer::start();
    server.open_to_pushes();
    let (port, authority) = (server.port(), server.authority());
    let rules = format!("rules: [{}], authorities: {authority}", web::rule(port));
    let node = Node::start(&world, &["--config", &configure(&world, &house(&rules))]);
    let went = |agent: &str| {
        let session = open(&node, &wanted(agent, "restricted"));
        python(&node, &session, &server.cloning_and_pushing(agent))
    };
    assert_eq!(["local", "reader", "open"].map(went), ["", "cloned\n", "cloned\npushed\n"]);
    assert_eq!(["local", "reader", "open"].map(|branch| server.has_branch(branch)), [false, false, true]);
}

#[test]
fn session_ends_when_its_agent_loses_permissions_it_uses() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, EARNED)]);
    let say = |path: &str, body: Value| {
        let answered = node.post(&format!("/v1/worker/trust/worker/{path}"), &body);
        assert!([200, 201].contains(&answered.status), "{:#}", answered.json());
    };
    let hired = json!({ "type": "agent_hired" });
    say("events", json!({ "version": 1, "event_id": new_id(), "event": hired }));
    let lost = open(&node, &wanted("worker", "restricted"));
    let kept = open(&node, &wanted("worker", "none"));
    assert_eq!(python(&node, &lost, "print(1)"), "1\n");
    say("level", json!({ "version": 1, "level": "sandboxed", "reason": "not by itself" }));
    // From then on it accepts no program, and it is gone soon.
    let after = run(&node, &lost, &["python3", "-c", "print(2)"]).status;
    assert!([403, 404].contains(&after), "{after}");
    until(|| node.get(&lost).status == 404);
    assert_eq!(node.post(SESSIONS, &wanted("worker", "restricted")).status, 403);
    // The control.
    assert_eq!(python(&node, &kept, "print(3)"), "3\n");
    say("level", json!({ "version": 1, "level": "restricted", "reason": "again" }));
    let again = open(&node, &wanted("worker", "restricted"));
    assert_eq!(python(&node, &again, "print(4)"), "4\n");
}

#[test]
fn planner_cannot_run_commands_in_the_sandbox_of_a_more_privileged_agent() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--config", &configure(&world, &house("rules: []"))]);
    let of = |agent: &str| token(&node, json!({ "kind": "project_manager", "agent_id": agent }));
    let (wide, narrow) = (of("open"), of("looker"));
    let ids = || json!({ "task_id": new_id(), "job_id": new_id() });
    let asked = |token: &str, tool: &str, ids: &Value, more: Value| {
        let mut arguments = ids.clone();
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        envelope(&call(node.address(), token, tool, &arguments)).clone()
    };
    let script = json!({ "argv": ["python3", "-c", "print(1)"] });
    let file = json!({ "path": "/workspace/a", "content_bytes_base64": "YQ==" });
    let [own, others] = [ids(), ids()];
    for (token, ids) in [(&narrow, &own), (&wide, &others)] {
        assert_eq!(asked(token, "sandbox.create", ids, json!({}))["status"], "ok");
        let done = asked(token, "sandbox.exec", ids, script.clone());
        assert_eq!(done["status"], "ok", "{done}");
    }
    for (tool, more) in [("sandbox.exec", &script), ("sandbox.put_file", &file)] {
        let refused = asked(&narrow, tool, &others, more.clone());
        assert_eq!(refused["domain_code"], "permission_denied", "{refused}");
        // The control: an agent with all of these permissions may do so in either session.
        assert_eq!(asked(&wide, tool, &others, more.clone())["status"], "ok");
    }
    assert_eq!(asked(&wide, "sandbox.exec", &own, script)["status"], "ok");
    // In its own session the agent's level applies as before.
    let shell = asked(&narrow, "sandbox.exec", &own, json!({ "argv": ["sh", "-c", "true"] }));
    assert_eq!(shell["domain_code"], "permission_denied", "{shell}");
}
