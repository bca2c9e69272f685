//! A run that attacks each of its hatches: no other run, no Worker API request and no shutdown of the node is delayed.

use super::tools::CLIENT;
use crate::BELLJAR;
use crate::egress::HelloServer;
use crate::hatches::older_kernel;
use crate::models::KEY;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, steps};
use belljar_testkit::skip::skip;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Attacks at the level of connections and bytes.
const ATTACKS: &str = include_str!("../hatches/attacks.py");

/// Attacks by tool calls.
const LARGE_MESSAGES: &str = include_str!("large_messages.py");

/// Maximum memory of a node while it handles messages of one run, in KiB. Without a bound on its values, a message of 4 MiB
/// takes 800 MiB.
const MOST_MEMORY_KIB: u64 = 512 << 10;

/// Uses each of its hatches, over the network and by Unix sockets, and prints the longest time of a call.
const USES: &str = r#"
import socket, time
def asked(port, path, line, body):
    if path: hatch = socket.socket(socket.AF_UNIX); hatch.settimeout(60); hatch.connect(path)
    else: hatch = socket.create_connection(("127.0.0.1", port), 60)
    head = "%s\r\nHost: %s\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    hatch.sendall((head % (line, HOST, len(body)) + body).encode())
    status = hatch.makefile().readline()
    assert " 200 " in status, status
MODEL = json.dumps({"model": "small", "messages": [{"role": "user", "content": "hi"}]})
USES = {
    "web": (3128, "/web-sock/web.sock", "GET http://%s/ HTTP/1.1" % HOST, ""),
    "models": (8080, "/llm-sock/llm.sock", "POST /v1/chat/completions HTTP/1.1", MODEL),
    "status": (7070, "/status-sock/status.sock", "POST /v1/jobs/%s/status HTTP/1.1" % JOB, '{"version":1,"status":"in_progress"}'),
}
took = {}
def timed(name, use):
    begun = time.time(); use(); took.setdefault(name, []).append(time.time() - begun)
for _ in range(10):
    for name, (port, path, line, body) in USES.items():
        timed(name, lambda: asked(port, None, line, body))
        timed(name + " by its files", lambda: asked(port, path, line, body))
    timed("tools", lambda: ask("tools/list")["result"])
    timed("pages", lambda: call("html_parser", html_content="<p>x")["data"])
tell({name: max(all) for name, all in took.items()})
"#;

/// Longer than any call takes on a busy machine, and far shorter than the attacks block. In seconds.
const CALL_WITHIN: f64 = 15.0;

/// Maximum time of a liveness response. It is measured in rounds, of which one has to succeed, because the machine also does
/// other work.
const ALIVE_WITHIN: Duration = Duration::from_millis(100);
const ROUNDS: usize = 8;

/// Run time of the attacker, and the maximum delay of its end.
const RUNTIME_SECONDS: u32 = 20;
const OVER_WITHIN: Duration = Duration::from_secs(15);

fn configure(world: &World, models: &ModelServer, servers: [&HelloServer; 2]) -> String {
    let key = world.write("key", KEY).display().to_string();
    let rules = servers.map(|server| {
        let networks = ["127.0.0.0/8", "::1"];
        json!({ "host": "localhost", "ports": [server.address.port()], "networks": networks })
    });
    let config = json!({
        "inference": {
            "providers": [{ "name": "house", "kind": "litellm", "url": models.url(), "credential": { "file": key } }],
            "models": [{ "name": "small", "provider": "house" }],
        },
        "egress": { "rules": rules },
    });
    world.write("config.yaml", config.to_string()).display().to_string()
}

/// Returns a job with every kind of hatch.
fn job(script: &str, seconds: u32) -> Value {
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": ["python3", "-c", script] } }]));
    let spec = &mut job["sandbox"]["job_spec"];
    spec["constraints"]["max_runtime_seconds"] = json!(seconds);
    spec["constraints"]["ext_net_allowed"] = json!(true);
    spec["inference"] = json!({ "allowed_models": ["small"] });
    job
}

fn attacker(told: &HelloServer, attacks: &str) -> Value {
    job(&format!("BEGINS = 'http://localhost:{}/'\n{attacks}", told.address.port()), RUNTIME_SECONDS)
}

/// Runs a job that uses its hatches meanwhile. Returns the longest call of each.
fn used(node: &Node<'_>, server: &HelloServer) -> Value {
    let script = format!("{CLIENT}HOST = 'localhost:{}'\n{USES}", server.address.port());
    let answer = node.run(&job(&script, 300)).json();
    assert_eq!(answer["status"], "completed", "{answer}");
    let output = answer["sba_result"]["steps"][0]["result"]["stdout"].as_str().unwrap();
    serde_json::from_str(output).unwrap()
}

/// Returns the median time of liveness responses in the best of several rounds.
fn alive_within(node: &Node<'_>) -> Duration {
    let round = |_| {
        let mut all: Vec<_> = (0..9).map(|_| alive(node)).collect();
        all.sort();
        all[all.len() / 2]
    };
    (0..ROUNDS).map(round).min().unwrap()
}

fn alive(node: &Node<'_>) -> Duration {
    let begun = Instant::now();
    assert_eq!(HttpRequest::new("GET", "/healthz").send(node.address()).unwrap().status, 200);
    begun.elapsed()
}

/// Returns the node's peak memory so far, in KiB.
fn peak_memory_kib(node: &Node<'_>) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    peak.unwrap().trim().parse().unwrap()
}

/// Attacks, and returns the node's peak memory meanwhile, in KiB.
fn attack(world: &World, attacks: &str) -> u64 {
    let models = ModelServer::start(Script::always(Answer::text("hello")));
    let (told, server) = (HelloServer::start(), HelloServer::start());
    let config = configure(world, &models, [&told, &server]);
    let mut node = Node::start(world, &["--config", &config, "--max-concurrency", "3"]);
    let attacking = node.submit(attacker(&told, attacks));
    wait::until(|| told.asked() == 1);
    let begun = Instant::now();

    let alive = alive_within(&node);
    assert!(alive <= ALIVE_WITHIN, "{alive:?}");
    let longest = used(&node, &server);
    let calls = longest.as_object().unwrap();
    assert_eq!(calls.len(), 8, "{longest}");
    assert!(calls.values().all(|took| took.as_f64().unwrap() < CALL_WITHIN), "{longest}");

    let over = Duration::from_secs(RUNTIME_SECONDS.into()) + OVER_WITHIN;
    wait::until(|| node.job(&attacking)["ended_at"].is_string() || begun.elapsed() > over);
    let ended = node.job(&attacking);
    assert_eq!(ended["status"], "timeout", "{ended}");
    let peak_kib = peak_memory_kib(&node);

    // Another attack is under way when the node is asked to stop.
    node.submit(attacker(&told, attacks));
    wait::until(|| told.asked() == 2);
    let asked = Instant::now();
    assert_eq!(node.stop(), Some(0));
    assert!(asked.elapsed() < OVER_WITHIN, "{:?}", asked.elapsed());
    peak_kib
}

#[test]
fn run_that_attacks_its_hatches_delays_neither_other_runs_nor_the_api() {
    attack(&World::new(BELLJAR), ATTACKS);
}

#[test]
fn run_that_sends_large_messages_delays_neither_other_runs_nor_the_api() {
    let peak_kib = attack(&World::new(BELLJAR), &format!("{CLIENT}{LARGE_MESSAGES}"));
    assert!(peak_kib <= MOST_MEMORY_KIB, "{peak_kib} KiB");
}

#[test]
fn run_that_passes_descriptors_delays_neither_other_runs_nor_the_api() {
    match older_kernel() {
        Some(world) => {
            attack(&world, ATTACKS);
        }
        None => skip(
            "node::held_up::run_that_passes_descriptors_delays_neither_other_runs_nor_the_api",
            "needs root: the socket option is hidden from belljar",
        ),
    }
}
