//! A gateway that lies, is slow, or breaks.

use super::*;
use crate::cancellation::Cancellation;
use crate::deadline::JobTime;
use belljar_testkit::models::{Answer as Said, ModelServer, Script};
use std::sync::atomic::{AtomicUsize, Ordering};

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];
const STREAM: &[(&str, &str)] = &[("Content-Type", "text/event-stream")];

/// A gateway that gives this answer to every request; `ID` stands for the request's id.
fn saying(answer: impl Fn(usize, &str) -> Said + Send + 'static) -> (ModelServer, Gateway) {
    let count = AtomicUsize::new(0);
    let server = ModelServer::start(Script::from_fn(move |request| {
        let id = request.json()["id"].to_string();
        Some(answer(count.fetch_add(1, Ordering::SeqCst), &id))
    }));
    let place = ServerAddress::of_url(&format!("{}/mcp", server.url())).unwrap();
    (server, Gateway::at(place, None))
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

fn call(gateway: &mut Gateway) -> Result<ToolCallResult, McpError> {
    within(Duration::from_secs(60), |deadline| gateway.call("a.b", &json!({ "x": 1 }), deadline))
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}"#;

#[test]
fn mcp_request_repeats_method_name_and_revision_in_headers_and_body() {
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
fn tool_name_that_is_no_valid_header_value_is_base64_encoded() {
    assert_eq!(header_value("artifact.put"), "artifact.put");
    assert_eq!(header_value("a\r\nX: y"), "=?base64?YQ0KWDogeQ==?=");
    assert_eq!(header_value("ä"), "=?base64?w6Q=?=");
    assert_eq!(header_value("=?base64?YQ==?="), "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
}

#[test]
fn mcp_response_stream_may_start_with_notifications() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
    let events = format!(": ping\r\n\r\ndata: {note}\r\n\r\nevent: message\r\ndata: {RESULT}\r\n\r\n");
    let (_server, mut gateway) = once(200, STREAM, &events);
    assert_eq!(call(&mut gateway).unwrap().text, "done");
}

#[test]
fn mcp_client_stops_reading_an_open_stream_after_the_response() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = ServerAddress::of_url(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
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
    assert_eq!(call(&mut Gateway::at(place, None)).unwrap().text, "done");
    assert_eq!(gateway.join().unwrap(), 0);
}

#[test]
fn malformed_mcp_response_is_reported_as_malformed() {
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
fn mcp_error_is_reported_at_any_http_status_and_missing_gateway_separately() {
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
fn tool_call_is_not_retried_after_a_broken_connection_but_a_list_is() {
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
fn unreachable_gateway_is_retried_once() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut gateway = Gateway::at(ServerAddress::of_url(&format!("http://{port}/mcp")).unwrap(), None);
    assert!(matches!(call(&mut gateway), Err(McpError::Unsent(_))));
    assert_eq!(gateway.last_id, 2);
}

#[test]
fn slow_gateway_response_ends_at_the_timeout_and_at_the_job_deadline() {
    let slow = || saying(|_, _| Said::text("late").after(Duration::from_secs(600)));
    let (_server, mut gateway) = slow();
    gateway.patience = Duration::from_millis(300);
    assert!(matches!(call(&mut gateway), Err(McpError::NoAnswer(HttpError::TooSlow(_)))));
    let (_server, mut gateway) = slow();
    let cut = within(Duration::from_millis(300), |deadline| gateway.call("a", &json!({}), deadline));
    assert!(matches!(cut, Err(McpError::Interrupted(_))), "{cut:?}");
}

#[test]
fn oversized_gateway_response_is_rejected() {
    let (_server, mut gateway) = saying(|_, _| Said::own(200, JSON, vec![b' '; 9 << 20]));
    let error = belljar_contract::text::with_causes(&call(&mut gateway).unwrap_err());
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn tool_list_pages_are_read_to_the_end_and_endless_cursors_are_refused() {
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

/// A gateway that answers each method in its own way; `ID` stands for the question's id.
fn answering(
    token: Option<&str>,
    answer: impl Fn(&str, &belljar_testkit::models::Request) -> Said + Send + 'static,
) -> (ModelServer, Gateway) {
    let server = ModelServer::start(Script::from_fn(move |request| {
        let method = request.json()["method"].as_str().unwrap_or_default().to_owned();
        Some(answer(&method, request))
    }));
    let place = ServerAddress::of_url(&format!("{}/mcp", server.url())).unwrap();
    (server, Gateway::at(place, token))
}

fn result(request: &belljar_testkit::models::Request, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result }).to_string()
}

fn greeted(version: &str) -> Value {
    json!({
        "protocolVersion": version, "capabilities": { "tools": {} },
        "serverInfo": { "name": "older", "version": "1" },
    })
}

#[test]
fn gateway_of_an_older_revision_is_initialized_and_called_in_its_session() {
    for version in family::WITH_SESSION {
        let (server, mut gateway) =
            answering(Some("token-of-the-sandbox"), move |method, request| match method {
                "initialize" => Said::own(
                    200,
                    &[("Content-Type", "application/json"), ("Mcp-Session-Id", "s-1")],
                    result(request, &greeted(version)),
                ),
                "notifications/initialized" => Said::own(202, &[], ""),
                "tools/call" => {
                    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
                    let done = result(request, &json!({ "content": [{ "type": "text", "text": "done" }] }));
                    Said::own(200, STREAM, format!("id: 0\ndata: \n\ndata: {ping}\n\ndata: {done}\n\n"))
                }
                _ => Said::own(
                    400,
                    JSON,
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing session ID"}}"#,
                ),
            });
        let offer = within(Duration::from_secs(60), |deadline| gateway.discover(deadline)).unwrap();
        assert!(offer.tools && !offer.resources);
        assert_eq!(call(&mut gateway).unwrap().text, "done");
        let asked = server.requests();
        let last = asked.last().unwrap();
        assert_eq!(
            (last.header("MCP-Protocol-Version"), last.header("Mcp-Session-Id")),
            (Some(version), Some("s-1"))
        );
        assert!(last.json()["params"].get("_meta").is_none());
        for request in &asked {
            assert_eq!(request.header("Authorization"), Some("Bearer token-of-the-sandbox"));
        }
    }
}

#[test]
fn expired_mcp_session_is_reopened_and_the_call_repeated() {
    let sessions = std::sync::Arc::new(AtomicUsize::new(0));
    let begun = std::sync::Arc::clone(&sessions);
    let (server, mut gateway) = answering(None, move |method, request| match method {
        "initialize" => {
            let headers: &'static [(&str, &str)] = match begun.fetch_add(1, Ordering::SeqCst) {
                0 => &[("Content-Type", "application/json"), ("Mcp-Session-Id", "first")],
                _ => &[("Content-Type", "application/json"), ("Mcp-Session-Id", "second")],
            };
            Said::own(200, headers, result(request, &greeted("2025-06-18")))
        }
        "notifications/initialized" => Said::own(202, &[], ""),
        "tools/call" if request.header("Mcp-Session-Id") == Some("second") => {
            Said::own(200, JSON, result(request, &json!({ "content": [] })))
        }
        _ => Said::own(404, JSON, ""),
    });
    within(Duration::from_secs(60), |deadline| gateway.discover(deadline)).unwrap();
    call(&mut gateway).unwrap();
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    assert_eq!(
        server.requests().iter().filter(|request| request.json()["method"] == "tools/call").count(),
        2
    );
}

#[test]
fn gateway_requiring_a_token_or_another_protocol_is_rejected_with_the_reason() {
    let discover =
        |gateway: &mut Gateway| within(Duration::from_secs(60), |deadline| gateway.discover(deadline));
    let (_server, mut closed) = answering(None, |_, _| Said::own(401, JSON, ""));
    let refused = discover(&mut closed).unwrap_err().to_string();
    assert!(refused.contains("401") && refused.contains("MCP_GATEWAY_TOKEN"), "{refused}");
    let (_server, mut newer) = answering(None, |method, request| match method {
        "initialize" => Said::own(200, JSON, result(request, &greeted("2031-01-01"))),
        _ => Said::own(
            200,
            JSON,
            result(request, &json!({ "supportedVersions": ["2031-01-01"], "capabilities": {} })),
        ),
    });
    assert!(matches!(discover(&mut newer), Err(McpError::Revision)));
    let (server, mut ours) = answering(None, |_, request| {
        let discovered = json!({ "supportedVersions": [REVISION], "capabilities": { "tools": {} } });
        Said::own(200, JSON, result(request, &discovered))
    });
    assert!(discover(&mut ours).unwrap().tools);
    assert_eq!(server.request_count(), 1, "no handshake");
}
