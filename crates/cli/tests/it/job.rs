//! `belljar job`: submitting and inspecting jobs of a node.

mod followed;
mod here;
mod left;
mod listed;
mod refused;
mod submitted;

use belljar_testkit::node::Node;
use belljar_testkit::world::{ProgramOutput, World};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Returns the command with the node at this address.
fn command(world: &World, to: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = world.command(&["job"]);
    command.args(["--node", &format!("http://{to}"), "--token-file", "token"]).args(arguments);
    command
}

fn ask(world: &World, to: SocketAddr, arguments: &[&str]) -> ProgramOutput {
    ProgramOutput::from(command(world, to, arguments).output().unwrap())
}

/// Runs the command with output for a terminal: some control sequences are removed without one.
fn ask_as_on_a_terminal(world: &World, to: SocketAddr, arguments: &[&str]) -> ProgramOutput {
    ProgramOutput::from(command(world, to, arguments).env("CLICOLOR_FORCE", "1").output().unwrap())
}

/// Submits a command to a node, waits until it is over, and returns the job's id.
fn over(world: &World, node: &Node<'_>, argv: &[&str]) -> String {
    let arguments = [&["submit", "--wait", "--"], argv].concat();
    let ran = ask(world, node.address(), &arguments);
    ran.stdout.trim().to_owned()
}

/// A proxy in front of a node that breaks some connections off.
struct FaultyRelay {
    address: SocketAddr,
    /// The node's address, which may change.
    to: Arc<Mutex<SocketAddr>>,
    seen: Arc<Mutex<RelayTraffic>>,
}

/// The traffic through a relay.
#[derive(Default)]
struct RelayTraffic {
    /// Number of connections that were broken off.
    cut: usize,
    /// The last event id that each client sent with a request for events.
    last_ids: Vec<u64>,
}

impl FaultyRelay {
    /// Breaks the first connections off, each in the middle of that event.
    fn cutting(to: SocketAddr, connections: usize, event: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<RelayTraffic>>::default();
        let shared = Arc::clone(&seen);
        let to = Arc::new(Mutex::new(to));
        let leading = Arc::clone(&to);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                let to = *leading.lock().unwrap();
                std::thread::spawn(move || relay(&client, to, (connections, event), &shared));
            }
        });
        Self { address, to, seen }
    }
}

fn relay(
    client: &TcpStream,
    to: SocketAddr,
    (connections, event): (usize, usize),
    seen: &Arc<Mutex<RelayTraffic>>,
) {
    let Ok(node) = TcpStream::connect(to) else { return };
    let (asked, mut into) = (BufReader::new(client.try_clone().unwrap()), node.try_clone().unwrap());
    let heard = Arc::clone(seen);
    std::thread::spawn(move || {
        for line in asked.lines().map_while(Result::ok) {
            let id = line.strip_prefix("last-event-id: ").and_then(|id| id.parse::<u64>().ok());
            heard.lock().unwrap().last_ids.extend(id);
            let _ = into.write_all(format!("{line}\r\n").as_bytes());
        }
    });
    let (mut answer, mut writer) = (BufReader::new(node.try_clone().unwrap()), client);
    let (mut events, mut line) = (0, Vec::new());
    while answer.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        events += usize::from(line.starts_with(b"data: "));
        if writer.write_all(&line).is_err() {
            break;
        }
        line.clear();
        let mut seen = seen.lock().unwrap();
        if events >= event && seen.cut < connections {
            seen.cut += 1;
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = node.shutdown(Shutdown::Both);
}

/// A server that impersonates a node with prepared responses.
struct FakeNode {
    address: SocketAddr,
    /// The first line of each request.
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeNode {
    /// Responds to each target with a status and a body.
    fn telling(world: &World, answer: impl Fn(&str) -> (u16, Vec<u8>) + Send + 'static) -> Self {
        world.write("token", belljar_testkit::node::TOKEN);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let line = read_request(&client);
                let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
                heard.lock().unwrap().push(line);
                let (status, body) = answer(&target);
                let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = client.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        Self { address, asked }
    }
}

/// Reads a request whose body, if any, has a `Content-Length`. Returns its first line.
fn read_request(client: &TcpStream) -> String {
    let mut reader = BufReader::new(client);
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap_or(0);
        }
        if first.is_empty() {
            first = line;
        }
    }
    let _ = reader.read_exact(&mut vec![0; length]);
    first
}

/// Returns a node's response for an ended job with these artifacts.
fn told(id: &str, artifacts: &serde_json::Value) -> Vec<u8> {
    let told = serde_json::json!({
        "version": 1, "task_id": id, "job_id": id, "status": "failed", "attempt": 1, "max_attempts": 1,
        "accepted_at": "2026-01-31T12:00:00Z", "started_at": "2026-01-31T12:00:01Z", "ended_at": "2026-01-31T12:00:03Z",
        "cancel_requested": false, "exit_code": 3, "stdout": "out\n", "stderr": "",
        "truncated": { "stdout": false, "stderr": false },
        "failure_code": "step_failed", "failure_message": "it says \u{1b}[2J\u{202e}this",
        "artifacts": artifacts, "resource_usage": { "cpu_time_ms": 0, "max_rss_bytes": 0 },
    });
    told.to_string().into_bytes()
}
