//! A node's web policy that changes while jobs run; and tunnels when their job or the node ends.

use super::processes_with;
use super::sessions::open;
use super::web::{command, configure, fetching, rule};
use crate::models::recorded;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that accepts connections, and counts the open ones.
struct OpenConnectionServer {
    port: u16,
    open: Arc<AtomicUsize>,
}

/// Opens a tunnel, and reports when it is closed.
const TUNNEL: &str = r#"
import socket, sys
port = sys.argv[1]
tunnel = socket.create_connection(("127.0.0.1", 3128))
tunnel.sendall(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
answer = tunnel.makefile("rb")
print(answer.readline().decode().split()[1], flush=True)
while answer.readline().strip():
    pass
tunnel.sendall(b"hello\n")
try:
    end = answer.read()
except ConnectionResetError:
    end = b""
print("closed", end, flush=True)
"#;

// === impl OpenConnectionServer ===

impl OpenConnectionServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, open) = (listener.local_addr().unwrap().port(), Arc::<AtomicUsize>::default());
        let theirs = Arc::clone(&open);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let open = Arc::clone(&theirs);
                std::thread::spawn(move || {
                    let mut said = [0; 6];
                    if stream.read_exact(&mut said).is_ok() && said == *b"hello\n" {
                        open.fetch_add(1, Ordering::SeqCst);
                        let _ = stream.read(&mut said);
                        open.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        Self { port, open }
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Starts a job with a tunnel to this server that lasts until it is closed.
    fn tunnel(&self, node: &Node<'_>) -> String {
        let port = self.port.to_string();
        let mut job = belljar_testkit::node::command(&["python3", "-c", TUNNEL, &port]);
        job["sandbox"]["network_policy"] = json!("restricted");
        let before = self.open();
        let id = node.submit(job);
        wait::until(|| self.open() == before + 1);
        id
    }
}

/// Replaces the configuration file atomically.
fn replace(world: &World, rules: &str) {
    let next = world.write("next.yaml", format!("egress: {{rules: [{rules}]}}\n"));
    std::fs::rename(next, world.path().join("config.yaml")).unwrap();
}

fn changes(world: &World, kind: &str) -> Vec<Value> {
    recorded(&world.path().join("state/node/audit"), kind)
}

#[test]
fn stricter_policy_closes_only_the_tunnels_it_no_longer_allows() {
    let (world, held, kept) =
        (World::new(crate::BELLJAR), OpenConnectionServer::start(), OpenConnectionServer::start());
    let config = configure(&world, &format!("{}, {}", rule(held.port), rule(kept.port)));
    let node = Node::start(&world, &["--config", &config]);
    let (job, other) = (held.tunnel(&node), kept.tunnel(&node));
    replace(&world, &rule(kept.port));
    let told = node.wait_for(&job, "completed");
    assert_eq!(told["stdout"], "200\nclosed b''\n", "{told}");
    assert_eq!((held.open(), kept.open()), (0, 1));
    let taken = changes(&world, "egress_policy_changed");
    let numbers: Vec<_> = taken.iter().map(|change| (&change["generation"], &change["rules"])).collect();
    assert_eq!(numbers, [(&json!(1), &json!(2)), (&json!(2), &json!(1))]);
    assert_eq!(taken[1]["sha256"].as_str().map(str::len), Some(64));
    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{other}:cancel")));
    node.wait_for(&other, "canceled");
}

#[test]
fn wider_policy_applies_to_open_sessions_and_an_invalid_one_does_not() {
    let (world, server) = (World::new(crate::BELLJAR), crate::egress::HelloServer::start());
    let port = server.address.port();
    let config = configure(&world, "");
    let node = Node::start(&world, &["--config", &config]);
    let session =
        json!({ "version": 1, "task_id": new_id(), "session_id": new_id(), "network_policy": "restricted" });
    let session = open(&node, &session);
    let reaches = || {
        let command = json!({ "version": 1, "command": ["sh", "-c", fetching(port)] });
        node.post(&format!("{session}/exec"), &command).json()["stdout"] == "hello\n"
    };
    assert!(!reaches());
    // Written in place, incomplete at first.
    world.write("config.yaml", format!("egress: {{rules: [{}", rule(port)));
    world.write("config.yaml", format!("egress: {{rules: [{}]}}\n", rule(port)));
    wait::until(reaches);
    let refused = || changes(&world, "egress_policy_refused");
    let before = refused().len();
    replace(&world, "{hots: localhost}");
    wait::until(|| refused().len() == before + 1);
    assert!(reaches());
    let last = refused().pop().unwrap();
    assert!(last["why"].as_str().unwrap().contains("hots") && last["generation"] == 2, "{last}");
    assert!(node.log().contains("the former policy for the web goes on to count"));
    // Without the section no request is allowed.
    world.write("config.yaml", "node: {}\n");
    wait::until(|| !reaches());
    // A narrower policy takes effect before its record is on disk.
    wait::until(|| changes(&world, "egress_policy_changed").pop().unwrap()["rules"] == 0);
}

#[test]
fn separate_policy_file_takes_precedence_over_the_configuration() {
    let (world, server) = (World::new(crate::BELLJAR), crate::egress::HelloServer::start());
    let config = configure(&world, "");
    world.write("policy.yaml", format!("rules: [{}]", rule(server.address.port())));
    let node = Node::start(&world, &["--config", &config, "--egress", "policy.yaml"]);
    let told = node.run(&command(&fetching(server.address.port()), "restricted")).json();
    assert_eq!(told["stdout"], "hello\n", "{told}");
    drop(node);
    world.write("policy.yaml", "rules: {}");
    let said = Node::refused(&world, &["--egress", "policy.yaml"]);
    assert!(said.contains("policy.yaml") && said.contains("rules"), "{said}");
}

#[test]
fn tunnels_of_a_canceled_job_are_closed() {
    let (world, held) = (World::new(crate::BELLJAR), OpenConnectionServer::start());
    let config = configure(&world, &rule(held.port));
    let node = Node::start(&world, &["--config", &config]);
    let (job, other) = (held.tunnel(&node), held.tunnel(&node));
    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{job}:cancel")));
    let told = node.wait_for(&job, "canceled");
    wait::until(|| held.open() == 1);
    assert_eq!((&told["web"]["passages"], &told["web"]["sent_bytes"]), (&json!(1), &json!(6)), "{told}");
    // The control: the tunnel of another job goes on.
    assert_eq!(node.job(&other)["status"], "in_progress");
    assert_eq!(held.open(), 1);
}

#[test]
fn killed_node_leaves_no_proxy_or_tunnel_behind() {
    let (world, held) = (World::new(crate::BELLJAR), OpenConnectionServer::start());
    let config = configure(&world, &rule(held.port));
    let mut node = Node::start(&world, &["--config", &config]);
    let job = held.tunnel(&node);
    let port = held.port.to_string();
    assert!(processes_with(&port) > 0);
    node.killed_and_started();
    wait::until(|| held.open() == 0 && processes_with(&port) == 0);
    node.wait_for(&job, "node_failure");
    let runs = world.path().join("state/node/runs");
    wait::until(|| std::fs::read_dir(&runs).is_ok_and(|mut runs| runs.next().is_none()));
    // The audit log has its begin, and no end.
    let audit = world.path().join("state/node/audit");
    assert_eq!((recorded(&audit, "egress_begun").len(), recorded(&audit, "egress").len()), (1, 0));
    // The control: the next tunnel has both again.
    let again = held.tunnel(&node);
    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{again}:cancel")));
    node.wait_for(&again, "canceled");
    assert_eq!(recorded(&audit, "egress").len(), 1);
}
