//! Requests that a node forwards to services beside it.

use crate::models::recorded;
use belljar_testkit::http::HttpResponse;
use belljar_testkit::node::Node;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The action of a service on a connection after it has read a request.
type ConnectionAction = fn(&mut TcpStream, &str);

/// A service, with the requests that it received.
struct ManagedTestService {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

// === impl ManagedTestService ===

impl ManagedTestService {
    fn start(act: ConnectionAction) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (heard, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (hears, counts) = (Arc::clone(&heard), Arc::clone(&connections));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counts.fetch_add(1, Ordering::SeqCst);
                let hears = Arc::clone(&hears);
                std::thread::spawn(move || serve(stream, act, &hears));
            }
        });
        Self { address, heard, connections }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, act: ConnectionAction, heard: &Mutex<Vec<String>>) {
    let mut writes = stream.try_clone().unwrap();
    let mut reads = BufReader::new(stream);
    loop {
        let (mut request, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reads.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(said) = line.strip_prefix("content-length: ") {
                length = said.trim().parse().unwrap();
            }
            request.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reads.read_exact(&mut body).unwrap();
        request.push_str(&String::from_utf8_lossy(&body));
        heard.lock().unwrap().push(request.clone());
        act(&mut writes, &request);
    }
}

fn answer(stream: &mut TcpStream, _: &str) {
    let head = "HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nX-Request-Id: 7\r\n\
                Set-Cookie: a=b\r\nServer: x\r\nContent-Length: 2\r\n\r\nhi";
    let _ = stream.write_all(head.as_bytes());
}

const CANARY: &str = "a-secret-that-is-not-recorded";

fn configure(world: &World, services: &[(&str, SocketAddr)], more: &str) -> String {
    let rows: Vec<_> = services
        .iter()
        .map(|(id, address)| format!("{{ id: {id}, type: pma, url: \"http://{address}/base\" }}"))
        .collect();
    let path =
        world.write("config.yaml", format!("node: {{ managed_services: [{}]{more} }}\n", rows.join(", ")));
    path.display().to_string()
}

fn pass(node: &Node<'_>, id: &str, request: &Value) -> HttpResponse {
    node.post(&format!("/v1/worker/managed-services/{id}/proxy:http"), request)
}

fn get() -> Value {
    json!({ "version": 1, "method": "GET", "path": "/v1/things?page=2" })
}

#[test]
fn allowed_parts_of_request_and_response_are_passed_through() {
    let world = World::new(crate::BELLJAR);
    let service = ManagedTestService::start(answer);
    let node = Node::start(&world, &["--config", &configure(&world, &[("main", service.address)], "")]);
    let request = json!({
        "version": 1, "method": "POST", "path": format!("/v1/things?token={CANARY}"), "body_b64": "aGVsbG8=",
        "headers": { "Authorization": [format!("Bearer {CANARY}")], "content-type": ["text/plain"], "accept": ["a", "b"] },
    });
    let answered = pass(&node, "main", &request);
    assert_eq!(answered.status, 200, "{}", answered.json());
    let expected = json!({
        "version": 1, "status": 201, "body_b64": "aGk=",
        "headers": { "content-type": ["text/plain"], "cache-control": ["no-store"], "x-request-id": ["7"] },
    });
    assert_eq!(answered.json(), expected);
    let heard = service.heard();
    let expected = format!(
        "POST /base/v1/things?token={CANARY} HTTP/1.1\r\nhost: {}\r\ncontent-length: 5\r\nauthorization: Bearer {CANARY}\r\n\
         content-type: text/plain\r\naccept: a\r\naccept: b\r\n\r\nhello",
        service.address
    );
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.split("\r\n").map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(heard.iter().map(|text| sorted(text)).collect::<Vec<_>>(), [sorted(&expected)]);

    for _ in 0..5 {
        assert_eq!(pass(&node, "main", &get()).status, 200);
    }
    assert_eq!(service.connections.load(Ordering::SeqCst), 1, "requests share one connection");

    let audit = world.path().join("state/node/audit");
    let (begun, ended) =
        (recorded(&audit, "managed_service_call_begun"), recorded(&audit, "managed_service_call_ended"));
    assert_eq!((begun.len(), ended.len()), (6, 6));
    let known =
        json!([begun[0]["service_id"], begun[0]["service_type"], begun[0]["method"], begun[0]["path"]]);
    assert_eq!(known, json!(["main", "pma", "POST", "/v1/things"]));
    assert!(begun[0]["caller"].as_str().unwrap().starts_with("127.0.0.1:"), "{}", begun[0]);
    assert_eq!((&ended[0]["status"], &ended[0]["response_bytes"]), (&json!(201), &json!(2)));
    drop(node);
    let mut verify = world.command(&["audit", "verify"]);
    let verified = verify.env("BELLJAR_STATE_DIR", world.path().join("state/node")).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
    let files = std::fs::read_dir(audit).unwrap().map(|entry| entry.unwrap().path());
    let written: Vec<_> =
        files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!String::from_utf8_lossy(&written.concat()).contains(CANARY), "a secret is in the audit");
}

#[test]
fn failing_service_is_reported_as_the_cause() {
    fn none(_: &mut TcpStream, _: &str) {
        std::thread::sleep(Duration::from_secs(60));
    }
    fn slow(stream: &mut TcpStream, _: &str) {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    fn gone(stream: &mut TcpStream, _: &str) {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhal");
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    fn garbled(stream: &mut TcpStream, _: &str) {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH\r\n\r\n");
    }
    fn large(stream: &mut TcpStream, _: &str) {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        let piece = [b"10000\r\n".to_vec(), vec![b'x'; 0x10000], b"\r\n".to_vec()].concat();
        while stream.write_all(&piece).is_ok() {}
    }
    let world = World::new(crate::BELLJAR);
    let acts: [(&str, ConnectionAction, &str); 5] = [
        ("none", none, "in time"),
        ("slow", slow, "in time"),
        ("gone", gone, "no connection"),
        ("garbled", garbled, "malformed answer"),
        ("large", large, "larger than 1048576 bytes"),
    ];
    let services: Vec<_> =
        acts.iter().map(|(name, act, _)| (*name, ManagedTestService::start(*act))).collect();
    let unused_address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut rows: Vec<_> = services.iter().map(|(name, service)| (*name, service.address)).collect();
    rows.push(("absent", unused_address));
    let config = configure(&world, &rows, ", managed_proxy_timeout_seconds: 1");
    let node = Node::start(&world, &["--config", &config]);
    let whys = acts.iter().map(|(name, _, why)| (*name, *why)).chain([("absent", "no connection")]);
    for (name, why) in whys {
        let asked = Instant::now();
        let answered = pass(&node, name, &get());
        assert_eq!(answered.status, 502, "{name} {}", answered.json());
        assert_eq!(answered.json()["type"], "urn:cynodeai:error:upstream");
        assert!(answered.json()["detail"].as_str().unwrap().contains(why), "{name} {}", answered.json());
        assert!(asked.elapsed() < Duration::from_secs(20), "{name}");
    }
    let ended = recorded(&world.path().join("state/node/audit"), "managed_service_call_ended");
    assert_eq!(ended.len(), 6);
    assert!(ended.iter().all(|ended| ended["status"].is_null() && ended["error"].is_string()), "{ended:?}");
}

#[test]
fn redirect_is_not_followed_and_malformed_request_is_not_sent() {
    fn elsewhere(stream: &mut TcpStream, _: &str) {
        let _ = stream
            .write_all(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
    }
    let world = World::new(crate::BELLJAR);
    let service = ManagedTestService::start(elsewhere);
    let node = Node::start(&world, &["--config", &configure(&world, &[("main", service.address)], "")]);
    let answered = pass(&node, "main", &get()).json();
    assert_eq!((&answered["status"], &answered["headers"]), (&json!(302), &json!({})));

    let with = |member: &str, value: Value| {
        let mut request = get();
        request[member] = value;
        request
    };
    for (bad, place) in [
        (with("path", json!("//127.0.0.1:1/")), "$.path"),
        (with("path", json!("http://127.0.0.1:1/")), "$.path"),
        (with("path", json!("/a\r\nhost: b")), "$.path"),
        (with("headers", json!({ "host": ["b"] })), "$.headers.host"),
        (with("headers", json!({ "accept": ["a\r\nhost: b"] })), "$.headers.accept"),
        (with("method", json!("CONNECT")), "$.method"),
        (with("url", json!("http://127.0.0.1:1/")), "$.url"),
    ] {
        let answered = pass(&node, "main", &bad);
        assert_eq!(answered.status, 400, "{bad} {}", answered.json());
        assert_eq!(answered.json()["problems"][0]["path"], place, "{bad} {}", answered.json());
    }
    assert_eq!(pass(&node, "other", &get()).status, 404);
    assert_eq!(service.heard().len(), 1, "the service received none of these");
    drop(node);
    let none = Node::start(&world, &[]);
    assert_eq!(pass(&none, "main", &get()).status, 404);
}

#[test]
fn client_disconnect_cancels_the_upstream_request() {
    fn waits(stream: &mut TcpStream, _: &str) {
        // Wait until the peer closes the connection.
        let _ = stream.read(&mut [0]);
    }
    let world = World::new(crate::BELLJAR);
    let service = ManagedTestService::start(waits);
    let node = Node::start(&world, &["--config", &configure(&world, &[("main", service.address)], "")]);
    let body = get().to_string();
    let mut client = TcpStream::connect(node.address()).unwrap();
    let head = format!(
        "POST /v1/worker/managed-services/main/proxy:http HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        belljar_testkit::node::TOKEN,
        body.len()
    );
    client.write_all(head.as_bytes()).unwrap();
    until(|| !service.heard().is_empty());
    drop(client);
    let audit = world.path().join("state/node/audit");
    until(|| !recorded(&audit, "managed_service_call_ended").is_empty());
    let ended = recorded(&audit, "managed_service_call_ended");
    assert_eq!(ended[0]["error"], "the caller disconnected");
}

#[test]
fn invalid_service_configuration_is_refused_with_its_location() {
    let world = World::new(crate::BELLJAR);
    for (services, place) in [
        ("[{ id: a, type: b, url: \"ftp://h/\" }]", "node.managed_services[0].url"),
        ("[{ id: a, type: b, url: \"http://u@h/\" }]", "node.managed_services[0].url"),
        ("[{ id: \"a b\", type: b, url: \"http://h/\" }]", "node.managed_services[0].id"),
        (
            "[{ id: a, type: b, url: \"http://h/\" }, { id: a, type: b, url: \"http://h/\" }]",
            "node.managed_services[1]",
        ),
        ("[{ id: a, type: b }]", "node.managed_services[0].url"),
    ] {
        world.write("config.yaml", format!("node: {{ managed_services: {services} }}\n"));
        let why = Node::refused(&world, &["--config", "config.yaml"]);
        assert!(why.contains(place), "{services}: {why}");
    }
}
