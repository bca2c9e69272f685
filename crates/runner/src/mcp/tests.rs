//! A gateway that lies, is slow, or breaks.

use super::*;
use crate::cancellation::Cancellation;
use crate::deadline::JobTime;
use belljar_testkit::models::{Answer as Said, ModelServer, Script};
use std::sync::atomic::{AtomicUsize, Ordering};

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
const STREAM: &[(&str, &str)] = &[("Content-Type", "text/event-stream")];

/// A gateway that says this to whatever it is asked; `ID` stands for the question's id.
fn saying(answer: impl Fn(usize, &str) -> Said + Send + 'static) -> (ModelServer, Gateway) {
    let count = AtomicUsize::new(0);
    let server = ModelServer::start(Script::from_fn(move |request| {
        let id = request.json()["id"].to_string();
        Some(answer(count.fetch_add(1, Ordering::SeqCst), &id))
    }));
    let place = Place::of_url(&format!("{}/mcp", server.url())).unwrap();
    (server, Gateway::at(place))
}

fn once(status: u16, headers: &'static [(&str, &str)], body: &str) -> (ModelServer, Gateway) {
    let body = body.to_owned();
    saying(move |_, id| Said::own(status, headers, body.replace("ID", id)))
}

fn within<T>(limit: Duration, work: impl FnOnce(&Deadline<'_>) -> T) -> T {
    let cancellation = Cancellation::new().unwrap();
    let time = JobTime::alone(limit);
    work(&Deadline::of_job(&time, &cancellation))
}

fn call(gateway: &mut Gateway) -> Result<Called, McpError> {
    within(Duration::from_secs(60), |deadline| gateway.call("a.b", &json!({ "x": 1 }), deadline))
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}"#;

#[test]
fn a_question_says_all_of_itself() {
    let (server, mut gateway) = once(200, JSON, RESULT);
    assert_eq!(call(&mut gateway).unwrap().text, "done");
    let asked = &server.requests()[0];
    assert_eq!(asked.path(), "/mcp");
    let header = |name| asked.header(name).unwrap_or_default().to_owned();
    assert_eq!(header("MCP-Protocol-Version"), REVISION);
    assert_eq!((header("Mcp-Method"), header("Mcp-Name")), ("tools/call".to_owned(), "a.b".to_owned()));
    assert_eq!(header("Accept"), "application/json, text/event-stream");
    let body = asked.json();
    assert_eq!((&body["params"]["name"], &body["params"]["arguments"]), (&json!("a.b"), &json!({ "x": 1 })));
    let meta = &body["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], REVISION);
    assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    assert!(asked.header("Authorization").is_none());
}

#[test]
fn a_name_that_no_header_can_hold_is_encoded() {
    assert_eq!(header_value("artifact.put"), "artifact.put");
    assert_eq!(header_value("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
    assert_eq!(header_value("ä"), "=?base64?w6Q=?=");
    assert_eq!(header_value("=?base64?YQ==?="), "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
}

#[test]
fn an_answer_may_come_as_events_with_notes_before_it() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
    let events = format!(": ping\r\n\r\ndata: {note}\r\n\r\nevent: message\r\ndata: {RESULT}\r\n\r\n");
    let (_server, mut gateway) = once(200, STREAM, &events);
    assert_eq!(call(&mut gateway).unwrap().text, "done");
}

#[test]
fn of_a_stream_that_goes_on_no_more_is_waited_for_than_the_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = Place::of_url(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let gateway = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = vec![0; 64 << 10];
        let mut size = 0;
        while !heard[..size].ends_with(b"}") {
            size += stream.read(&mut heard[size..]).unwrap();
        }
        let event = format!("data: {}\n\n", RESULT.replace("ID", "1"));
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        write!(stream, "{head}{:x}\r\n{event}\r\n", event.len()).unwrap();
        // It ends when the other side has gone.
        stream.read(&mut heard).unwrap_or_default()
    });
    assert_eq!(call(&mut Gateway::at(place)).unwrap().text, "done");
    assert_eq!(gateway.join().unwrap(), 0);
}

#[test]
fn what_is_no_answer_is_told_as_such() {
    let twice = format!("data: {RESULT}\n\ndata: {RESULT}\n\n");
    let other = format!("data: {}\n\n", RESULT.replace("ID", "99"));
    let both = r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"m"}}"#;
    for (headers, body) in [
        (JSON, both),
        (JSON, "<html>"),
        (JSON, r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"no list"}}"#),
        (JSON, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#),
        (STREAM, twice.as_str()),
        (STREAM, other.as_str()),
        (STREAM, ": nothing\n\n"),
        (STREAM, "data: {\n\n"),
    ] {
        let (server, mut gateway) = once(200, headers, body);
        let error = call(&mut gateway).unwrap_err();
        assert!(matches!(error, McpError::Malformed(_) | McpError::Unreadable(_)), "{body}: {error:?}");
        assert_eq!(server.request_count(), 1, "{body}");
    }
}

#[test]
fn a_refusal_is_one_whatever_its_status_and_nobody_at_home_another() {
    let refused = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no tool of that name"}}"#;
    for status in [200, 400, 404] {
        let (_server, mut gateway) = once(status, JSON, refused);
        assert_eq!(call(&mut gateway).unwrap_err().to_string(), "no tool of that name (-32602)");
    }
    let (_server, mut gateway) = once(404, JSON, r#"{"type":"not_found"}"#);
    assert!(matches!(call(&mut gateway), Err(McpError::Absent)));
    let (_server, mut gateway) = once(503, JSON, "busy");
    assert!(matches!(call(&mut gateway), Err(McpError::Status(503))));
}

#[test]
fn a_call_that_may_have_been_heard_is_not_made_again_and_a_list_is() {
    let listed = r#"{"jsonrpc":"2.0","id":ID,"result":{"tools":[]}}"#;
    let fails_first = |answer: &'static str| {
        saying(move |count, id| match count {
            0 => Said::hang_up(),
            _ => Said::own(200, JSON, answer.replace("ID", id)),
        })
    };
    let (server, mut gateway) = fails_first(RESULT);
    let error = call(&mut gateway).unwrap_err();
    assert!(matches!(error, McpError::NoAnswer(_)), "{error:?}");
    assert_eq!(server.request_count(), 1);
    let (server, mut gateway) = fails_first(listed);
    within(Duration::from_secs(60), |deadline| gateway.tools(deadline)).unwrap();
    assert_eq!(server.request_count(), 2);
}

#[test]
fn one_that_is_not_there_is_tried_once_more() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut gateway = Gateway::at(Place::of_url(&format!("http://{port}/mcp")).unwrap());
    assert!(matches!(call(&mut gateway), Err(McpError::Unsent(_))));
    assert_eq!(gateway.last_id, 2);
}

#[test]
fn slow_answers_end_with_patience_and_with_the_job() {
    let slow = || saying(|_, _| Said::text("late").after(Duration::from_secs(600)));
    let (_server, mut gateway) = slow();
    gateway.patience = Duration::from_millis(300);
    assert!(matches!(call(&mut gateway), Err(McpError::NoAnswer(NoAnswer::TooSlow(_)))));
    let (_server, mut gateway) = slow();
    let cut = within(Duration::from_millis(300), |deadline| gateway.call("a", &json!({}), deadline));
    assert!(matches!(cut, Err(McpError::Interrupted(_))), "{cut:?}");
}

#[test]
fn more_than_anybody_needs_is_not_taken_in() {
    let (_server, mut gateway) = saying(|_, _| Said::own(200, JSON, vec![b' '; 9 << 20]));
    let error = crate::fault::explain(&call(&mut gateway).unwrap_err());
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn lists_are_read_to_their_end_and_no_further() {
    let page = |next: &str| {
        let tool = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
        format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"tools":[{tool}]{next}}}}}"#)
    };
    let tools = |answer: Box<dyn Fn(usize) -> String + Send>| {
        let (server, mut gateway) =
            saying(move |count, id| Said::own(200, JSON, answer(count).replace("ID", id)));
        let listed = within(Duration::from_secs(60), |deadline| gateway.tools(deadline));
        (listed, server)
    };
    let (listed, server) = tools(Box::new(move |count| match count {
        0 => page(r#","nextCursor":"two""#).replace("\"t\"", "\"first\""),
        _ => page(""),
    }));
    let listed = listed.unwrap();
    let names: Vec<&str> = listed.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["first", "t"]);
    assert_eq!(server.requests()[1].json()["params"]["cursor"], "two");
    let (circle, server) = tools(Box::new(move |_| page(r#","nextCursor":"same""#)));
    assert!(matches!(circle, Err(McpError::Malformed(_))) && server.request_count() == 2);
    let (endless, server) = tools(Box::new(move |count| page(&format!(r#","nextCursor":"{count}""#))));
    assert!(matches!(endless, Err(McpError::Malformed(_))) && server.request_count() == MOST_PAGES);
}

#[test]
fn another_revision_is_not_spoken() {
    let discovered = |version: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":ID,"result":{{"supportedVersions":["{version}"],"capabilities":{{"tools":{{}}}}}}}}"#
        )
    };
    for (version, is_ours) in [(REVISION, true), ("2025-11-25", false)] {
        let (_server, mut gateway) = once(200, JSON, &discovered(version));
        let offer = within(Duration::from_secs(60), |deadline| gateway.discover(deadline));
        assert_eq!(offer.is_ok_and(|offer| offer.tools && !offer.resources), is_ours, "{version}");
    }
}
