//! Bytes that two servers could understand in two ways never reach the second.

use crate::rig::{CHAT, Rig, request};
use belljar_testkit::models::{Answer, Script};
use serde_json::json;
use std::io::Write;

fn hello() -> Rig {
    Rig::new(Script::always(Answer::text("hello")))
}

/// What a smuggler hides behind a first request.
const HIDDEN: &str = "POST /key/generate HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";

#[test]
fn no_ambiguous_request_reaches_a_provider_nor_anything_hidden_behind_it() {
    let rig = hello();
    let body = "{\"model\":\"small\"}";
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let length = body.len();
    let heads = [
        format!("Content-Length: {length}\r\nContent-Length: {}", length + HIDDEN.len()),
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity".to_owned(),
        "Transfer-Encoding: chunked, chunked".to_owned(),
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked".to_owned(),
        "Transfer-Encoding: \u{b}chunked".to_owned(),
        "Transfer-Encoding : chunked".to_owned(),
        "Transfer-Encoding:\n chunked".to_owned(),
        "X: y\nTransfer-Encoding: chunked".to_owned(),
        "X: y\rTransfer-Encoding: chunked".to_owned(),
        "X: y\r\n\rTransfer-Encoding: chunked".to_owned(),
        format!("Content-Length: {length}\r\nX: \0"),
        format!("Content-Length: +{length}"),
        format!("Content-Length: {length},{length}"),
        format!("Content-Length: 0{length}a"),
        format!("Host: b\r\nContent-Length: {length}"),
        format!("Expect: 200-ok\r\nContent-Length: {length}"),
    ];
    for head in &heads {
        for body in [body, chunked.as_str()] {
            let bytes = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n{body}{HIDDEN}");
            let answer = rig.raw(bytes.as_bytes());
            assert_eq!(answer.status, 400, "{head:?}: {answer:?}");
            assert_eq!(answer.head.matches("http/1.1").count(), 1, "{head:?}: {answer:?}");
            assert!(!answer.body.contains("HTTP/1.1"), "{head:?}: {answer:?}");
        }
    }
    for body in [
        format!("{:x};x=y\r\n{body}\r\n0\r\n\r\n", body.len()),
        format!("{:x}\n{body}\n0\n\n", body.len()),
        format!("{:x}\r\n{body}0\r\n\r\n", body.len()),
        format!("{:x}\r\n{body}\r\n0\r\nX: y\r\n\r\n", body.len()),
        format!("0x{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
        format!(" {:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
        format!("fffffffffffffffff\r\n{body}"),
    ] {
        let bytes =
            format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}{HIDDEN}");
        let answer = rig.raw(bytes.as_bytes());
        assert_eq!(answer.status, 400, "{body:?}: {answer:?}");
    }
    assert_eq!((rig.server.request_count(), rig.server.connection_count()), (0, 0));
    let all = rig.book.records().len();
    assert_eq!(all, 2 * heads.len() + 7, "one record each");
    // The control: the same, said in one way.
    for (head, body) in
        [(format!("Content-Length: {length}"), body), ("Transfer-Encoding: chunked".to_owned(), &chunked)]
    {
        let bytes = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}\r\n\r\n{body}");
        assert_eq!(rig.raw(bytes.as_bytes()).status, 200, "{head}");
    }
    assert!(rig.server.flawed().is_empty());
    assert_eq!(rig.server.request_count(), 2);
}

#[test]
fn requests_that_follow_each_other_are_each_judged() {
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
    // By one connection: whoever calls again needn't wait for a new one.
    assert_eq!(rig.server.connection_count(), 1);
}

#[test]
fn what_is_too_large_is_refused_by_what_is_too_large() {
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
fn a_client_that_waits_to_be_told_to_send_is_told() {
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
