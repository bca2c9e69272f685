//! The effects of members of `egress.connections` on calls by the agent of a node's job.

use super::tools::{job_of, told};
use crate::recording_server::RecordingServer;
use belljar_testkit::node::Node;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// The operations of each connection.
const OPERATIONS: &str =
    "operations: [{name: read, method: GET, path: /a}, {name: write, method: POST, path: /a}]";

/// Returns a script that calls these operations of these connections, one after another.
fn calls(calls: &[(&str, &str)]) -> String {
    let call = |(provider, operation): &(&str, &str)| {
        format!(
            "tell(call('api.call', task_id=TASK, provider='{provider}', operation='{operation}', params={{}}))\n"
        )
    };
    calls.iter().map(call).collect()
}

#[test]
fn connection_calls_follow_its_allowed_methods_approval_and_rate_limit() {
    let (world, server, other) =
        (World::new(crate::BELLJAR), RecordingServer::start(), RecordingServer::start());
    let authorities = |server: &RecordingServer| format!(", authorities: {}", server.authority().display());
    let (trusted, networks) =
        (authorities(&server), ", networks: [127.0.0.0/8, '::1'], methods: [GET, POST]");
    let connection = |name: &str, more: &str| {
        format!("    - {{name: {name}, url: '{}/of-{name}', {OPERATIONS}{more}}}\n", server.url())
    };
    let connections = [
        connection("usual", &format!("{trusted}{networks}")),
        connection("free", &format!("{trusted}{networks}, writes: allow")),
        connection("twice", &format!("{trusted}{networks}, calls_a_minute: 2")),
        connection("unknown", networks),
        connection("of-other", &format!("{}{networks}", authorities(&other))),
        connection("nowhere", &format!("{trusted}, methods: [GET, POST]")),
    ];
    let config = format!("egress:\n  rules: []\n  connections:\n{}", connections.concat());
    let config = world.write("config.yaml", config).display().to_string();
    let node = Node::start(&world, &["--config", &config]);
    let answered = |script: &str| {
        let mut job = job_of(None, script);
        job["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(true);
        told(&node, &job)
    };
    let is_done = |answer: &Value| answer["data"]["status"] == "success";
    // An operation that changes something requires an approval, unless the connection exempts it.
    let answers = answered(&calls(&[("usual", "read"), ("usual", "write"), ("free", "write")]));
    assert_eq!(answers.iter().map(is_done).collect::<Vec<_>>(), [true, false, true], "{answers:?}");
    assert!(answers[1]["message"].as_str().unwrap().contains("require an approval"), "{answers:?}");
    // The default rate limit is sixty calls a minute.
    let answers = answered(&calls(&[("twice", "read"); 3]));
    assert_eq!(answers.iter().map(is_done).collect::<Vec<_>>(), [true, true, false], "{answers:?}");
    let answers = answered(&calls(&[("usual", "read"); 3]));
    assert!(answers.iter().all(is_done), "{answers:?}");
    // Without a trusted CA, or with a forbidden address, nothing is sent.
    let before = server.heads();
    let answers = answered(&calls(&[("unknown", "read"), ("of-other", "read"), ("nowhere", "read")]));
    assert!(!answers.iter().any(is_done), "{answers:?}");
    assert_eq!(server.heads(), before);
    let lines: Vec<&str> = before.iter().map(|head| head.lines().next().unwrap()).collect();
    let expected = ["GET /of-usual/a", "POST /of-free/a", "GET /of-twice/a", "GET /of-twice/a"];
    assert_eq!(lines, [&expected[..], &["GET /of-usual/a"; 3]].concat());
}
