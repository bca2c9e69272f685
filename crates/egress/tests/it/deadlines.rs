//! Tests of time limits for slow clients and providers, and that other clients don't wait for them.

use crate::rig::{CHAT, Rig, RigConfig, read, request};
use belljar_egress::http1::limits::Times;
use belljar_testkit::models::{Answer, Script};
use belljar_testkit::wait;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Limits that a test waits for, and limits that it never reaches.
const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(60);
/// Pause between two bytes.
const DRIP: Duration = Duration::from_millis(50);

const PLENTY: Times =
    Times { head: LONG, keep_alive: LONG, body: LONG, connect: LONG, idle: LONG, call: LONG };

fn rig(times: Times, answer: Answer) -> Rig {
    Rig::with(RigConfig { times, ..RigConfig::default() }, Script::always(answer))
}

fn stream() -> Value {
    json!({"model": "small", "stream": true})
}

/// Sends bytes one by one until the other end closes, and returns the answer.
fn drip(rig: &Rig, first: &[u8], byte: u8) -> crate::rig::ClientAnswer {
    let mut stream = rig.connect();
    stream.write_all(first).unwrap();
    stream.set_read_timeout(Some(DRIP)).unwrap();
    let (mut told, mut room) = (Vec::new(), [0; 4096]);
    for _ in 0..200 {
        // The proxy may stop reading after a refusal.
        let _ = stream.write_all(&[byte]);
        match stream.read(&mut room) {
            Ok(0) => return told.into(),
            Ok(count) => told.extend_from_slice(&room[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return told.into(),
        }
    }
    panic!("it is waited for still");
}

#[test]
fn a_head_that_comes_byte_by_byte_or_not_at_all_is_not_waited_for() {
    let rig = rig(Times { head: SHORT, keep_alive: SHORT, ..PLENTY }, Answer::text("hello"));
    let dripped = drip(&rig, b"POST / HTTP/1.1\r\nX: ", b'a');
    assert_eq!(dripped.status, 408, "{dripped:?}");
    assert_eq!(rig.book.only().outcome.to_string(), "denied: request_timeout");
    let silent = rig.raw(b"POST /v1");
    assert_eq!(silent.status, 408, "{silent:?}");
    // A client that has requested nothing gets no answer.
    let mut idle = rig.connect();
    assert_eq!(idle.read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(rig.server.connection_count(), 0);
}

#[test]
fn a_body_that_comes_byte_by_byte_or_not_at_all_is_not_waited_for() {
    let rig = rig(Times { body: SHORT, ..PLENTY }, Answer::text("hello"));
    let exact = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{{");
    let chunked = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n");
    for first in [exact, chunked] {
        assert_eq!(drip(&rig, first.as_bytes(), b' ').status, 408, "{first}");
        assert_eq!(rig.raw(first.as_bytes()).status, 408, "{first}");
    }
    assert_eq!(rig.server.connection_count(), 0);
    // Control.
    assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, 200);
}

#[test]
fn silent_provider_times_out() {
    let times = Times { idle: SHORT, ..PLENTY };
    let before = rig(times, Answer::text("hello").after(LONG));
    let answer = before.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (504, &json!("provider_timeout")));
    let within = rig(times, Answer::text("one two three").silent_after(2));
    let answer = within.post(CHAT, "", &stream());
    assert!(answer.status == 200 && !answer.bytes.ends_with(b"0\r\n\r\n"), "{answer:?}");
    assert_eq!(within.book.only().outcome.to_string(), "failed: provider_timeout");
    wait::until(|| within.server.open_connection_count() == 0);
    // Control: a provider that sends something now and then is not idle.
    let slow = rig(times, Answer::pieces(&["a"; 12]).every(Duration::from_millis(100)));
    assert!(slow.post(CHAT, "", &stream()).bytes.ends_with(b"0\r\n\r\n"));
}

#[test]
fn endless_stream_ends_at_the_call_time_limit() {
    let times = Times { call: SHORT * 2, ..PLENTY };
    let rig = rig(times, Answer::repeated("word ", 100_000).every(Duration::from_millis(10)));
    let answer = rig.post(CHAT, "", &stream());
    assert!(answer.status == 200 && !answer.bytes.ends_with(b"0\r\n\r\n"));
    let record = rig.book.only();
    assert_eq!(record.outcome.to_string(), "failed: provider_timeout");
    assert!(record.response_bytes > 0, "{record:?}");
    wait::until(|| rig.server.open_connection_count() == 0);
}

#[test]
fn client_that_does_not_read_the_answer_times_out() {
    let large = "x".repeat(32 << 20);
    let body = json!({"id": "x", "large": large}).to_string();
    let with = [("Content-Type", "application/json")];
    let rig = rig(Times { idle: SHORT, ..PLENTY }, Answer::own(200, &with, body));
    let stalled = asked(&rig);
    wait::until(|| rig.book.records().len() == 1);
    assert_eq!(rig.book.only().outcome.to_string(), "canceled");
    wait::until(|| rig.server.open_connection_count() == 0);
    drop(stalled);
}

fn asked(rig: &Rig) -> TcpStream {
    let mut stream = rig.connect();
    stream.write_all(&request(CHAT, "", &json!({"model": "small"}))).unwrap();
    stream
}

#[test]
fn many_slow_clients_do_not_delay_others() {
    let rig = rig(PLENTY, Answer::text("hello"));
    let half = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{{");
    let slow: Vec<TcpStream> = (0..500)
        .map(|at| {
            let mut stream = rig.connect();
            let bytes = if at % 2 == 0 { half.as_bytes() } else { &half.as_bytes()[..20] };
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    assert!((0..50).all(|_| rig.post(CHAT, "", &json!({"model": "small"})).status == 200));
    drop(slow);
}

#[test]
fn upstream_connection_is_reused_for_later_clients() {
    let rig = rig(PLENTY, Answer::text("hello"));
    for _ in 0..3 {
        assert_eq!(read(asked_and_close(&rig)).status, 200);
    }
    assert_eq!(rig.server.connection_count(), 1);
}

fn asked_and_close(rig: &Rig) -> TcpStream {
    let mut stream = rig.connect();
    stream.write_all(&request(CHAT, "Connection: close\r\n", &json!({"model": "small"}))).unwrap();
    stream
}
