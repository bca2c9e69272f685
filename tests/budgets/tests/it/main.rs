//! The clock-independent costs of operations, compared with `tests/budgets.toml`.
//!
//! Each operation is run a few times and many times with everything around it. The difference is the cost of one, including
//! start and end of the programs inside where they belong to it. The minimum of several runs counts.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod meter;

use belljar_budgets::{Cost, Judgement};
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, command};
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

const BUDGETS: &str = include_str!("../../../budgets.toml");

/// Makes this many connections, each with one request and its complete response. Nothing else happens in between.
const ASK: &str = "import socket, sys\n\
    port, times, request = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()\n\
    for _ in range(times):\n\
    \x20   s = socket.create_connection(('127.0.0.1', port)); s.sendall(request); answer = b''\n\
    \x20   while more := s.recv(65536): answer += more\n\
    \x20   assert b' 200 ' in answer.split(b'\\r\\n')[0], answer\n\
    \x20   s.close()\n";

/// Measures an operation and compares it with its budget.
fn hold(operation: &str, (few, many): (usize, usize), run: &dyn Fn(&World, usize)) {
    if let Err(why) = meter::can_measure() {
        return skip(&format!("budgets, {operation}"), &why);
    }
    let took = Cost::of_one((few as u64, meter::measure(run, few)), (many as u64, meter::measure(run, many)));
    let budget = Cost::budget_of(operation, BUDGETS).unwrap();
    let row = took.row(operation, &budget);
    let _ = writeln!(std::io::stdout(), "{row}");
    if let Some(path) = std::env::var_os("BELLJAR_BUDGETS") {
        let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{row}\n").as_bytes()).unwrap();
    }
    let judgement = took.judge(&budget);
    assert!(
        !matches!(judgement, Judgement::Exceeded(_)),
        "{operation} takes {took:?}, and may take {budget:?}: make it take less, or raise tests/budgets.toml in the commit \
         that needs more, and say why"
    );
}

#[test]
fn sealed_launch_stays_within_its_budget() {
    hold("exec", (1, 4), &|world, times| {
        (0..times).for_each(|_| drop(world.run(&["exec", "--", "/bin/true"]).succeeded()));
    });
}

#[test]
fn exec_in_a_living_session_stays_within_its_budget() {
    hold("warm_exec", (1, 6), &|world, times| {
        let id = world.run(&["session", "create"]).succeeded().stdout.trim().to_owned();
        (0..times).for_each(|_| drop(world.run(&["session", "exec", &id, "--", "/bin/true"]).succeeded()));
        world.run(&["session", "end", &id]).succeeded();
    });
}

#[test]
fn proxied_model_call_stays_within_its_budget() {
    hold("model_call", (1, 11), &|world, times| {
        let server = ModelServer::start(Script::always(Answer::text("hello")));
        world.write("key", "sk-host-4f9aB7zKd82QmX01");
        let key = world.path().join("key").display().to_string();
        let config = json!({"inference": {
            "providers": [{"name": "house", "kind": "litellm", "url": server.url(), "credential": {"file": key}}],
            "models": [{"name": "small", "provider": "house", "upstream": "gpt-4o-mini"}],
        }});
        world.write("config.yaml", config.to_string());
        let body = json!({"model": "small", "messages": [{"role": "user", "content": "hi"}]}).to_string();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let options = ["exec", "--model", "small", "--config", "config.yaml", "--"];
        let program = ["python3", "-c", ASK, "8080", &times.to_string(), &request];
        world.run(&[&options[..], &program].concat()).succeeded();
    });
}

#[test]
fn tunnel_through_the_web_proxy_stays_within_its_budget() {
    hold("connect", (1, 11), &|world, times| {
        let port = closing_server();
        let policy = format!("rules: [{{host: localhost, ports: [{port}], networks: [127.0.0.0/8]}}]");
        world.write("policy.yaml", policy);
        let request = format!("CONNECT localhost:{port} HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n");
        let options = ["exec", "--egress", "policy.yaml", "--"];
        let program = ["python3", "-c", ASK, "3128", &times.to_string(), &request];
        world.run(&[&options[..], &program].concat()).succeeded();
    });
}

#[test]
fn job_of_a_node_stays_within_its_budget() {
    hold("node_job", (1, 6), &|world, times| {
        let mut node = Node::start(world, &[]);
        for _ in 0..times {
            let told = node.run(&command(&["/bin/true"]));
            assert_eq!(told.status, 200);
        }
        node.stop();
    });
}

/// Starts a server that closes each connection once the tunnel is open.
fn closing_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read(&mut [0; 64]);
        }
    });
    port
}

/// Returns the path of the program under test: `belljar` of the same target folder.
fn belljar() -> std::path::PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("belljar");
    assert!(program.exists(), "build it first: cargo build --workspace --bins ({})", program.display());
    program
}
