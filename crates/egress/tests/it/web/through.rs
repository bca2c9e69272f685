//! Tests of upstream proxies: another proxy of this kind, like an orchestrator's, and one that refuses.

use super::house::{JOB, ProxyRig, TASK, config, outcome};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

const OPEN: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

/// Starts a proxy that gives every client this answer. Returns its URL, and a receiver of the heads that it gets.
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

fn through(house: &ProxyRig, url: &str, more: &str) {
    let rules = OPEN.replace("PORT", &house.port());
    house.policy.replace(config(&format!("rules:\n{rules}proxy: {{url: '{url}'{more}}}\n")));
}

#[test]
fn upstream_proxy_gets_a_name_or_the_checked_address() {
    for names in ["here", "there"] {
        // The second proxy has the upstream, and a name server of its own.
        let behind = ProxyRig::with(
            "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n- {host: 127.0.0.1, ports: [PORT], networks: [127.0.0.0/8]}\n",
        );
        let mut front = ProxyRig::with(OPEN);
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
        assert_eq!(asked, (names == "here", names == "there"), "one of both name servers resolves it");
        assert_eq!((behind.upstream.connections(), front.upstream.connections()), (2, 0));
        let address = (names == "here").then(|| "127.0.0.1".parse().unwrap());
        assert_eq!(front.ledger.latest(2).address, address);
        // A request that the first proxy denies never reaches the second.
        let before = behind.ledger.begun().len();
        assert_eq!(front.get("http://other.test:PORT/x").code(), "not_allowed");
        assert_eq!(behind.ledger.begun().len(), before);
    }
}

#[test]
fn refusing_or_unavailable_upstream_proxy_is_reported() {
    for (answer, code) in [
        ("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "refused_by_upstream_proxy"),
        ("HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", "refused_by_upstream_proxy"),
        ("HTTP/1.1 301 There\r\nLocation: http://x/\r\n\r\n", "refused_by_upstream_proxy"),
        ("what is this\r\n\r\n", "upstream_proxy_unavailable"),
        ("", "upstream_proxy_unavailable"),
    ] {
        let house = ProxyRig::with(OPEN);
        let (url, asked) = saying(answer);
        through(&house, &url, "");
        let told = house.tunnel("up.test:PORT").unwrap_err();
        assert_eq!((told.status, told.code()), (502, code), "{answer}");
        let line = format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", house.port());
        assert!(asked.recv().unwrap().starts_with(&line));
        assert_eq!(outcome(&house.ledger.latest(1)), format!("failed: {code}"));
        assert_eq!(kept_out(&house), [("up.test".to_owned(), code)]);
        assert_eq!(house.upstream.connections(), 0);
    }
    let house = ProxyRig::with(OPEN);
    through(&house, "http://127.0.0.1:1", "");
    assert_eq!(house.tunnel("up.test:PORT").unwrap_err().code(), "upstream_proxy_unavailable");
    assert_eq!(kept_out(&house), [("up.test".to_owned(), "upstream_proxy_unavailable")]);
    // A destination that is reached later is no longer listed.
    through(&house, "http://127.0.0.1:1", ", except: [up.test]");
    assert_eq!(house.get("http://up.test:PORT/x").status, 200);
    assert_eq!(kept_out(&house), []);
}

/// Returns the destinations that the run did not reach.
fn kept_out(house: &ProxyRig) -> Vec<(String, &'static str)> {
    let listed = house.run.denials().listed.into_iter();
    listed.map(|denial| (denial.destination.host.to_string(), denial.reason)).collect()
}

const ANSWERED: &str = "HTTP/1.1 200 OK\r\nVia: 1.1 other\r\nContent-Length: 2\r\n\r\nhi";

#[test]
fn plain_http_request_is_sent_to_the_upstream_proxy_with_its_whole_url() {
    let house = ProxyRig::with(OPEN);
    let (url, asked) = saying(ANSWERED);
    through(&house, &url, ", names: there");
    assert_eq!(house.get("http://up.test:PORT/a?b=c").status, 200);
    let head = asked.recv().unwrap();
    let line = format!("GET http://up.test:{0}/a?b=c HTTP/1.1\r\nhost: up.test:{0}\r\n", house.port());
    assert!(head.starts_with(&line) && head.ends_with("connection: close\r\n\r\n"), "{head}");
    assert!(!head.to_ascii_lowercase().contains("cynode"), "{head}");
    // A request to an address goes the same way, wherever names are resolved, and so does one that the host makes.
    let rules = format!("- {{host: 127.0.0.1, ports: [{}], networks: [127.0.0.0/8]}}\n", house.port());
    for names in ["here", "there"] {
        house.policy.replace(config(&format!("rules:\n{rules}proxy: {{url: '{url}', names: {names}}}\n")));
        assert_eq!(house.get("http://127.0.0.1:PORT/").status, 200);
        let head = asked.recv().unwrap();
        assert!(head.starts_with(&format!("GET http://127.0.0.1:{}/ HTTP/1.1\r\n", house.port())), "{head}");
    }
    let _ = house.fetch("http://127.0.0.1:PORT/page");
    assert!(asked.recv().unwrap().starts_with("GET http://127.0.0.1:"));
    // Control: a name that is resolved here goes through a tunnel to the checked address.
    through(&house, &url, ", names: here");
    let _ = house.get("http://up.test:PORT/");
    assert!(asked.recv().unwrap().starts_with("CONNECT 127.0.0.1:"));
}

#[test]
fn task_and_job_are_sent_to_the_upstream_proxy_if_configured_and_not_forgeable() {
    let house = ProxyRig::with(OPEN);
    let (url, asked) = saying(ANSWERED);
    let introduced = format!("X-CyNode-Task-Id: {TASK}\r\nX-CyNode-Job-Id: {JOB}\r\n");
    let forged = b"GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX-Cynode-Task-ID: forged\r\nConnection: close\r\n\r\n";
    through(&house, &url, ", names: there, identity: true");
    assert_eq!(house.send(forged).status, 200);
    let head = asked.recv().unwrap();
    assert!(head.contains(&introduced) && !head.contains("forged"), "{head}");
    assert!(head.contains("connection: close, X-CyNode-Task-Id, X-CyNode-Job-Id\r\n"), "{head}");
    drop(house.tunnel("up.test:PORT").unwrap());
    assert!(asked.recv().unwrap().contains(&introduced));
    // Control.
    through(&house, &url, ", names: there");
    drop(house.tunnel("up.test:PORT").unwrap());
    assert!(!asked.recv().unwrap().contains("CyNode"));
}

#[test]
fn refusal_by_the_upstream_proxy_is_a_denial_and_by_a_server_is_not() {
    for (answer, status, noted) in [
        ("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", 403, Some("refused_by_upstream_proxy")),
        (
            "HTTP/1.1 503 No\r\nVia: 1.1 s\r\nX-Squid-Error: ERR_DNS_FAIL 0\r\nContent-Length: 0\r\n\r\n",
            503,
            Some("refused_by_upstream_proxy"),
        ),
        // A sandbox doesn't learn that the proxy requires authentication.
        (
            "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
            502,
            Some("refused_by_upstream_proxy"),
        ),
        ("HTTP/1.1 403 No\r\nVia: 1.1 other\r\nContent-Length: 0\r\n\r\n", 403, None),
        (ANSWERED, 200, None),
    ] {
        let house = ProxyRig::with(OPEN);
        let (url, _asked) = saying(answer);
        through(&house, &url, ", names: there");
        let told = house.get("http://up.test:PORT/x");
        assert_eq!(told.status, status, "{answer}: {told:?}");
        let noted: Vec<_> = noted.into_iter().map(|reason| ("up.test".to_owned(), reason)).collect();
        assert_eq!(kept_out(&house), noted, "{answer}");
    }
}

#[test]
fn upstream_proxy_credential_is_sent_to_the_proxy_and_hidden_from_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("known"), "node:its-password\n").unwrap();
    let house = ProxyRig::with(OPEN);
    let (url, asked) = saying("HTTP/1.1 200 OK\r\n\r\nfirst words");
    let file = folder.path().join("known").display().to_string();
    through(&house, &url, &format!(", credential: {{file: {file}}}"));
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    let mut heard = [0; 11];
    tunnel.read_exact(&mut heard).unwrap();
    // A server that speaks first may do so together with the proxy's answer.
    assert_eq!(&heard, b"first words");
    let head = asked.recv().unwrap();
    let expected = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("node:its-password"));
    assert!(head.contains(&expected), "{head}");
}

#[test]
fn upstream_proxy_credential_does_not_come_back_in_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("known"), "node:its-password\n").unwrap();
    let file = folder.path().join("known").display().to_string();
    // base64 of the credential, as a server would repeat it if it got the header.
    let repeats = "HTTP/1.1 200 OK\r\nVia: 1.1 other\r\nContent-Length: 39\r\n\r\nyou sent Basic bm9kZTppdHMtcGFzc3dvcmQ=";
    for (answer, repeated) in [(repeats, true), (ANSWERED, false)] {
        let house = ProxyRig::with(OPEN);
        let (url, asked) = saying(answer);
        through(&house, &url, &format!(", names: there, credential: {{file: {file}}}"));
        let told = house.get("http://up.test:PORT/x");
        let head = asked.recv().unwrap();
        assert!(head.contains("Proxy-Authorization: Basic bm9kZTppdHMtcGFzc3dvcmQ="), "{head}");
        assert!(!told.text.contains("bm9kZTpp"), "{told:?}");
        assert_eq!(told.text.ends_with("hi"), !repeated, "{told:?}");
    }
}

#[test]
fn excepted_host_is_reached_without_the_upstream_proxy() {
    let house = ProxyRig::with(OPEN);
    through(&house, "http://127.0.0.1:1", ", except: [up.test]");
    assert_eq!(house.get("http://up.test:PORT/x").status, 200);
    assert_eq!(house.upstream.connections(), 1);
}
