//! PX4: a redirect isn't a permission: the client's next request is checked like any other.

use super::policy;
use crate::BELLJAR;
use belljar_testkit::world::World;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A server that redirects `/to/URL` to that URL, responds `arrived` to other requests, and keeps the requests.
struct RedirectServer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

// === impl RedirectServer ===

impl RedirectServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let theirs = Arc::clone(&heads);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let (status, location) = match path.strip_prefix("/to/") {
                    Some(url) => ("302 Found", format!("Location: {url}\r\n")),
                    None if path == "/round" => ("307 Temporary Redirect", "Location: /round\r\n".to_owned()),
                    None => ("200 OK", String::new()),
                };
                theirs.lock().unwrap().push(head.to_ascii_lowercase());
                let _ = stream.write_all(
                    format!("HTTP/1.1 {status}\r\n{location}Content-Length: 8\r\nConnection: close\r\n\r\narrived\n").as_bytes(),
                );
            }
        });
        Self { address, heads }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn allow(world: &World, ports: &[u16]) {
    let ports = Vec::from_iter(ports.iter().map(ToString::to_string)).join(", ");
    policy(world, &format!("[{{host: localhost, ports: [{ports}], networks: [127.0.0.0/8, \"::1\"]}}]"));
}

/// Follows redirects, with a credential for the first server. Returns the output and the exit code.
fn follow(world: &World, url: &str) -> (String, i32) {
    let curl = "unset NO_PROXY no_proxy; curl -sL --max-redirs 20 -H 'Proxy-Authorization: Basic hidden' -u user:word -w '%{http_code} %{num_redirects}' \"$WHERE\"";
    let there = format!("WHERE={url}");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "-e", &there, "--", "sh", "-c", curl]);
    (ran.stdout, ran.code)
}

#[test]
fn redirect_is_followed_only_if_a_rule_allows_its_target() {
    let (world, server, other) = (World::new(BELLJAR), RedirectServer::start(), RedirectServer::start());
    let (port, others) = (server.port(), other.port());
    allow(&world, &[port]);
    for elsewhere in [
        format!("http://localhost:{others}/"),
        format!("http://127.0.0.1:{others}/"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://other.example:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("//localhost:{others}/"),
    ] {
        let (told, _) = follow(&world, &format!("http://localhost:{port}/to/{elsewhere}"));
        assert!(told.contains("urn:belljar:egress:") && !told.contains("arrived"), "{elsewhere}: {told}");
        assert!(told.ends_with("403 1") || told.ends_with("400 1"), "{elsewhere}: {told}");
    }
    // To another scheme, which would need a tunnel; and to a URL for which a client asks no proxy.
    for elsewhere in [format!("https://localhost:{others}/"), "file:///etc/passwd".to_owned()] {
        let (told, code) = follow(&world, &format!("http://localhost:{port}/to/{elsewhere}"));
        assert!(code != 0 && !told.contains("root:"), "{elsewhere}: {told}");
    }
    assert!(other.heads().is_empty());
    // In a loop: each request is checked, until the client gives up.
    let before = server.heads().len();
    let (told, code) = follow(&world, &format!("http://localhost:{port}/round"));
    assert!(code == 47 && told.ends_with("307 20"), "{told} {code}");
    assert_eq!(server.heads().len() - before, 21);
    let recorded = world.run(&["audit", "show", "--json", "--kind", "egress_begun"]).succeeded();
    assert_eq!(recorded.stdout.lines().count(), server.heads().len());
    // The control: with a rule for the other server the client gets there, without the credentials for the first server and
    // the proxy.
    allow(&world, &[port, others]);
    let (told, _) = follow(&world, &format!("http://localhost:{port}/to/http://localhost:{others}/"));
    assert_eq!(told, "arrived\n200 1");
    let heads = other.heads();
    assert!(heads.len() == 1 && !heads[0].contains("authorization"), "{heads:?}");
    let firsts = server.heads();
    assert!(
        firsts.iter().all(|head| head.contains("\nauthorization: ") && !head.contains("proxy-")),
        "{firsts:?}"
    );
}
