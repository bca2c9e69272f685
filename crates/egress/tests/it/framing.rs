//! Tests that ambiguous requests never reach a provider (request smuggling).

use crate::rig::{CHAT, Rig, request};
use belljar_testkit::models::{Answer, Script};
use serde_json::json;
use std::io::Write;

fn hello() -> Rig {
    Rig::new(Script::always(Answer::text("hello")))
}

/// Request that an attacker hides behind another one.
const HIDDEN: &str = "POST /key/generate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";

/// Headers by which another server might see another end. LENGTH is that of the body, MORE that of all that follows.
const HEADS: &[&str] = &[
    // More than one length.
    "Content-Length: LENGTH\r\nContent-Length: MORE",
    "Content-Length: LENGTH\r\nContent-Length: LENGTH",
    "content-length: LENGTH\r\nCONTENT-Length: LENGTH",
    "Content-Length: LENGTH,LENGTH",
    "Content-Length: LENGTH, MORE",
    "Content-Length: LENGTH\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: LENGTH",
    "Content-Length: LENGTH\r\nTransfer-Encoding: identity",
    "Content-Length: LENGTH\r\nTransfer-Encoding:",
    // Invalid lengths.
    "Content-Length: +LENGTH",
    "Content-Length: -LENGTH",
    "Content-Length: 0xLENGTH",
    "Content-Length: LENGTHa",
    "Content-Length: LENGTH LENGTH",
    "Content-Length: LENGTH.0",
    "Content-Length: 1e1",
    "Content-Length: 1_6",
    "Content-Length: \"LENGTH\"",
    "Content-Length: LENGTH;",
    "Content-Length:",
    "Content-Length: \u{ff11}\u{ff16}",
    "Content-Length: 99999999999999999999999999",
    // Codings.
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, gzip",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: chunk",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: 'chunked'",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: chunked chunked",
    "Transfer-Encoding: cow",
    "Transfer-Encoding:",
    "Transfer-Encoding: \u{b}chunked",
    "Transfer-Encoding: \u{c}chunked",
    "Transfer-Encoding: chunked\u{b}",
    "Transfer-Encoding: chunked\u{1}",
    "Transfer-Encoding: \u{a0}chunked",
    "Transfer-Encoding: chunked\0",
    // Names.
    "Transfer-Encoding : chunked",
    "Transfer-Encoding\t: chunked",
    "Transfer-Encoding\0: chunked",
    " Transfer-Encoding: chunked",
    "\tTransfer-Encoding: chunked",
    "Content-Length : LENGTH",
    "Content Length: LENGTH",
    "X Y: z\r\nContent-Length: LENGTH",
    "X\u{7f}: y\r\nContent-Length: LENGTH",
    "X(: y\r\nContent-Length: LENGTH",
    "X\u{e4}: y\r\nContent-Length: LENGTH",
    ": y\r\nContent-Length: LENGTH",
    "X\r\nContent-Length: LENGTH",
    "\"X\": y\r\nContent-Length: LENGTH",
    // Lines.
    "Transfer-Encoding:\n chunked",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding:\r\n\tchunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
    "X: y\r\n\rTransfer-Encoding: chunked",
    "X: y\r\r\nTransfer-Encoding: chunked",
    "X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: LENGTH",
    "X: y\r\n\tz\r\nContent-Length: LENGTH",
    "X: y\n\nContent-Length: LENGTH",
    "Content-Length: LENGTH\r\nX: \0",
    "Content-Length: LENGTH\r\nX: a\0b",
    "Content-Length: LENGTH\r\nX: \u{1}",
    "Content-Length: LENGTH\r\nX: \u{7f}",
    "Content-Length: LENGTH\r\nX: \u{1b}[31m",
    // Hosts, and what is expected.
    "Host: b\r\nContent-Length: LENGTH",
    "Host: a\r\nContent-Length: LENGTH",
    "host: a\r\nContent-Length: LENGTH",
    "Expect: 200-ok\r\nContent-Length: LENGTH",
    "Expect: 100-continue, x\r\nContent-Length: LENGTH",
    "Expect:\r\nContent-Length: LENGTH",
    "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: LENGTH",
];

/// Chunks that another server might split differently; SIZE is that of BODY.
const CHUNKS: &[&str] = &[
    "SIZE;x=y\r\nBODY\r\n0\r\n\r\n",
    "SIZE;\r\nBODY\r\n0\r\n\r\n",
    "SIZE;\"\r\nBODY\r\n0\r\n\r\n",
    "SIZE \r\nBODY\r\n0\r\n\r\n",
    "SIZE\t\r\nBODY\r\n0\r\n\r\n",
    " SIZE\r\nBODY\r\n0\r\n\r\n",
    "+SIZE\r\nBODY\r\n0\r\n\r\n",
    "-SIZE\r\nBODY\r\n0\r\n\r\n",
    "0xSIZE\r\nBODY\r\n0\r\n\r\n",
    "SIZEg\r\nBODY\r\n0\r\n\r\n",
    "\"SIZE\"\r\nBODY\r\n0\r\n\r\n",
    "SIZE\nBODY\n0\n\n",
    "SIZE\rBODY\r\n0\r\n\r\n",
    "SIZE\r\r\nBODY\r\n0\r\n\r\n",
    "SIZE\0\r\nBODY\r\n0\r\n\r\n",
    "SIZE\r\nBODY0\r\n\r\n",
    "SIZE\r\nBODY\n0\r\n\r\n",
    "SIZE\r\nBODY\r0\r\n\r\n",
    "SIZE\r\nBODYx\r\n0\r\n\r\n",
    "SIZE\r\nBODY\r\n0\r\nX: y\r\n\r\n",
    "SIZE\r\nBODY\r\n0\r\nContent-Length: 5\r\n\r\n",
    "SIZE\r\nBODY\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "SIZE\r\nBODY\r\n0;x\r\n\r\n",
    "SIZE\r\nBODY\r\n0\n\r\n",
    "SIZE\r\nBODY\r\n0\r\n\n",
    "SIZE\r\nBODY\r\n-0\r\n\r\n",
    "SIZE\r\nBODY\r\n\r\n",
    "\r\nSIZE\r\nBODY\r\n0\r\n\r\n",
    "000000000000000000000SIZE\r\nBODY\r\n0\r\n\r\n",
    "fffffffffffffffff\r\nBODY",
    "10000000000000010\r\nBODY",
    "x\r\nBODY\r\n0\r\n\r\n",
];

/// Request lines that are invalid for an origin server, or contain more than a path.
const LINES: &[&str] = &[
    "POST http://localhost:8080PATH HTTP/1.1",
    "POST //PATH:80 HTTP/1.1 x",
    "POST localhost:8080PATH HTTP/1.1",
    "POST * HTTP/1.1",
    "CONNECT localhost:443 HTTP/1.1",
    "POST  PATH HTTP/1.1",
    "POST PATH  HTTP/1.1",
    "POST\tPATH\tHTTP/1.1",
    "POST PATH HTTP/1.1 ",
    " POST PATH HTTP/1.1",
    "POST PATH HTTP/1.1 HTTP/1.1",
    "POST PATH HTTP/2.0",
    "POST PATH HTTP/0.9",
    "POST PATH HTTP/1.2",
    "POST PATH HTTP/1.11",
    "POST PATH HTTP/11",
    "POST PATH http/1.1",
    "POST PATH HTTPS/1.1",
    "POST PATH",
    "POST",
    "POST PA TH HTTP/1.1",
    "POST PATH#x HTTP/1.1",
    "POST PATH\0 HTTP/1.1",
    "POST PATH\u{1} HTTP/1.1",
    "POST PATH\u{e4} HTTP/1.1",
    "PO ST PATH HTTP/1.1",
    "PO\0ST PATH HTTP/1.1",
    "P(ST PATH HTTP/1.1",
    "PRI * HTTP/2.0",
    "POST PATH\rHTTP/1.1",
];

/// Redundant headers with only one interpretation.
const HARMLESS: &[&str] = &[
    "Content-Length: LENGTH",
    "content-length:LENGTH",
    "Content-Length: \t LENGTH \t",
    "Content-Length: LENGTH\r\nConnection: close, x-api-key",
    "Content-Length: LENGTH\r\nConnection: upgrade\r\nUpgrade: websocket",
    "Content-Length: LENGTH\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
    "Content-Length: LENGTH\r\nTE: trailers",
    "Content-Length: LENGTH\r\nTransfer_Encoding: chunked",
    "Content-Length: LENGTH\r\nX-Transfer-Encoding: chunked",
    "Content-Length: LENGTH\r\nX-Forwarded-Host: evil\r\nX-HTTP-Method-Override: GET\r\nForwarded: for=evil",
];

#[test]
fn ambiguous_and_smuggled_requests_never_reach_a_provider() {
    let rig = hello();
    let body = "{\"model\":\"small\"}";
    let size = format!("{:x}", body.len());
    let chunked = format!("{size}\r\n{body}\r\n0\r\n\r\n");
    let lengths = |text: &str| {
        let more = (body.len() + HIDDEN.len()).to_string();
        text.replace("LENGTH", &body.len().to_string()).replace("MORE", &more)
    };
    let mut cases: Vec<String> = Vec::new();
    for head in HEADS {
        for body in [body, chunked.as_str()] {
            cases.push(format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n{body}{HIDDEN}", lengths(head)));
        }
    }
    for chunks in CHUNKS {
        let chunks = chunks.replace("SIZE", &size).replace("BODY", body);
        let head = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked");
        cases.push(format!("{head}\r\n\r\n{chunks}{HIDDEN}"));
    }
    for line in LINES {
        let line = line.replace("PATH", CHAT);
        cases.push(format!("{line}\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}{HIDDEN}", body.len()));
    }
    cases.push(format!("POST {CHAT} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}{HIDDEN}", body.len()));
    cases
        .push(format!("\r\nPOST {CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    cases.push(format!(
        "POST {CHAT} HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}{HIDDEN}"
    ));
    assert!(cases.len() > 180, "{}", cases.len());
    for case in &cases {
        let answer = rig.raw(case.as_bytes());
        assert_eq!(answer.status, 400, "{case:?}: {answer:?}");
        assert_eq!(answer.head.matches("http/1.1").count(), 1, "{case:?}: {answer:?}");
        let answers = ["HTTP/1.1 2", "HTTP/1.1 4"].map(|begin| answer.body.matches(begin).count());
        assert_eq!(answers, [0, 0], "{case:?}: {answer:?}");
    }
    assert_eq!((rig.server.request_count(), rig.server.connection_count()), (0, 0));
    assert_eq!(rig.book.records().len(), cases.len(), "one record each");
    // Control: the same requests, unambiguous.
    let mut allowed = 0;
    for head in HARMLESS {
        let close = if head.contains("Connection") { "" } else { "Connection: close\r\n" };
        let head = lengths(head);
        let mut stream = rig.connect();
        stream
            .write_all(format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\n{close}{head}\r\n\r\n{body}").as_bytes())
            .unwrap();
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200", "{head:?}");
        allowed += 1;
    }
    let bytes = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n{chunked}"
    );
    assert_eq!(rig.raw(bytes.as_bytes()).status, 200);
    assert!(rig.server.flawed().is_empty());
    assert_eq!(rig.server.request_count(), allowed + 1, "as many as were allowed");
    assert!(rig.server.requests().iter().all(|request| request.header("upgrade").is_none()));
}

#[test]
fn pipelined_requests_are_judged_separately() {
    let rig = hello();
    let mut stream = rig.connect();
    let good = request(CHAT, "", &json!({"model": "small"}));
    let bad = request("/key/generate", "", &json!({"model": "small"}));
    stream.write_all(&[good.clone(), good, bad, HIDDEN.into()].concat()).unwrap();
    let answer = crate::rig::read(stream);
    let text = String::from_utf8_lossy(&answer.bytes).into_owned();
    assert_eq!(text.matches("HTTP/1.1 200").count(), 2, "{text}");
    assert_eq!(text.matches("HTTP/1.1 404").count(), 1, "{text}");
    assert_eq!(rig.server.request_count(), 2);
    // All use one connection: a further call needs no new one.
    assert_eq!(rig.server.connection_count(), 1);
}

#[test]
fn oversized_head_header_count_and_body_are_refused_by_status() {
    let rig = hello();
    let long = "a".repeat(17 << 10);
    let head = rig.raw(format!("GET /health HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n").as_bytes());
    assert_eq!(head.status, 431, "{head:?}");
    let many: String = (0..200).map(|at| format!("X-{at}: y\r\n")).collect();
    assert_eq!(rig.raw(format!("GET /health HTTP/1.1\r\nHost: a\r\n{many}\r\n").as_bytes()).status, 400);
    let body = rig
        .raw(format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n{{").as_bytes());
    assert_eq!(body.status, 413, "{body:?}");
    assert_eq!(rig.server.connection_count(), 0);
}

#[test]
fn expect_continue_is_answered() {
    let rig = hello();
    let mut stream = rig.connect();
    let body = json!({"model": "small"}).to_string();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut told = [0; 25];
    std::io::Read::read_exact(&mut stream, &mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).unwrap();
    assert_eq!(crate::rig::read(stream).status, 200);
}
