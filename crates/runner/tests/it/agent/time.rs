//! An agent requests an extension from its host once.

use super::house::{AgentFixture, call, done, finish, report, small_job, text_of};
use belljar_testkit::models::{Answer, Script};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Reports that the host has received.
type ReceivedReports = Arc<Mutex<Vec<Value>>>;

/// A host that gives the job two seconds, and at any later time a moment more; with its answer to requests for an
/// extension.
fn host(socket: &Path, granted: bool) -> ReceivedReports {
    let listener = UnixListener::bind(socket).unwrap();
    let heard = ReceivedReports::default();
    let theirs = Arc::clone(&heard);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let begun = Instant::now();
        while let Some(report) = next(&mut stream) {
            let is_asked = report.get("extension_request_seconds").is_some();
            let left = Duration::from_secs(2).saturating_sub(begun.elapsed()).max(Duration::from_millis(300));
            let left = if is_asked && granted { Duration::from_secs(3_600) } else { left };
            let mut answer = json!({ "version": 1, "deadline": "2026-01-01T00:00:00Z", "remaining_ms": left.as_millis() as u64 });
            if is_asked {
                answer["granted"] = granted.into();
                answer["reason"] = if granted { Value::Null } else { "the node is busy".into() };
            }
            theirs.lock().unwrap().push(report);
            let answer = answer.to_string();
            let length = answer.len();
            let sent = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{answer}");
            if sent.is_err() {
                return;
            }
        }
    });
    heard
}

/// The next report by a connection.
fn next(stream: &mut UnixStream) -> Option<Value> {
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        heard.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&heard);
        if let Some(report) = text.split("\r\n\r\n").nth(1).and_then(|body| serde_json::from_str(body).ok()) {
            return Some(report);
        }
    }
}

/// Returns how the job ends, the texts that the model got, and the requests for time.
fn slow_job(granted: bool) -> (crate::scene::RunOutcome, Vec<String>, Vec<Value>) {
    let mut answers = vec![
        call("list_tree", json!({})).after(Duration::from_millis(1_700)),
        call("list_tree", json!({})),
        done(1),
        finish(),
        report(),
    ]
    .into_iter();
    let house = AgentFixture::of(Script::from_fn(move |request| {
        request.operation().generates().then(|| answers.next().unwrap_or_else(|| Answer::text("done")))
    }));
    let socket = house.scene.beside("status.sock");
    let heard = host(&socket, granted);
    let output = house.command(&small_job()).env("BELLJAR_STATUS_SOCKET", &socket).output().unwrap();
    let told = house.asked().iter().map(text_of).collect();
    let reports = heard.lock().unwrap().clone();
    let asked = reports.iter().filter_map(|report| report.get("extension_request_seconds").cloned());
    (house.scene.ran(&output), told, asked.collect())
}

#[test]
fn agent_with_open_items_requests_one_deadline_extension_and_sees_the_time_left() {
    let (ran, told, asked) = slow_job(true);
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    assert_eq!(asked, [json!(30)], "half of the job's time");
    assert!(told[0].contains("Time left: 1 s") || told[0].contains("Time left: 2 s"), "{}", told[0]);
    assert!(told[1].contains("Time left: 35"), "{}", told[1]);
    assert!(ran.log.contains("extension of 30 s requested and granted"), "{}", ran.log);
}

#[test]
fn agent_refused_an_extension_continues_within_its_time() {
    let (ran, told, asked) = slow_job(false);
    assert_eq!(asked, [json!(30)], "{}", ran.result);
    assert!(ran.log.contains("and refused: the node is busy"), "{}", ran.log);
    assert!(told[1].contains("Time left: 0 s") || told[1].contains("Time left: 1 s"), "{}", told[1]);
}
