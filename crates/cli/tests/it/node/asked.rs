//! Authentication of requests, and their limits.

use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, TOKEN, command};
use belljar_testkit::world::World;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

const RUN: &str = "/v1/worker/jobs:run";

#[test]
fn every_endpoint_except_health_checks_requires_the_token() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    for (method, path) in
        [("GET", "/v1/worker/jobs"), ("POST", RUN), ("GET", "/v1/anything"), ("PUT", "/v1/worker/jobs")]
    {
        for token in [None, Some("Bearer wrong-token-of-some-length"), Some("Basic abc")] {
            let asked = HttpRequest::new(method, path);
            let asked = token.map_or(asked.clone(), |token| asked.header("Authorization", token));
            let answered = asked.send(node.address()).unwrap();
            assert_eq!(answered.status, 401, "{method} {path} {token:?}");
            assert_eq!(answered.header("www-authenticate"), Some("Bearer"));
            assert_eq!(answered.json()["type"], "urn:cynodeai:error:authentication");
        }
    }
    for (path, text) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let answered = HttpRequest::new("GET", path).send(node.address()).unwrap();
        assert_eq!((answered.status, answered.body.as_slice()), (200, text.as_bytes()));
    }
    // The control.
    assert_eq!(node.get("/v1/worker/jobs").status, 200);
    assert!(!node.log().contains(TOKEN));
}

#[test]
fn invalid_request_is_answered_with_a_problem() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let kind = |asked: &HttpRequest| {
        let answered = node.send(asked);
        assert_eq!(answered.header("content-type"), Some("application/problem+json"), "{asked:?}");
        let problem = answered.json();
        assert_eq!(problem["status"], answered.status);
        assert_eq!(problem["instance"], asked.target.split('?').next().unwrap());
        let kind = problem["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        (answered.status, kind)
    };
    let is = |status, kind: &str| (status, kind.to_owned());
    let unknown = "/v1/worker/jobs/0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
    assert_eq!(kind(&HttpRequest::new("GET", "/v1/worker/nothing")), is(404, "not_found"));
    assert_eq!(kind(&HttpRequest::new("GET", unknown)), is(404, "not_found"));
    assert_eq!(kind(&HttpRequest::new("GET", "/v1/worker/jobs/..")), is(404, "not_found"));
    assert_eq!(kind(&HttpRequest::new("GET", &format!("{unknown}/events"))), is(404, "not_found"));
    assert_eq!(kind(&HttpRequest::new("POST", &format!("{unknown}:cancel"))), is(404, "not_found"));
    assert_eq!(kind(&HttpRequest::new("POST", &format!("{unknown}:explode"))), is(404, "not_found"));
    assert_eq!(kind(&HttpRequest::new("DELETE", "/v1/worker/jobs")), is(405, "method_not_allowed"));
    assert_eq!(kind(&HttpRequest::new("POST", RUN).json("{")), is(400, "validation"));
    assert_eq!(kind(&HttpRequest::new("POST", RUN)), is(415, "media_type"));
    assert_eq!(kind(&HttpRequest::new("GET", "/v1/worker/jobs?limit=0")), is(400, "validation"));
    assert_eq!(kind(&HttpRequest::new("GET", "/v1/worker/jobs?limit=1&limit=2")), is(400, "validation"));
    assert_eq!(kind(&HttpRequest::new("GET", "/v1/worker/jobs?order=up")), is(400, "validation"));
    let ack = HttpRequest::new("POST", &format!("{unknown}:ack")).json(r#"{"version":1}"#);
    assert_eq!(kind(&ack), is(404, "not_found"));
}

#[test]
fn every_mistake_in_a_request_is_reported_with_its_path() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let mut job = command(&["true"]);
    job["version"] = json!(2);
    job["extra"] = json!(1);
    job["max_attempts"] = json!(0);
    job["sandbox"]["env"] = json!({ "CYNODE_TASK_ID": "mine" });
    job["sandbox"]["network_policy"] = json!("open");
    job["sandbox"]["job_spec"] =
        json!({ "protocol_version": "1.0", "job_id": belljar_testkit::node::new_id(), "steps": [{}] });
    let answered = node.run(&job);
    assert_eq!(answered.status, 400);
    let problem = answered.json();
    let places: Vec<_> = problem["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| problem["path"].as_str().unwrap())
        .collect();
    for place in [
        "$.version",
        "$.extra",
        "$.max_attempts",
        "$.sandbox.env.CYNODE_TASK_ID",
        "$.sandbox.network_policy",
        "$.sandbox",
        "$.sandbox.job_spec.task_id",
        "$.sandbox.job_spec.steps[0].type",
        "$.sandbox.job_spec.job_id",
    ] {
        assert!(places.contains(&place), "{place} is not among {places:?}");
    }
    assert_eq!(node.get("/v1/worker/jobs").json()["jobs"], json!([]));
}

#[test]
fn client_that_closes_its_sending_side_behind_its_request_is_answered() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let answer = |request: &str, body: &str| {
        let mut stream = TcpStream::connect(node.address()).unwrap();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(answer("GET /v1/worker/jobs", "").starts_with("HTTP/1.1 200 OK"));
    // Also if the response takes a while.
    let ran = answer(&format!("POST {RUN}"), &command(&["sh", "-c", "sleep 1; echo done"]).to_string());
    assert!(ran.starts_with("HTTP/1.1 200 OK") && ran.contains("done\\n"), "{ran}");
}

#[test]
fn oversized_body_is_refused_before_it_is_read() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let head = format!(
        "POST {RUN} HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Connection: close\r\n"
    );
    let answer = |rest: &[u8]| {
        let mut stream = TcpStream::connect(node.address()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        // The node may have closed the connection before it has read everything.
        let _ = stream.write_all(rest);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(answer(b"Content-Length: 10485761\r\n\r\n"), "HTTP/1.1 413 Payload Too Large");
    // A body of unknown length is limited as well.
    let mut chunked = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..11 {
        chunked.extend_from_slice(b"100000\r\n");
        chunked.extend(std::iter::repeat_n(b' ', 0x10_0000));
        chunked.extend_from_slice(b"\r\n");
    }
    assert_eq!(answer(&chunked), "HTTP/1.1 413 Payload Too Large");
    // The control: a body of exactly the maximum size is read, and refused for its content.
    let mut whole = b"Content-Length: 10485760\r\n\r\n".to_vec();
    whole.extend(std::iter::repeat_n(b' ', 10_485_760));
    assert_eq!(answer(&whole), "HTTP/1.1 400 Bad Request");
}

#[test]
fn second_daemon_on_the_same_state_is_refused_and_the_first_continues() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let said = Node::refused(&world, &[]);
    assert!(said.contains("another daemon uses"), "{said}");
    assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
}

#[test]
fn files_of_the_node_are_unreadable_for_other_users() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    node.run(&command(&["true"]));
    let mut seen = 0;
    for entry in std::fs::read_dir(world.path().join("state/node")).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.is_file() {
            seen += 1;
            let mode = metadata.permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", entry.path().display());
        }
    }
    assert!(seen >= 4, "{seen}");
}
