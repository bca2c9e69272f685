//! Clients that are slow, or disconnect.

use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN, command, script};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use std::io::{Read, Write};
use std::net::TcpStream;

const EACH: usize = 60;

#[test]
fn slow_or_vanished_clients_delay_no_other_and_leave_no_open_connection() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let noisy = node.submit(script(
        "i=0; while [ $i -lt 4000 ]; do echo line $i of many that are not read; i=$((i+1)); done; sleep 60",
    ));
    node.wait_for(&noisy, "in_progress");
    let before = descriptors(&node);
    let head = |method: &str, path: &str, more: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {TOKEN}\r\n{more}\r\n")
    };
    let say = |text: &str| {
        let mut stream = TcpStream::connect(node.address()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let body = "Content-Type: application/json\r\nContent-Length: 100000\r\n";
    let mut slow = Vec::new();
    for _ in 0..EACH {
        // Half a head; a head and half a body; an endless response that the client doesn't read.
        slow.push(say("POST /v1/worker/jobs:run HTTP/1.1\r\nHost: no"));
        slow.push(say(&(head("POST", "/v1/worker/jobs:run", body) + "{\"version\": 1,")));
        slow.push(say(&head("GET", &format!("/v1/worker/jobs/{noisy}/events"), "")));
        // Disconnects in the middle of each.
        drop(say("POST /v1/worker/jobs:run HTTP/1.1\r\nHost: no"));
        drop(say(&(head("POST", "/v1/worker/jobs:run", body) + "{\"version\": 1,")));
        let mut follower = say(&head("GET", &format!("/v1/worker/jobs/{noisy}/events"), ""));
        let _ = follower.read(&mut [0; 64]);
    }
    for _ in 0..10 {
        assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
    }
    // The node notices the disconnected clients while the others still wait.
    wait::until(|| descriptors(&node) <= before + slow.len() + 10);
    drop(slow);
    wait::until(|| descriptors(&node) <= before + 10);
    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{noisy}:cancel")));
    node.wait_for(&noisy, "canceled");
}

fn descriptors(node: &Node<'_>) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", node.pid())).unwrap().count()
}
