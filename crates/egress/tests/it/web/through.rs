//! Through another proxy: this one's own kind, as a node's is behind an orchestrator's, and one that says no.

use super::house::{House, config, outcome};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

const OPEN: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

/// What goes by a proxy that answers everybody with this, and then says back what it hears.
fn saying(answer: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                head.push(byte[0]);
            }
            let _ = tell.send(String::from_utf8_lossy(&head).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, told)
}

fn through(house: &House, url: &str, more: &str) {
    let rules = OPEN.replace("PORT", &house.port());
    house.policy.replace(config(&format!("rules:\n{rules}proxy: {{url: '{url}'{more}}}\n")));
}

#[test]
fn what_the_other_allows_passes_by_name_or_by_the_address_that_was_looked_at() {
    for names in ["here", "there"] {
        // The one behind has the upstream, and a name server of its own.
        let behind = House::with(
            "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n- {host: 127.0.0.1, ports: [PORT], networks: [127.0.0.0/8]}\n",
        );
        let mut front = House::with(OPEN);
        front.take_port_of(&behind);
        through(&front, &format!("http://{}", behind.address()), &format!(", names: {names}"));
        assert_eq!(front.get("http://up.test:PORT/x").status, 200, "{names}");
        let mut tunnel = front.tunnel("up.test:PORT").unwrap();
        tunnel.write_all(b"said through two").unwrap();
        let mut heard = [0; 16];
        tunnel.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"said through two");
        drop(tunnel);
        let asked = (front.names.asked() > 0, behind.names.asked() > 0);
        assert_eq!(asked, (names == "here", names == "there"), "one of both says where it leads");
        assert_eq!((behind.upstream.connections(), front.upstream.connections()), (2, 0));
        let address = (names == "here").then(|| "127.0.0.1".parse().unwrap());
        assert_eq!(front.ledger.latest(2).address, address);
        // What this one doesn't allow, the other never hears of.
        let before = behind.ledger.begun().len();
        assert_eq!(front.get("http://other.test:PORT/x").code(), "not_allowed");
        assert_eq!(behind.ledger.begun().len(), before);
    }
}

#[test]
fn what_the_other_refuses_is_told_and_so_is_one_that_is_not_there() {
    for (answer, code) in [
        ("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "refused_by_upstream_proxy"),
        ("HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", "refused_by_upstream_proxy"),
        ("HTTP/1.1 301 There\r\nLocation: http://x/\r\n\r\n", "refused_by_upstream_proxy"),
        ("what is this\r\n\r\n", "unreachable"),
        ("", "unreachable"),
    ] {
        let house = House::with(OPEN);
        let (url, asked) = saying(answer);
        through(&house, &url, "");
        let told = house.tunnel("up.test:PORT").unwrap_err();
        assert_eq!((told.status, told.code()), (502, code), "{answer}");
        let line = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", house.port());
        assert!(asked.recv().unwrap().starts_with(&line));
        assert_eq!(outcome(&house.ledger.latest(1)), format!("failed: {code}"));
        assert_eq!(house.upstream.connections(), 0);
    }
    let house = House::with(OPEN);
    through(&house, "http://127.0.0.1:1", "");
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "unreachable");
}

#[test]
fn the_other_is_told_who_asks_and_nobody_inside_is() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("known"), "node:its-password\n").unwrap();
    let house = House::with(OPEN);
    let (url, asked) = saying("HTTP/1.1 200 OK\r\n\r\nfirst words");
    let file = folder.path().join("known").display().to_string();
    through(&house, &url, &format!(", credential: {{file: {file}}}"));
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    let mut heard = [0; 11];
    tunnel.read_exact(&mut heard).unwrap();
    // Who speaks first at the other end may do so in the same breath.
    assert_eq!(&heard, b"first words");
    let head = asked.recv().unwrap();
    let expected = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("node:its-password"));
    assert!(head.contains(&expected), "{head}");
}

#[test]
fn who_is_excepted_is_reached_without_it() {
    let house = House::with(OPEN);
    through(&house, "http://127.0.0.1:1", ", except: [up.test]");
    assert_eq!(house.get("http://up.test:PORT/x").status, 200);
    assert_eq!(house.upstream.connections(), 1);
}
