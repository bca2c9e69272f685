//! Sandboxes that stay for many commands.

use super::processes_with;
use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::node::{Node, TOKEN, new_id};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(super) const SESSIONS: &str = "/v1/worker/sessions";

fn request() -> Value {
    json!({ "version": 1, "task_id": new_id(), "session_id": new_id() })
}

/// Opens a session, and returns its path.
pub(super) fn open(node: &Node<'_>, request: &Value) -> String {
    let answered = node.post(SESSIONS, request);
    assert_eq!(answered.status, 201, "{}", answered.json());
    format!("{SESSIONS}/{}", request["session_id"].as_str().unwrap())
}

fn exec(node: &Node<'_>, session: &str, script: &str) -> HttpResponse {
    node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": ["sh", "-c", script] }))
}

/// Leaves a process running in the background.
fn leave_running(node: &Node<'_>, session: &str, marker: &str) {
    let told = exec(node, session, &format!("setsid sh -c 'sleep 300; : {marker}' >/dev/null 2>&1 &")).json();
    assert_eq!(told["status"], "completed", "{told}");
    // The control: it runs.
    wait::until(|| processes_with(marker) > 0);
}

#[test]
fn files_persist_between_commands_of_a_session_and_not_across_sessions() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut wanted = request();
    wanted["env"] = json!({ "WORD": "said" });
    let session = open(&node, &wanted);
    let told = exec(&node, &session, "echo $WORD > kept; echo err >&2; exit 3").json();
    assert_eq!((&told["status"], &told["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((&told["stderr"], &told["task_id"]), (&json!("err\n"), &wanted["task_id"]));
    let told = exec(&node, &session, "cat kept; echo $CYNODE_SESSION_ID; pwd").json();
    let expected = format!("said\n{}\n/workspace\n", wanted["session_id"].as_str().unwrap());
    assert_eq!((&told["stdout"], &told["status"]), (&json!(expected), &json!("completed")));
    let other = open(&node, &request());
    assert_eq!(exec(&node, &other, "ls").json()["stdout"], "");
    // No file of the host, and no network.
    let sealed =
        exec(&node, &session, "cat /etc/shadow; ip -o link 2>/dev/null | grep -v lo: ; kill -9 1; echo end");
    assert_eq!(sealed.json()["stdout"], "end\n");

    let shown = node.get(&session).json();
    assert_eq!((&shown["status"], &shown["running"]), (&json!("open"), &json!(0)));
    assert_eq!(node.get(SESSIONS).json()["sessions"].as_array().unwrap().len(), 2);
    let containers =
        node.get(&format!("/v1/worker/telemetry/containers?task_id={}", wanted["task_id"].as_str().unwrap()));
    assert_eq!(containers.json()["containers"][0]["container_id"], shown["run_id"]);
}

#[test]
fn ended_session_is_removed_with_everything_in_it() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = open(&node, &request());
    let marker = format!("session-{}", new_id());
    leave_running(&node, &session, &marker);
    let is_there = || processes_with(&marker) > 0;
    assert!(is_there());
    let answered = node.send(&HttpRequest::new("POST", &format!("{session}/end")));
    assert_eq!((answered.status, &answered.json()["status"]), (200, &json!("ended")));
    assert!(!is_there());
    assert_eq!(exec(&node, &session, "true").status, 404);
    assert_eq!(node.get(&session).status, 404);
    // A new session with this id is a different one.
    assert_eq!(node.send(&HttpRequest::new("POST", &format!("{session}/end"))).status, 404);
}

#[test]
fn command_is_killed_at_its_timeout_or_when_its_client_disconnects() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = open(&node, &request());
    let request =
        json!({ "version": 1, "command": ["sh", "-c", "echo begun; sleep 60"], "timeout_seconds": 1 });
    let told = node.post(&format!("{session}/exec"), &request).json();
    assert_eq!((&told["status"], &told["stdout"]), (&json!("timeout"), &json!("begun\n")));
    assert_eq!(told["failure_code"], "timeout");

    let body = json!({ "version": 1, "command": ["sleep", "60"] }).to_string();
    let mut client = TcpStream::connect(node.address()).unwrap();
    let head = format!(
        "POST {session}/exec HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).unwrap();
    wait::until(|| node.get(&session).json()["running"] == 1);
    drop(client);
    wait::until(|| node.get(&session).json()["running"] == 0);
    // The session itself goes on.
    assert_eq!(exec(&node, &session, "echo on").json()["stdout"], "on\n");
}

#[test]
fn session_ends_at_its_idle_timeout_and_at_its_maximum_duration() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut idle = request();
    idle["idle_timeout_seconds"] = json!(2);
    let idle = open(&node, &idle);
    let mut short = request();
    short["max_lifetime_seconds"] = json!(3);
    let short = open(&node, &short);
    let begun = Instant::now();
    // Commands keep it from being idle, but not from reaching its maximum age.
    while begun.elapsed() < Duration::from_millis(2_500) {
        assert_eq!(exec(&node, &idle, "true").status, 200);
        assert_eq!(exec(&node, &short, "true").status, 200);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(exec(&node, &idle, "sleep 2.5").json()["status"], "completed", "a running command is use");
    assert_eq!(node.get(&short).status, 404);
    wait::until(|| node.get(&idle).status == 404);
}

#[test]
fn repeated_create_request_returns_the_same_session_and_a_different_one_is_refused() {
    let world = World::new(crate::BELLJAR);
    let config = world.write("config.yaml", "node: { sessions: { max: 2 } }\n");
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    let wanted = request();
    let session = open(&node, &wanted);
    let again = node.post(SESSIONS, &wanted);
    assert_eq!((again.status, &again.json()["run_id"]), (200, &node.get(&session).json()["run_id"]));
    let mut other = wanted.clone();
    other["env"] = json!({ "A": "B" });
    assert_eq!(node.post(SESSIONS, &other).status, 409);
    for (name, value) in [("task_id", new_id()), ("session_id", new_id())] {
        let mut wrong = json!({ "version": 1, "command": ["true"] });
        wrong[name] = json!(value);
        assert_eq!(node.post(&format!("{session}/exec"), &wrong).status, 409, "{name}");
        wrong.as_object_mut().unwrap().remove("command");
        assert_eq!(node.post(&format!("{session}/end"), &wrong).status, 409, "{name}");
    }
    open(&node, &request());
    let full = node.post(SESSIONS, &request());
    assert_eq!((full.status, full.header("retry-after")), (503, Some("1")));
    let mistaken = node
        .post(SESSIONS, &json!({ "version": 1, "session_id": "x", "idle_timeout_seconds": 0, "more": 1 }));
    let text = mistaken.json().to_string();
    for place in ["$.task_id", "$.session_id", "$.idle_timeout_seconds", "$.more"] {
        assert!(text.contains(place), "{place}: {text}");
    }
    let nothing =
        node.post(&format!("{session}/exec"), &json!({ "version": 1, "command": ["/no/such/program"] }));
    let told = nothing.json();
    assert_eq!((&told["status"], &told["exit_code"]), (&json!("failed"), &json!(127)));
    assert!(told["failure_message"].as_str().unwrap().contains("/no/such/program"), "{told}");
}

#[test]
fn sessions_end_with_their_node_and_with_stop_all() {
    let world = World::new(crate::BELLJAR);
    let mut node = Node::start(&world, &[]);
    let marker = format!("session-{}", new_id());
    for kill in [true, false] {
        let session = open(&node, &request());
        leave_running(&node, &session, &marker);
        if kill {
            node.killed_and_started();
        } else {
            let told = node
                .send(&HttpRequest::new("POST", "/v1/worker/admin/stop-all-orchestrator-directed"))
                .json();
            assert_eq!(told["ended_sessions"], 1);
        }
        wait::until(|| processes_with(&marker) == 0);
        assert_eq!(node.get(SESSIONS).json()["sessions"], json!([]));
    }
    let session = open(&node, &request());
    leave_running(&node, &session, &marker);
    assert_eq!(node.stop(), Some(0));
    assert_eq!(processes_with(&marker), 0);
}

#[test]
fn session_without_its_own_timeouts_has_the_configured_ones() {
    let world = World::new(crate::BELLJAR);
    let config = world.write("config.yaml", "node: { sessions: { max_lifetime_seconds: 2 } }\n");
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    let begun = Instant::now();
    let session = open(&node, &request());
    // It is used all the time, so that it doesn't end because it is idle.
    wait::until(|| exec(&node, &session, "true").status == 404);
    assert!(begun.elapsed() >= Duration::from_secs(2), "the session ended too early");
}

#[test]
fn client_that_disconnects_while_creating_a_session_frees_its_slot() {
    let world = World::new(crate::BELLJAR);
    let config = world.write("config.yaml", "node: { sessions: { max: 1, idle_timeout_seconds: 1 } }\n");
    let node = Node::start(&world, &["--config", config.to_str().unwrap()]);
    for _ in 0..5 {
        let body = request().to_string();
        let mut client = TcpStream::connect(node.address()).unwrap();
        let head = format!(
            "POST {SESSIONS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(head.as_bytes()).unwrap();
        drop(client);
        // In any case it ends once it is idle.
        wait::until(|| node.post(SESSIONS, &request()).status == 201);
        wait::until(|| node.get(SESSIONS).json()["sessions"] == json!([]));
    }
}
