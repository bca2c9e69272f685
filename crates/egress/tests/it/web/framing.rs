//! Tests of requests that two parsers could read differently: they are refused, or forwarded unambiguously. The upstream gets
//! exactly the requests that were allowed.

mod answers;
mod passed;
mod refused;

use super::house::{ProxyRig, UP};
use crate::tls::authority::{Authority, NOW};
use std::collections::HashSet;

const ALLOWED: &str = "- {host: up.test, ports: [PORT], networks: [127.0.0.0/8]}\n";

/// Heads and bodies that are never forwarded.
const REFUSED: &[&str] = &[
    "GET http://up.test:PORT/ HTTP/1.1\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nHost: other.test\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost:\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost : up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\n Host: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n folded: x\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\tfolded\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\nHost: up.test:PORT\n\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\rX: y\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX: a\0b\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX: a\x0bb\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX y\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n: y\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX(y): z\r\n\r\n",
    "GET  http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/  HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET\thttp://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    " GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "\r\nGET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/1.2\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/2.0\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/ HTTP/0.9\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/\r\n\r\n",
    "GET http://up.test:PORT/ http/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "G@T http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 5, 5\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: +5\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: -1\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 0x5\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 5 5\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length:\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.0\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nExpect: 200-ok\r\nContent-Length: 0\r\n\r\n",
    "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nExpect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    "CONNECT up.test:PORT HTTP/1.1\r\n\r\n",
    "CONNECT up.test:PORT HTTP/1.1\r\nHost: other.test:PORT\r\n\r\n",
    "CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:1\r\n\r\n",
    "CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 4\r\n\r\nbody",
    "CONNECT up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "CONNECT up.test HTTP/1.1\r\nHost: up.test\r\n\r\n",
    "CONNECT http://up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "CONNECT /up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "connect up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET //up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http:/up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http:up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT/#x HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT\\@other.test/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://other.test@up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET http://up.test:PORT@other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
    "GET http://up.test:PORT:80/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET https://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET gopher://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET file:///etc/passwd HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "GET /http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00",
    "SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "\x05\x01\x00\r\n\r\n",
];

/// Malformed chunked bodies: the request begins, and never ends.
const BROKEN_BODIES: &[&str] = &[
    "5;x=y\r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    " 5\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "g\r\nhello\r\n0\r\n\r\n",
    "\r\n5\r\nhello\r\n0\r\n\r\n",
    "ffffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    "00000000000000000005\r\nhello\r\n0\r\n\r\n",
    "0\r\nX: y\r\n\r\n",
    "0\r\n \r\n\r\n",
    "5\r\nhello\r\n0\r\n\rX",
];

/// Valid requests, and what the upstream gets of each.
const PASSED_ON: &[(&str, &str)] = &[
    ("GET http://up.test:PORT/a HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "GET /a HTTP/1.1"),
    ("GET http://up.test:PORT HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "GET / HTTP/1.1"),
    ("GET http://up.test:PORT?q HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "GET /?q HTTP/1.1"),
    ("GET HTTP://UP.test:PORT/ HTTP/1.1\r\nHost: Up.Test.:PORT\r\n\r\n", "GET / HTTP/1.1"),
    ("GET http://up.test:PORT/ HTTP/1.0\r\n\r\n", "GET / HTTP/1.1"),
    ("HEAD http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "HEAD / HTTP/1.1"),
    ("OPTIONS http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n", "OPTIONS / HTTP/1.1"),
    (
        "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1",
    ),
    ("GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nX:y\r\n\r\n", "x: y"),
    (
        "GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nAccept: a\r\nAccept: b\r\n\r\n",
        "accept: b",
    ),
];

#[test]
fn ambiguous_proxy_request_is_refused() {
    let house = ProxyRig::with(ALLOWED);
    let more = refused::requests();
    for request in REFUSED.iter().copied().chain(more.iter().map(String::as_str)) {
        let told = house.send(request.as_bytes());
        // A request whose head never ends gets no answer.
        assert!((400..500).contains(&told.status) || told.text.is_empty(), "{request:?}: {told:?}");
        assert!(told.text.matches("HTTP/1.1 4").count() <= 1, "{request:?}: {told:?}");
    }
    assert_eq!((house.upstream.connections(), house.names.asked()), (0, 0));
}

/// Ambiguous requests in intercepted connections, as far as applicable, and other protocols.
#[test]
fn ambiguous_request_in_an_intercepted_connection_is_refused() {
    let authority = Authority::new("house");
    let rules =
        "rules:\n- {host: up.test, ports: [PORT], networks: [127.0.0.0/8], inspect: true}\nauthorities: CA\n";
    let house = ProxyRig::looking_into(rules, authority.server(UP, NOW), &authority);
    let behind = "Host: up.test:PORT\r\n\r\n";
    let headers = refused::HEADERS.iter().map(|header| {
        format!("POST / HTTP/1.1\r\nHost: up.test:PORT\r\n{header}\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n{behind}")
    });
    let hosts = refused::HOSTS
        .iter()
        .map(|host| format!("GET / HTTP/1.1\r\n{host}\r\n\r\nGET / HTTP/1.1\r\n{behind}"));
    let lines = [
        // HTTP/2 by prior knowledge, and requests for proxies.
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_owned(),
        format!("GET http://up.test:PORT/ HTTP/1.1\r\n{behind}"),
        format!("GET https://up.test:PORT/ HTTP/1.1\r\n{behind}"),
        format!("CONNECT up.test:PORT HTTP/1.1\r\n{behind}"),
        format!("GET up.test:PORT/ HTTP/1.1\r\n{behind}"),
        format!("GET / HTTP/1.1 \r\n{behind}"),
        format!("GET /\0 HTTP/1.1\r\n{behind}"),
        format!("GET /#x HTTP/1.1\r\n{behind}"),
        format!("GET  / HTTP/1.1\r\n{behind}"),
        format!("\r\nGET / HTTP/1.1\r\n{behind}"),
    ];
    for asked in headers.chain(hosts).chain(lines) {
        let told = house.ask_inside("up.test:PORT", UP, asked.as_bytes()).unwrap();
        assert_eq!((told.status, told.text.matches("HTTP/1.1 4").count()), (400, 1), "{asked:?}: {told:?}");
        assert!(!told.text.contains("HTTP/1.1 2"), "{asked:?}: {told:?}");
    }
    assert_eq!((house.upstream.connections(), house.names.asked()), (0, 0));
    // Controls: other protocols that are offered and not used.
    for upgrade in ["websocket", "h2c", "HTTP/2.0"] {
        let told = house.get_inside("/", &format!("Upgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"));
        assert!(told.status == 200 && !house.upstream.heads().pop().unwrap().contains("upgrade"), "{told:?}");
    }
}

/// Each case once; requests inside of tunnels are counted separately.
#[test]
fn framing_cases_are_distinct_and_as_many_as_documented() {
    let requests = REFUSED.iter().map(|request| (*request).to_owned()).chain(refused::requests());
    let requests = requests.chain(BROKEN_BODIES.iter().map(|body| (*body).to_owned()));
    let requests = requests.chain(PASSED_ON.iter().map(|(request, _)| (*request).to_owned()));
    let requests = requests.chain(passed::FORMS.iter().map(|(method, sent, _)| format!("{method} {sent}")));
    let requests = requests.chain(passed::SEQUENCES.iter().map(|(sent, ..)| (*sent).to_owned()));
    let requests: Vec<String> = requests.collect();
    let answers = answers::ANSWERS.iter().map(|(answer, _)| *answer).chain(answers::HEADS.iter().copied());
    let answers: Vec<&str> = answers.collect();
    // An answer to `GET` may also be one to `HEAD`.
    let different = HashSet::<&String>::from_iter(&requests).len() + answers.len();
    assert_eq!(different, requests.len() + answers.len(), "some stand twice");
    assert!(requests.len() >= 180 && answers.len() >= 60, "{} and {}", requests.len(), answers.len());
}

#[test]
fn malformed_body_is_never_interpreted_as_a_request() {
    for body in BROKEN_BODIES {
        let house = ProxyRig::with(ALLOWED);
        let head =
            "POST http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n";
        // A server that reads the body differently would take what follows for a request.
        let hidden = "GET http://up.test:PORT/hidden HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n";
        let told = house.send(format!("{head}{body}{hidden}").as_bytes());
        assert_eq!((told.status, told.text.matches("HTTP/1.1 4").count()), (400, 1), "{body:?}: {told:?}");
        let said = house.upstream.said();
        assert!(said.len() <= 1 && !said.join("").contains("hidden"), "{body:?}: {said:?}");
        assert_eq!(house.upstream.connections(), 1, "{body:?}");
    }
}

#[test]
fn valid_request_is_forwarded_once_in_canonical_form() {
    for (request, expected) in PASSED_ON {
        let house = ProxyRig::with(ALLOWED);
        let told = house.send(request.as_bytes());
        assert_eq!(told.status, 200, "{request:?}: {told:?}");
        let heads = house.upstream.heads();
        assert_eq!(heads.len(), 1, "{request:?}: {heads:?}");
        assert!(
            heads[0].contains(expected) && heads[0].contains("connection: close"),
            "{request:?}: {heads:?}"
        );
        assert!(heads[0].contains(&format!("host: up.test:{}", house.upstream.address.port())), "{heads:?}");
    }
}

#[test]
fn each_request_of_a_connection_is_judged_separately() {
    let house = ProxyRig::with(ALLOWED);
    let told = house.send(
        b"GET http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\nGET http://other.test/2 HTTP/1.1\r\nHost: other.test\r\n\r\n\
          GET http://up.test:PORT/3 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
    );
    let statuses: Vec<_> =
        told.text.match_indices("HTTP/1.1 ").map(|(at, _)| &told.text[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "403", "200"], "{told:?}");
    let paths: Vec<_> = house.upstream.heads().iter().map(|head| head[4..6].to_owned()).collect();
    assert_eq!(paths, ["/1", "/3"]);
}

#[test]
fn hop_by_hop_and_client_identity_headers_are_removed() {
    let house = ProxyRig::with(ALLOWED);
    house.send(
        b"GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\nProxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n\
          Connection: close, X-Private, authorization\r\nX-Private: y\r\nAuthorization: Bearer z\r\nKeep-Alive: 1\r\nTE: trailers\r\n\
          Upgrade: websocket\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=x\r\nVia: me\r\nX-Real-IP: 1\r\nAccept: stays\r\n\r\n",
    );
    let head = house.upstream.heads()[0].to_ascii_lowercase();
    let host = format!("host: up.test:{}", house.upstream.address.port());
    assert_eq!(head, format!("get / http/1.1\r\n{host}\r\naccept: stays\r\nconnection: close"));
}

#[test]
fn request_head_size_and_header_count_are_limited() {
    let house = ProxyRig::with(ALLOWED);
    let head = |more: &str| format!("GET http://up.test:PORT/ HTTP/1.1\r\nHost: up.test:PORT\r\n{more}\r\n");
    let long = house.send(head(&format!("X: {}\r\n", "y".repeat(64 << 10))).as_bytes());
    assert_eq!((long.status, long.code()), (431, "request_head_too_large"));
    let many: String = (0..200).map(|number| format!("X{number}: y\r\n")).collect();
    assert_eq!(house.send(head(&many).as_bytes()).code(), "malformed_request");
    let few: String = (0..50).map(|number| format!("X{number}: y\r\n")).collect();
    assert_eq!(house.send(head(&few).as_bytes()).status, 200);
    assert_eq!(house.upstream.heads().len(), 1);
}
