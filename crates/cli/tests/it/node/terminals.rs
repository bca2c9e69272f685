//! PTYs in sessions, by requests and by a WebSocket.

use super::processes_with;
use super::sessions::open;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_testkit::node::{Node, TOKEN, new_id};
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

fn session(node: &Node<'_>) -> String {
    open(node, &json!({ "version": 1, "task_id": new_id(), "session_id": new_id() }))
}

/// Opens a PTY, and returns its id.
fn terminal(node: &Node<'_>, session: &str, command: &[&str]) -> String {
    let request = json!({ "version": 1, "command": command, "cols": 100, "rows": 30 });
    let answered = node.post(&format!("{session}/pty:open"), &request);
    assert_eq!(answered.status, 201, "{}", answered.json());
    answered.json()["pty_id"].as_str().unwrap().to_owned()
}

fn send(node: &Node<'_>, session: &str, pty: &str, text: &str) {
    let request = json!({ "version": 1, "pty_id": pty, "data_b64": STANDARD.encode(text) });
    let answered = node.post(&format!("{session}/pty:send"), &request);
    assert_eq!(answered.status, 200, "{}", answered.json());
}

fn receive(node: &Node<'_>, session: &str, pty: &str, after: u64) -> Value {
    node.get(&format!("{session}/pty:recv?pty_id={pty}&after={after}&wait_ms=5000")).json()
}

/// Reads on from an offset until the output contains a text, or the end. Returns the output, the next offset, and the last
/// response.
fn until(node: &Node<'_>, session: &str, pty: &str, mut after: u64, wanted: &str) -> (String, u64, Value) {
    let (mut text, given_up) = (String::new(), Instant::now() + Duration::from_secs(30));
    loop {
        let told = receive(node, session, pty, after);
        text.push_str(&String::from_utf8_lossy(
            &STANDARD.decode(told["data_b64"].as_str().unwrap()).unwrap(),
        ));
        after = told["next"].as_u64().unwrap();
        if text.contains(wanted) || told["closed"] == true {
            return (text, after, told);
        }
        assert!(Instant::now() < given_up, "{text}");
    }
}

#[test]
fn terminal_runs_typed_input_and_output_is_read_from_an_offset() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = session(&node);
    let pty = terminal(&node, &session, &["sh"]);
    send(&node, &session, &pty, "stty size; echo is-$((40 + 2))\n");
    let (text, next, _) = until(&node, &session, &pty, 0, "is-42");
    assert!(text.contains("30 100"), "{text}");
    // Output that isn't yet acknowledged by a later offset is returned again.
    let (again, ..) = until(&node, &session, &pty, 0, "is-42");
    assert!(text.ends_with(&again) || again.contains("is-42"), "{again}");
    let resize = json!({ "version": 1, "pty_id": pty, "cols": 50, "rows": 20 });
    assert_eq!(node.post(&format!("{session}/pty:resize"), &resize).status, 200);
    send(&node, &session, &pty, "stty size\n");
    let (text, next, _) = until(&node, &session, &pty, next, "20 50");
    assert!(text.contains("20 50"), "{text}");
    // Arbitrary bytes are passed through.
    send(&node, &session, &pty, "printf '\\377\\0\\376' | od -An -tx1; exit 7\n");
    let (text, _, told) = until(&node, &session, &pty, next, "nothing says this");
    assert!(text.contains("ff 00 fe"), "{text}");
    assert_eq!((&told["closed"], &told["exit_code"]), (&json!(true), &json!(7)));
}

#[test]
fn endless_terminal_output_uses_bounded_memory() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = session(&node);
    let pty = terminal(
        &node,
        &session,
        &["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the-end"],
    );
    // No client reads: the program blocks, and hasn't ended.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(node.get(&session).json()["running"], 1);
    let (text, next, told) = until(&node, &session, &pty, 0, "nothing says this");
    assert_eq!(text.bytes().filter(|byte| *byte == b'x').count(), 3_000_000);
    assert!(text.contains("the-end") && next > 3_000_000);
    assert_eq!(told["exit_code"], 0);
}

#[test]
fn closing_a_terminal_kills_its_program() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = session(&node);
    let marker = format!("terminal-{}", new_id());
    let pty = terminal(&node, &session, &["sh", "-c", &format!("echo begun; sleep 300; : {marker}")]);
    until(&node, &session, &pty, 0, "begun");
    assert!(processes_with(&marker) > 0, "the control");
    let close = json!({ "version": 1, "pty_id": pty });
    for _ in 0..2 {
        assert_eq!(node.post(&format!("{session}/pty:close"), &close).status, 200);
    }
    belljar_testkit::wait::until(|| processes_with(&marker) == 0);
    assert_eq!(node.get(&format!("{session}/pty:recv?pty_id={pty}")).status, 404);
    belljar_testkit::wait::until(|| node.get(&session).json()["running"] == 0);
}

#[test]
fn invalid_terminal_request_is_answered_with_a_problem() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = session(&node);
    let pty = terminal(&node, &session, &["sh"]);
    for (verb, request, status) in [
        ("open", json!({ "version": 1, "cols": 0 }), 400),
        ("open", json!({ "version": 1, "command": ["/no/such/program"] }), 409),
        ("send", json!({ "version": 1, "pty_id": pty, "data_b64": "!" }), 400),
        (
            "send",
            json!({ "version": 1, "pty_id": pty, "data_b64": STANDARD.encode(vec![b'x'; 65_537]) }),
            400,
        ),
        ("send", json!({ "version": 1, "pty_id": new_id(), "data_b64": "" }), 404),
        ("resize", json!({ "version": 1, "pty_id": pty, "cols": 80 }), 400),
        ("close", json!({ "version": 1, "pty_id": pty, "task_id": new_id() }), 409),
    ] {
        let answered = node.post(&format!("{session}/pty:{verb}"), &request);
        assert_eq!(answered.status, status, "{verb} {request}: {}", answered.json());
    }
    for (query, status) in [("", 400), ("?pty_id=x", 400), (&format!("?pty_id={pty}&wait_ms=30001"), 400)] {
        assert_eq!(node.get(&format!("{session}/pty:recv{query}")).status, status, "{query}");
    }
    assert_eq!(node.get(&format!("{session}/pty:attach?pty_id={pty}")).status, 400);
    for _ in 1..8 {
        terminal(&node, &session, &["sh"]);
    }
    assert_eq!(node.post(&format!("{session}/pty:open"), &json!({ "version": 1 })).status, 429);
}

fn attach(node: &Node<'_>, session: &str, pty: &str, after: u64) -> WebSocket<TcpStream> {
    let url = format!("ws://{}{session}/pty:attach?pty_id={pty}&after={after}", node.address());
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("Authorization", format!("Bearer {TOKEN}").parse().unwrap());
    let stream = TcpStream::connect(node.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    tungstenite::client(request, stream).unwrap().0
}

/// Reads until the output contains a text, and returns all of it.
fn printed(socket: &mut WebSocket<TcpStream>, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        match socket.read().unwrap() {
            Message::Binary(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            other => panic!("{other:?} after {text}"),
        }
    }
    text
}

#[test]
fn terminal_survives_a_broken_websocket_and_reports_its_exit() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = session(&node);
    let pty = terminal(&node, &session, &["sh"]);
    let mut socket = attach(&node, &session, &pty, 0);
    socket.send(Message::text(r#"{"cols":61,"rows":17}"#)).unwrap();
    socket.send(Message::binary("stty size; kept=this\n".as_bytes().to_vec())).unwrap();
    let text = printed(&mut socket, "17 61");
    // Disconnect without a close frame.
    drop(socket);
    let mut socket = attach(&node, &session, &pty, text.len() as u64);
    socket.send(Message::binary("echo still-$kept; exit 5\n".as_bytes().to_vec())).unwrap();
    printed(&mut socket, "still-this");
    let last = loop {
        match socket.read().unwrap() {
            Message::Text(text) => break text.to_string(),
            Message::Binary(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(serde_json::from_str::<Value>(&last).unwrap(), json!({ "exit_code": 5 }));
    assert!(matches!(socket.read(), Ok(Message::Close(_)) | Err(_)));
}

#[test]
fn terminal_attach_requires_the_token() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let session = session(&node);
    let pty = terminal(&node, &session, &["sh"]);
    let url = format!("ws://{}{session}/pty:attach?pty_id={pty}", node.address());
    let stream = TcpStream::connect(node.address()).unwrap();
    let refused = tungstenite::client(url.into_client_request().unwrap(), stream).unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    // The control.
    attach(&node, &session, &pty, 0);
}
