//! Jobs and requests that a node refuses.

use crate::models::recorded;
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN, command, script};
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn job_over_the_queue_limit_is_refused_with_a_retry_after() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &["--max-concurrency", "1", "--max-waiting", "2"]);
    let running = node.submit(script("sleep 60"));
    node.wait_for(&running, "in_progress");
    node.submit(command(&["true"]));
    node.submit(command(&["true"]));
    let mut job = command(&["true"]);
    job["wait"] = json!(false);
    let refused = node.run(&job);
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(refused.json()["type"], "urn:cynodeai:error:rate_limit");
    assert_eq!(node.get(&format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap())).status, 404);
    // Once there is capacity the job is accepted.
    node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{running}:cancel")));
    wait::until(|| node.run(&job).status == 202);
}

#[test]
fn request_that_the_node_cannot_fulfil_is_refused_before_acceptance() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for (member, value) in [("image", json!("alpine:latest")), ("use_inference", json!(true))] {
        let mut job = command(&["true"]);
        job["sandbox"][member] = value;
        let refused = node.run(&job);
        assert_eq!(refused.status, 403);
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(&format!("$.sandbox.{member}")), "{detail}");
    }
    assert_eq!(node.get("/v1/worker/jobs").json()["jobs"], json!([]));
    let mut job = command(&["true"]);
    job["sandbox"]["image"] = json!("native");
    assert_eq!(node.run(&job).json()["status"], "completed");
}

#[test]
fn denied_requests_are_audited_and_a_flood_of_them_is_only_counted() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let denied = || recorded(&world.path().join("state/node/audit"), "request_denied");
    let mut job = command(&["true"]);
    job["sandbox"]["image"] = json!("alpine:latest");
    assert_eq!(node.run(&job).status, 403);
    wait::until(|| denied().len() == 1);
    let record = denied().remove(0);
    assert_eq!(record["reason"], "urn:cynodeai:error:authorization");
    assert_eq!((&record["method"], &record["path"]), (&json!("POST"), &json!("/v1/worker/jobs:run")));
    assert!(record["detail"].as_str().unwrap().contains("$.sandbox.image"), "{record}");
    // A malformed request or an unknown path counts as no denial.
    assert_eq!(node.get("/v1/worker/nothing").status, 404);

    const MANY: u64 = 400;
    let one = "GET /v1/worker/jobs HTTP/1.1\r\nHost: node\r\n";
    let asked = format!("{one}\r\n").repeat(MANY as usize - 1) + one + "Connection: close\r\n\r\n";
    let mut stream = TcpStream::connect(node.address()).unwrap();
    let mut reading = stream.try_clone().unwrap();
    let answers = std::thread::spawn(move || {
        let mut answers = String::new();
        reading.read_to_string(&mut answers).map(|_| answers)
    });
    stream.write_all(asked.as_bytes()).unwrap();
    let answers = answers.join().unwrap().unwrap();
    assert_eq!(answers.matches("HTTP/1.1 401").count() as u64, MANY);
    // The next denial, which isn't equal to the others, reports the number of the dropped ones.
    std::thread::sleep(Duration::from_millis(1_100));
    HttpRequest::new("GET", "/v1/worker/sessions").send(node.address()).unwrap();
    let told = |records: &[Value]| -> u64 {
        let of_token =
            records.iter().filter(|record| record["reason"] == "urn:cynodeai:error:authentication");
        of_token.map(|record| 1 + record["unrecorded"].as_u64().unwrap()).sum()
    };
    wait::until(|| told(&denied()) == MANY + 1);
    assert!(denied().len() <= 1 + 107 + 1, "{} records", denied().len());
}

#[test]
fn path_that_is_not_utf8_is_answered_with_a_problem() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for path in ["/v1/worker/jobs/%ff", "/v1/worker/jobs/none"] {
        let answered = node.get(path);
        assert!((400..500).contains(&answered.status), "{path}: {}", answered.status);
        assert_eq!(answered.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(answered.json()["instance"], path);
    }
}

#[test]
fn node_that_cannot_start_reports_why() {
    let world = World::new(crate::BELLJAR);
    let run = |arguments: &[&str]| {
        let ran = world.run(arguments);
        (ran.code, ran.stderr)
    };
    let (code, said) = run(&["node", "--token-file", "nowhere"]);
    assert!(code == 125 && said.contains("can't read nowhere"), "{said}");
    world.write("short-token", "short");
    let (code, said) = run(&["node", "--token-file", "short-token"]);
    assert!(code == 125 && said.contains("holds no token"), "{said}");
    world.write("token", TOKEN);
    let (code, said) = run(&["node", "--token-file", "token", "--database", "mysql://u:secret@h/d"]);
    assert!(code == 125 && said.contains("\"mysql\" is no database") && !said.contains("secret"), "{said}");
    let arguments = ["node", "--token-file", "token", "--listen", "127.0.0.1:0"];
    let url = "postgres://u:secret@127.0.0.1:1/d";
    let (code, said) = run(&[&arguments[..], &["--database", url]].concat());
    assert!(code == 125 && said.contains("PGPASSFILE") && !said.contains("secret"), "{said}");
    // A variable is visible to this user only.
    let unseen = world.command(&arguments).env("BELLJAR_DATABASE", url).output().unwrap();
    let said = String::from_utf8(unseen.stderr).unwrap();
    assert!(said.contains("can't open the database") && !said.contains("secret"), "{said}");
}

#[test]
fn node_refuses_tokens_readable_by_others_and_non_loopback_addresses() {
    let world = World::new(crate::BELLJAR);
    let path = world.write("token", TOKEN);
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"] {
        let ran = world.run(&["node", "--token-file", "token", "--listen", address]);
        assert!(ran.code == 125 && ran.stderr.contains("--allow-remote"), "{address}: {ran:?}");
    }
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let ran = world.run(&["node", "--token-file", "token", "--listen", "127.0.0.1:0"]);
    assert!(ran.code == 125 && ran.stderr.contains("can read the token in token; chmod 600 it"), "{ran:?}");
    // The control: neither is refused if only this user can read the file and remote access is allowed explicitly.
    world.write("token", TOKEN);
    let all = [
        "node",
        "--token-file",
        "token",
        "--listen",
        "0.0.0.0:0",
        "--allow-remote",
        "--database",
        "mysql://h/d",
    ];
    let ran = world.run(&all);
    assert!(ran.code == 125 && ran.stderr.contains("\"mysql\" is no database"), "{ran:?}");
}
