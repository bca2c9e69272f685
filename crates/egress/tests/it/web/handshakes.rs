//! Tests of TLS handshakes between a client and the interception authority, and of how failures are recorded.

use super::house::{ProxyRig, UP, outcome};
use crate::tls::authority::{Authority, NOW};
use belljar_contract::egress::ProxiedRequestRecord;
use belljar_egress::web::limits::WebLimits;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

const RULES: &str = "rules:
- {host: up.test, ports: [PORT], methods: [GET], networks: [127.0.0.0/8]}
- {host: up.test, ports: [1], networks: [127.0.0.0/8]}
authorities: CA
";

fn house(limits: WebLimits) -> (ProxyRig, Authority) {
    let authority = Authority::new("house");
    let vouched = authority.server(UP, NOW);
    (ProxyRig::looking_into_limited(RULES, (vouched, &authority), limits), authority)
}

/// ClientHello of TLS 1.2, whose handshake continues in plain text.
fn greeting(house: &ProxyRig) -> Vec<u8> {
    let mut session = house.session(UP, &[&rustls::version::TLS12], &[]);
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).unwrap();
    bytes
}

/// Sends these bytes in a tunnel, and returns the record.
fn said(house: &ProxyRig, bytes: &[u8]) -> ProxiedRequestRecord {
    let before = house.ledger.ended().len();
    let mut tunnel = house.tunnel("up.test:PORT").unwrap();
    tunnel.write_all(bytes).unwrap();
    tunnel.shutdown(Shutdown::Write).unwrap();
    let _ = tunnel.read_to_end(&mut Vec::new());
    house.ledger.latest(before + 1)
}

#[test]
fn untrusting_incompatible_and_disconnected_tls_clients_are_distinguished() {
    let (house, _authority) = house(WebLimits::default());
    let greeting = greeting(&house);
    let alert = |description: u8| [&greeting[..], &[21, 3, 3, 0, 2, 2, description]].concat();
    // RFC 8446 §6.2: alerts about a certificate.
    for description in [42, 43, 44, 45, 46, 48] {
        let record = said(&house, &alert(description));
        assert_eq!(outcome(&record), "failed: tls_not_trusted", "{description}");
        assert_eq!(record.tls_name.unwrap().as_str(), UP);
    }
    // All others: an unexpected message, no common ciphers, a wrong version, an internal error, an unknown one.
    for description in [10, 40, 47, 51, 70, 71, 80, 86, 109, 199] {
        let record = said(&house, &alert(description));
        assert_eq!(outcome(&record), "failed: tls_handshake_failed", "{description}");
    }
    // An invalid handshake message, and a client that sends nothing more.
    let nonsense = [&greeting[..], &[22, 3, 3, 0, 4, 99, 0, 0, 0]].concat();
    assert_eq!(outcome(&said(&house, &nonsense)), "failed: tls_handshake_failed");
    assert_eq!(outcome(&said(&house, &greeting)), "failed: broken");
    assert_eq!(house.upstream.connections(), 0);
    // Control.
    assert_eq!(house.get_inside("/", "").status, 200);
}

#[test]
fn intercepted_handshake_fails_for_clients_that_only_speak_http2() {
    let (house, _authority) = house(WebLimits::default());
    for (protocols, expected) in [(&["h2"][..], false), (&["h2", "http/1.1"], true), (&[], true)] {
        let stream = house.tunnel("up.test:PORT").unwrap();
        let session = house.session(UP, rustls::ALL_VERSIONS, protocols);
        let mut stream = rustls::StreamOwned::new(session, stream);
        let asked = house.filled(b"GET / HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\n");
        let mut text = Vec::new();
        let _ = stream.write_all(&asked).and_then(|()| stream.read_to_end(&mut text));
        assert_eq!(text.starts_with(b"HTTP/1.1 200"), expected, "{protocols:?}");
    }
    assert_eq!(outcome(&house.ledger.latest(1)), "failed: tls_handshake_failed");
}

/// Requests that many tunnels without waiting for any.
fn asked(house: &ProxyRig, count: usize) -> Vec<TcpStream> {
    let head = house.filled(b"CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n");
    let ask = |_| {
        let mut stream = house.connect();
        stream.write_all(&head).unwrap();
        stream
    };
    (0..count).map(ask).collect()
}

fn is_established(stream: &mut TcpStream) -> bool {
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).unwrap();
    &begin == b"HTTP/1.1 200"
}

/// Each tunnel is recorded, so the rate limit applies: later ones wait, and are then allowed all the same.
#[test]
fn intercepted_tunnels_are_rate_limited_like_others() {
    let paced = WebLimits { passages: (3, 1), ..WebLimits::default() };
    let (looked_into, authority) = house(paced);
    for house in
        [looked_into, ProxyRig::limited("- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n", paced)]
    {
        let mut streams = asked(&house, 24);
        // From the fourth on, one per second: the last waits for the others. A denied request doesn't wait for their rate
        // limit, and is answered after them.
        assert!(streams[..4].iter_mut().all(is_established));
        assert_eq!(house.get("http://other.test/").status, 403);
        let last = streams.last_mut().unwrap();
        last.set_nonblocking(true).unwrap();
        assert_eq!(last.read(&mut [0; 1]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        assert!(is_established(&mut streams[4]), "it has waited, and was allowed");
    }
    // Control: without a rate limit all are open at once.
    let (house, _authority) = house(WebLimits::default());
    assert!(asked(&house, 24).iter_mut().all(is_established));
    drop(authority);
}
