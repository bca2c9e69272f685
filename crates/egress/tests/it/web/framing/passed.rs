//! Valid requests: everything that the upstream gets, to the byte.

use super::ALLOWED;
use crate::web::house::ProxyRig;
use std::io::{Read, Write};

const END: &str = "connection: close\r\n\r\n";

/// Part that is sent after a host, and the part that the upstream gets after its own.
pub(super) const FORMS: &[(&str, &str, &str)] = &[
    // Bodies, as long as they say.
    ("POST", "Content-Length: 5\r\n\r\nhello", "content-length: 5\r\nEND|hello"),
    ("POST", "content-length:\t 005 \t\r\n\r\nhello", "content-length: 5\r\nEND|hello"),
    ("POST", "Content-Length: 0\r\n\r\n", "content-length: 0\r\nEND|"),
    ("DELETE", "Content-Length: 2\r\n\r\n{}", "content-length: 2\r\nEND|{}"),
    ("GET", "Content-Length: 5\r\n\r\nhello", "content-length: 5\r\nEND|hello"),
    ("PATCH", "", "END|"),
    // In chunks, as they came.
    (
        "POST",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\nEND|5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "POST",
        "transfer-encoding: \tCHUNKED\t\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\nEND|0\r\n\r\n",
    ),
    (
        "POST",
        "Transfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n000\r\n\r\n",
        "transfer-encoding: chunked\r\nEND|0005\r\nhello\r\n000\r\n\r\n",
    ),
    (
        "PUT",
        "Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\nb\r\n01234567890\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\nEND|A\r\n0123456789\r\nb\r\n01234567890\r\n0\r\n\r\n",
    ),
    // A body contains neither a request nor an end.
    (
        "POST",
        "Content-Length: 42\r\n\r\nGET /hidden HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "content-length: 42\r\nEND|GET /hidden HTTP/1.1\r\nHost: other.test\r\n\r\n",
    ),
    (
        "POST",
        "Transfer-Encoding: chunked\r\n\r\n9\r\n\r\n0\r\n\r\nGE\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\nEND|9\r\n\r\n0\r\n\r\nGE\r\n0\r\n\r\n",
    ),
    // Other protocols are not requested, because the proxy doesn't support any.
    (
        "GET",
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
        "sec-websocket-version: 13\r\nEND|",
    ),
    (
        "GET",
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
        "END|",
    ),
    ("GET", "Upgrade: TLS/1.2\r\n\r\n", "END|"),
    // Hop-by-hop headers, and headers with similar names.
    (
        "POST",
        "TE: trailers, chunked\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\nEND|0\r\n\r\n",
    ),
    (
        "POST",
        "Transfer_Encoding: chunked\r\nContent_Length: 3\r\nContent-Length: 5\r\n\r\nhello",
        "content-length: 5\r\nEND|hello",
    ),
    ("GET", "X-Transfer-Encoding: chunked\r\n\r\n", "x-transfer-encoding: chunked\r\nEND|"),
    ("GET", "X:\t a\tb \t\r\nY:\r\n\r\n", "x: a\tb\r\ny: \r\nEND|"),
];

#[test]
fn valid_request_reaches_the_upstream_byte_for_byte() {
    for (method, sent, heard) in FORMS {
        let house = ProxyRig::with(ALLOWED);
        let sent = if sent.is_empty() { "\r\n" } else { sent };
        let request = format!("{method} http://up.test:PORT/x HTTP/1.1\r\nHost: up.test:PORT\r\n{sent}");
        let told = house.send(request.as_bytes());
        assert_eq!(told.status, 200, "{request:?}: {told:?}");
        let (head, body) = heard.split_once("END|").unwrap();
        let expected = format!("{method} /x HTTP/1.1\r\nhost: up.test:{}\r\n{head}{END}{body}", house.port());
        assert_eq!(house.upstream.said(), [expected], "{request:?}");
    }
}

/// Sequences of requests on one connection, the statuses of all answers, and the first lines that the upstream gets.
pub(super) const SEQUENCES: &[(&str, &[u16], &[&str])] = &[
    // An HTTP/1.0 client gets one answer, whatever it states about its connection.
    (
        "GET http://up.test:PORT/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET http://up.test:PORT/2 HTTP/1.0\r\n\r\n",
        &[200],
        &["GET /1"],
    ),
    (
        "GET http://up.test:PORT/1 HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\nGET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[200],
        &["GET /1"],
    ),
    (
        "GET http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\nConnection: close\r\n\r\nGET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[200],
        &["GET /1"],
    ),
    // Each request is decided about by itself, also after a body.
    (
        "POST http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 5\r\n\r\nhelloGET http://other.test/2 HTTP/1.1\r\nHost: other.test\r\n\r\n",
        &[200, 403],
        &["POST /1"],
    ),
    (
        "POST http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://other.test/2 HTTP/1.1\r\nHost: other.test\r\n\r\n",
        &[200, 403],
        &["POST /1"],
    ),
    (
        "GET http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\nCONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n",
        &[200, 403],
        &["GET /1"],
    ),
    (
        "GET http://other.test/1 HTTP/1.1\r\nHost: other.test\r\n\r\nGET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[403, 200],
        &["GET /2"],
    ),
    // After a refused request with a body, nothing more is read.
    (
        "POST http://other.test/1 HTTP/1.1\r\nHost: other.test\r\nContent-Length: 5\r\n\r\nGET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[403],
        &[],
    ),
    // A length that is too short leaves an invalid request.
    (
        "POST http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\nContent-Length: 3\r\n\r\nhel, GET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[200, 400],
        &["POST /1"],
    ),
    (
        "POST http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n\r\nGET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[200, 400],
        &["POST /1"],
    ),
    // An unreadable request ends the connection.
    (
        "GET http://up.test:PORT/1 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET http://up.test:PORT/2 HTTP/1.1\r\nHost: up.test:PORT\r\n\r\n",
        &[200, 400],
        &["GET /1"],
    ),
];

#[test]
fn pipelined_requests_are_judged_separately_or_dropped() {
    for (sent, statuses, heard) in SEQUENCES {
        let house = ProxyRig::with(ALLOWED);
        let mut stream = house.connect();
        stream.write_all(&house.filled(sent.as_bytes())).unwrap();
        // While another request may follow, the proxy doesn't close the connection.
        if statuses.last() == Some(&200) || statuses.last() == Some(&403) {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        let found: Vec<u16> = text
            .match_indices("HTTP/1.1 ")
            .filter_map(|(at, _)| text[at + 9..at + 12].parse().ok())
            .collect();
        assert_eq!(&found, statuses, "{sent:?}: {text}");
        let begun: Vec<String> = house
            .upstream
            .said()
            .iter()
            .map(|said| said.split(" HTTP/").next().unwrap().to_owned())
            .collect();
        assert_eq!(&begun, heard, "{sent:?}");
        assert_eq!(house.upstream.connections(), heard.len(), "{sent:?}");
    }
}
