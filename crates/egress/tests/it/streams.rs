//! Tests of streamed answers, and of streams that end too early.

use crate::rig::{CHAT, Rig, RigConfig, read, request};
use belljar_contract::usage::UsageReport;
use belljar_egress::inference::budget::BudgetLimits;
use belljar_testkit::models::{Answer, AnswerOutcome, Script};
use belljar_testkit::wait;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

fn stream() -> Value {
    json!({"model": "small", "stream": true})
}

fn asked(rig: &Rig) -> TcpStream {
    let mut stream = rig.connect();
    stream.write_all(&request(CHAT, "", &self::stream())).unwrap();
    stream
}

/// Reads until the text contains this.
fn read_until(stream: &mut TcpStream, sign: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains(sign) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    text
}

#[test]
fn stream_event_is_forwarded_without_waiting_for_the_next() {
    let rig = Rig::new(Script::always(Answer::pieces(&["one", "two"]).silent_after(2)));
    let mut stream = asked(&rig);
    read_until(&mut stream, "one");
    assert!(matches!(rig.server.exchanges()[0].outcome, AnswerOutcome::Open));
}

#[test]
fn stream_is_forwarded_byte_for_byte_for_any_split() {
    // With the beginning of a key at every border.
    let begun = &crate::rig::KEY[..9];
    let event = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let all = ["it is ", begun, " or ", begun, &begun[..3], "\u{e4}", begun].map(event).concat()
        + "data: [DONE]\n\n";
    let mut state = 7_usize;
    for round in 0..24 {
        let (mut frames, mut rest) = (String::new(), all.as_str());
        while !rest.is_empty() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wanted = 1 + (state >> 33) % [1, 2, 9, 40, 400, 4_000][round % 6];
            let end =
                (wanted..).find(|end| *end >= rest.len() || rest.is_char_boundary(*end)).unwrap_or_default();
            let (piece, left) = rest.split_at(end.min(rest.len()));
            frames.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
            rest = left;
        }
        frames.push_str("0\r\n\r\n");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{frames}");
        let rig = Rig::new(Script::always(Answer::raw(chunked)));
        let answer = rig.post(CHAT, "", &stream());
        assert_eq!(answer.body, frames, "round {round}");
        assert_eq!(rig.book.only().outcome.to_string(), "completed");
        assert_eq!(rig.book.only().response_bytes, all.len() as u64);
    }
    let exact = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{all}", all.len());
    let rig = Rig::new(Script::always(Answer::raw(exact)));
    assert_eq!(rig.post(CHAT, "", &stream()).body, all);
    let until_close = format!("HTTP/1.1 200 OK\r\n\r\n{all}");
    let rig = Rig::new(Script::always(Answer::raw(until_close)));
    assert_eq!(without_frames(&rig.post(CHAT, "", &stream()).body), all);
}

/// Returns the payload of a chunked body.
fn without_frames(mut body: &str) -> String {
    let mut payload = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            assert_eq!(rest, "\r\n");
            return payload;
        }
        payload.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap();
    }
}

#[test]
fn disconnect_of_the_client_cancels_its_call() {
    for answer in [
        Answer::text("hello").silent_after(1),
        Answer::text("hello").after(std::time::Duration::from_secs(120)),
    ] {
        let rig = Rig::new(Script::always(answer));
        let stream = asked(&rig);
        wait::until(|| rig.server.request_count() == 1);
        drop(stream);
        wait::until(|| matches!(rig.server.exchanges()[0].outcome, AnswerOutcome::PeerGone { .. }));
        assert_eq!(rig.book.only().outcome.to_string(), "canceled");
    }
}

#[test]
fn truncated_answer_is_not_reported_as_complete() {
    for answer in [Answer::text("one two three").cut_in_event(2), Answer::text("hello").cut_after_bytes(20)] {
        let rig = Rig::new(Script::always(answer));
        let answer = read(asked(&rig));
        assert!(!answer.bytes.ends_with(b"0\r\n\r\n"), "{answer:?}");
        assert_eq!(rig.book.only().outcome.to_string(), "failed: provider_cut");
    }
}

#[test]
fn malformed_or_empty_provider_answer_is_reported_as_bad_gateway() {
    for (answer, status) in [
        (Answer::raw("SSH-2.0-x\r\n\r\n"), 502),
        (Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), 502),
        (Answer::hang_up(), 502),
    ] {
        let rig = Rig::new(Script::always(answer));
        let answer = rig.post(CHAT, "", &json!({"model": "small"}));
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(rig.book.only().outcome.to_string().starts_with("failed: provider_"));
    }
}

#[test]
fn end_of_the_run_cancels_and_records_its_calls() {
    let mut rig = Rig::new(Script::always(Answer::text("hello").silent_after(1)));
    let mut stream = asked(&rig);
    wait::until(|| rig.server.request_count() == 1);
    read_until(&mut stream, "data:");
    rig.end();
    assert_eq!(rig.book.only().outcome.to_string(), "canceled");
    wait::until(|| matches!(rig.server.exchanges()[0].outcome, AnswerOutcome::PeerGone { .. }));
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    // The proxy doesn't listen any more.
    assert!(TcpStream::connect(stream.peer_addr().unwrap()).is_err());
}

#[test]
fn canceled_call_is_recorded_with_its_reported_cost() {
    let begun = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nx-litellm-response-cost: 0.25\r\n\r\n{";
    let mut rig = Rig::new(Script::always(Answer::raw(begun).silent_after(0)));
    let mut stream = rig.connect();
    stream.write_all(&request(CHAT, "", &json!({"model": "small", "messages": []}))).unwrap();
    read_until(&mut stream, "\r\n\r\n{");
    rig.end();
    let record = rig.book.only();
    assert_eq!((record.outcome.to_string().as_str(), record.upstream_status), ("canceled", Some(200)));
    let report = UsageReport::of(&record).unwrap();
    assert!(!report.is_degraded() && report.ended_at >= report.started_at, "{report:?}");
    assert_eq!(report.cost_usd.unwrap().to_total().to_string(), "0.25");
}

#[test]
fn provider_that_closes_after_each_answer_fails_no_call() {
    let rig = Rig::new(Script::always(Answer::text("hello").then_closes()));
    for _ in 0..5 {
        assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, 200);
        // A request before that is known may or may not have taken effect.
        wait::until(|| rig.server.open_connection_count() == 0);
    }
    let old = Rig::new(Script::always(Answer::text("hello").of_version_1_0()));
    assert_eq!(old.post(CHAT, "", &json!({"model": "small"})).status, 200);
    assert_eq!(old.book.only().outcome.to_string(), "completed");
}

#[test]
fn http_1_0_client_gets_an_unchunked_answer() {
    let old = |answer: Answer| {
        let rig = Rig::new(Script::always(answer));
        let body = stream().to_string();
        let length = body.len();
        rig.raw(format!("POST {CHAT} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes())
    };
    for answer in [old(Answer::text("hello")), old(Answer::text("hello").of_version_1_0())] {
        assert!(answer.head.contains("connection: close"), "{answer:?}");
        assert!(!answer.head.contains("transfer-encoding"), "{answer:?}");
        assert!(answer.body.starts_with("data:") && answer.body.ends_with("data: [DONE]\n\n"), "{answer:?}");
    }
    let rig = Rig::new(Script::always(Answer::text("hello").of_version_1_0()));
    let answer = rig.post(CHAT, "", &stream());
    assert!(answer.head.contains("transfer-encoding: chunked"), "{answer:?}");
    assert!(answer.body.contains("[DONE]") && answer.bytes.ends_with(b"0\r\n\r\n"), "{answer:?}");
}

#[test]
fn disconnect_of_a_pipelining_client_cancels_its_call() {
    let rig = Rig::new(Script::always(Answer::text("hello").after(std::time::Duration::from_secs(120))));
    let mut stream = asked(&rig);
    wait::until(|| rig.server.request_count() == 1);
    stream.write_all(&vec![b'x'; 100 << 10]).unwrap();
    drop(stream);
    wait::until(|| matches!(rig.server.exchanges()[0].outcome, AnswerOutcome::PeerGone { .. }));
    assert_eq!(rig.book.only().outcome.to_string(), "canceled");
}

#[test]
fn interrupted_call_is_recorded_with_its_partial_result() {
    let mut rig = Rig::new(Script::always(Answer::text("one two three").silent_after(3)));
    let mut stream = asked(&rig);
    let heard = read_until(&mut stream, "one");
    rig.end();
    let record = rig.book.only();
    assert!(!heard.is_empty() && record.response_bytes > 0, "{record:?}");
    assert_eq!((record.status, record.upstream_status), (Some(200), Some(200)));
    // A client that leaves before the answer gets nothing.
    let rig = Rig::new(Script::always(Answer::text("hello").after(std::time::Duration::from_secs(120))));
    let stream = asked(&rig);
    wait::until(|| rig.server.request_count() == 1);
    drop(stream);
    assert_eq!(rig.book.only().status, None);
}

/// Anthropic stream that reports the input tokens first, and has one event per token.
fn messages(tokens: usize, end: &str) -> Vec<u8> {
    let begun = r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#;
    let said = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word "}}"#;
    let events = format!("data: {begun}\n\n{}{end}", format!("data: {said}\n\n").repeat(tokens));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
    format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{events}\r\n0\r\n\r\n", events.len())
        .into_bytes()
}

#[test]
fn token_limit_holds_for_streams_that_fail_after_an_early_usage_report() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let whole = "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let made = |answer: Vec<u8>| {
        let limits = BudgetLimits { tokens: Some(5_000), ..BudgetLimits::default() };
        let rig =
            Rig::with(RigConfig { limits, ..RigConfig::default() }, Script::always(Answer::raw(answer)));
        let body = json!({"model": "small", "stream": true, "max_tokens": 900, "messages": []});
        let made = (0..20).take_while(|_| rig.post("/v1/messages", "", &body).status == 200).count();
        (made, rig.run.budget.spent().tokens)
    };
    for end in [error, ""] {
        let (made, tokens) = made(messages(900, end));
        assert!(made <= 6 && tokens >= made as u64 * 900, "{made} calls, {tokens} tokens");
    }
    // Control: complete streams are charged what they report.
    assert_eq!(made(messages(2, whole)), (20, 20 * 7));
}
