//! The server delivers with the scripted faults, and notices clients that disconnect.

use crate::raw::{ask, connect, post, post_with, take};
use belljar_testkit::models::{Answer, AnswerOutcome, ModelServer, Script, ServerBehaviour};
use belljar_testkit::wait::until;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

const CHAT: &str = "/v1/chat/completions";

fn whole() -> Value {
    json!({ "model": "m", "messages": [] })
}

fn streamed() -> Value {
    json!({ "model": "m", "messages": [], "stream": true })
}

/// Nanoseconds of the clock that stamps are taken from.
fn monotonic_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn serving(answer: Answer) -> ModelServer {
    ModelServer::start(Script::always(answer))
}

#[test]
fn answer_can_be_cut_short_of_its_content_length() {
    let server = serving(Answer::text("a text that is longer than that").cut_after_bytes(20));
    let taken = ask(server.address(), &post(CHAT, &whole()));
    let length: usize =
        taken.head.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap().parse().unwrap();
    assert!(taken.body.len() == 20 && length > 20, "{taken:?}");
    assert!(matches!(server.exchanges()[0].outcome, AnswerOutcome::Cut { .. }));
}

#[test]
fn a_stream_can_be_cut_in_the_middle_of_a_chunk() {
    let server = serving(Answer::text("one two three").cut_in_event(2));
    let taken = ask(server.address(), &post(CHAT, &streamed()));
    assert_eq!(taken.chunks(), None);
    let text = taken.text();
    assert!(text.contains("\"one \"") && !text.contains("\"three\"") && !text.ends_with('\n'), "{text}");
}

#[test]
fn silent_answer_lasts_until_the_client_disconnects() {
    for answer in
        [Answer::text("never sent").after(Duration::MAX), Answer::text("one two three").silent_after(2)]
    {
        let server = serving(answer);
        let mut stream = connect(server.address());
        stream.write_all(&post_with("", CHAT, &streamed())).unwrap();
        until(|| server.request_count() == 1);
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut taken = Vec::new();
        let silence = stream.read_to_end(&mut taken).unwrap_err();
        assert_eq!(silence.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(server.exchanges()[0].outcome, AnswerOutcome::Open);
        let left_at = Instant::now();
        drop(stream);
        let gone = || match server.exchanges()[0].outcome {
            AnswerOutcome::PeerGone { at } => Some(at),
            _ => None,
        };
        until(|| gone().is_some());
        assert!(gone().unwrap() - left_at < Duration::from_secs(1));
        until(|| server.open_connection_count() == 0);
    }
}

#[test]
fn events_are_sent_one_by_one_at_the_configured_interval() {
    let interval = Duration::from_millis(20);
    let server = serving(Answer::repeated("x", 10).every(interval));
    let mut stream = connect(server.address());
    let begun = Instant::now();
    stream.write_all(&post(CHAT, &streamed())).unwrap();
    let mut first = [0; 400];
    let length = stream.read(&mut first).unwrap();
    assert!(
        length > 0 && server.exchanges()[0].outcome == AnswerOutcome::Open,
        "the first comes before the last is made"
    );
    let taken = take(&mut stream);
    assert!(taken.head.ends_with("0\r\n\r\n") || taken.text().ends_with("0\r\n\r\n"));
    // The role, ten pieces, the reason of the end, and the mark.
    assert!(begun.elapsed() >= 12 * interval, "{:?}", begun.elapsed());
}

#[test]
fn twenty_thousand_events_arrive_with_and_without_bursts() {
    for answer in [Answer::repeated("x", 20_000), Answer::repeated("x", 20_000).in_bursts()] {
        let server = serving(answer);
        let (_, body) = ask(server.address(), &post(CHAT, &streamed())).chunks().unwrap();
        let body = String::from_utf8(body).unwrap();
        assert_eq!(body.matches("\"content\":\"x\"").count(), 20_000);
        assert!(body.ends_with("data: [DONE]\n\n"));
    }
}

#[test]
fn stamped_pieces_hold_their_write_time() {
    let server = serving(Answer::stamped(3).every(Duration::from_millis(10)));
    let begun = monotonic_now();
    let (_, body) = ask(server.address(), &post("/api/chat", &json!({ "model": "m" }))).chunks().unwrap();
    let lines = String::from_utf8(body).unwrap();
    let stamps: Vec<u64> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["message"]["content"].clone())
        .filter_map(|text| text.as_str()?.trim().parse().ok())
        .collect();
    assert_eq!(stamps.len(), 3);
    assert!(stamps.is_sorted(), "{stamps:?}");
    // None is written before its time, however late the one before was.
    let earliest = (0..).map(|number| begun + number * 10_000_000);
    assert!(stamps.iter().zip(earliest).all(|(stamp, earliest)| *stamp > earliest), "{begun} {stamps:?}");
    assert!(stamps.iter().all(|stamp| *stamp < monotonic_now()), "{stamps:?}");
}

#[test]
fn answer_body_can_be_sent_byte_by_byte() {
    let server = serving(Answer::error(500).byte_by_byte(Duration::from_millis(2)));
    let begun = Instant::now();
    let taken = ask(server.address(), &post(CHAT, &whole()));
    let least = Duration::from_millis(2) * u32::try_from(taken.body.len() - 1).unwrap();
    assert!(taken.json()["error"].is_object() && begun.elapsed() >= least);
}

#[test]
fn chunks_have_the_configured_sizes() {
    let plain = serving(Answer::text("caf\u{e9} \u{1f514}").in_bursts());
    let odd = serving(Answer::text("caf\u{e9} \u{1f514}").in_chunks_of(&[1, 7, 3]));
    let contents = [&plain, &odd].map(|server| {
        let (sizes, body) =
            ask(server.address(), &post("/api/generate", &json!({ "model": "m" }))).chunks().unwrap();
        let text: String = String::from_utf8(body)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["response"].as_str().unwrap().to_owned())
            .collect();
        (sizes.into_iter().take(4).collect::<Vec<_>>(), text)
    });
    assert_eq!(contents[1], (vec![1, 7, 3, 1], "caf\u{e9} \u{1f514}".to_owned()));
    assert_eq!(contents[0].1, contents[1].1);
    let whole = ask(serving(Answer::text("x").in_chunks_of(&[5])).address(), &post(CHAT, &whole()));
    assert!(whole.head.contains("transfer-encoding: chunked") && !whole.head.contains("content-length"));
    assert!(whole.chunks().is_some());
}

#[test]
fn http_1_0_answer_ends_with_the_connection() {
    let server = serving(Answer::text("one two").of_version_1_0());
    let mut stream = connect(server.address());
    stream.write_all(&post_with("", CHAT, &streamed())).unwrap();
    let taken = take(&mut stream);
    assert!(
        taken.head.starts_with("HTTP/1.0 200 ") && !taken.head.contains("transfer-encoding"),
        "{}",
        taken.head
    );
    assert!(taken.text().ends_with("data: [DONE]\n\n"));
}

#[test]
fn scripted_connection_closes_are_carried_out() {
    let conduct = ServerBehaviour { closes_first: 1, ..ServerBehaviour::default() };
    let answers =
        [Answer::text("a").then_closes(), Answer::hang_up(), Answer::raw("HTTP/1.1 200 OK\nx: y\n\n")];
    let server = ModelServer::start_with(conduct, Script::queue(answers));
    let request = post_with("", CHAT, &whole());
    // Closed as soon as it is accepted: what is written may fail, and nothing comes.
    let mut stream = connect(server.address());
    let _ = stream.write_all(&request);
    assert_eq!(take(&mut stream).head, "");
    let closed = ask(server.address(), &request);
    assert!(closed.status() == "200" && !closed.head.contains("close"), "{}", closed.head);
    assert_eq!(ask(server.address(), &request).head, "");
    assert_eq!(ask(server.address(), &request).head, "HTTP/1.1 200 OK\nx: y\n\n");
    assert_eq!((server.request_count(), server.connection_count()), (3, 4));
}

#[test]
fn slow_reading_server_throttles_the_client() {
    let conduct = ServerBehaviour { reads_per_second: Some(200_000), ..ServerBehaviour::default() };
    let server = ModelServer::start_with(conduct, Script::always(Answer::text("read")));
    let begun = Instant::now();
    let body = json!({ "model": "m", "messages": ["x".repeat(100_000)] });
    assert_eq!(ask(server.address(), &post(CHAT, &body)).status(), "200");
    assert!(begun.elapsed() > Duration::from_millis(400), "{:?}", begun.elapsed());
}

#[test]
fn dropped_server_closes_waiting_connections() {
    let server = serving(Answer::text("never").after(Duration::MAX));
    let mut stream = connect(server.address());
    stream.write_all(&post_with("", CHAT, &whole())).unwrap();
    until(|| server.request_count() == 1);
    let address = server.address();
    drop(server);
    assert_eq!(take(&mut stream).head, "");
    assert!(std::net::TcpStream::connect(address).is_err());
}
