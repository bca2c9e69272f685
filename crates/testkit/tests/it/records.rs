//! The server keeps the requests, finds their flaws, and answers according to its script.

use crate::raw::{ask, connect, post, post_with, take};
use belljar_testkit::models::{Answer, Dialect, Flaw, ModelServer, Operation, Script, ToolCall};
use serde_json::json;
use std::io::Write;
use std::os::unix::net::UnixStream;

const CHAT: &str = "/v1/chat/completions";

#[test]
fn request_is_recorded_byte_for_byte_with_its_connection() {
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let folder = tempfile::tempdir().unwrap();
    server.listen_at(&folder.path().join("socket"));
    let body = json!({ "model": "m", "messages": [] });
    let (first, last) =
        (post_with("X-OdD-CaSe:  two  words \r\n", CHAT, &body), post("/v1/messages?beta=true", &body));
    let mut stream = connect(server.address());
    stream.write_all(&first).unwrap();
    // The second right behind the first: both are answered, on one connection.
    stream.write_all(&last).unwrap();
    let taken = take(&mut stream);
    assert_eq!(taken.text().matches("HTTP/1.1 200 OK").count(), 1, "{taken:?}");
    let mut stream = UnixStream::connect(folder.path().join("socket")).unwrap();
    stream.write_all(&post("/api/chat", &body)).unwrap();
    assert_eq!(take(&mut stream).status(), "200");
    let requests = server.requests();
    assert_eq!(requests.iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 0, 1]);
    assert_eq!([requests[0].head.clone(), requests[0].body.clone()].concat(), first);
    assert_eq!(requests[0].headers[1], ("X-OdD-CaSe".to_owned(), "two  words".to_owned()));
    assert_eq!((requests[1].operation(), requests[1].dialect()), (Operation::Messages, Dialect::Anthropic));
    assert!(requests[0].received_at <= requests[1].received_at);
    assert_eq!((server.request_count(), server.connection_count()), (3, 2));
    assert!(server.flawed().is_empty());
}

#[test]
fn malformed_http_is_refused_and_recorded() {
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let both = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}";
    assert_eq!(ask(server.address(), both).status(), "400");
    // Half a request, and the end.
    let mut stream = connect(server.address());
    stream
        .write_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{}")
        .unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    take(&mut stream);
    let flaws: Vec<_> = server.flawed().into_iter().map(|request| request.flaw.unwrap()).collect();
    assert_eq!(flaws, [Flaw::TransferCoding { line: "chunked".to_owned() }, Flaw::Ended]);
    assert_eq!(server.request_count(), 2);
}

#[test]
fn echo_answer_holds_head_and_body_of_the_request() {
    let server = ModelServer::start(Script::always(Answer::echo(500)));
    let request =
        post_with("Authorization: Bearer sk-1\r\nConnection: close\r\n", CHAT, &json!({ "model": "secret" }));
    let taken = ask(server.address(), &request);
    let message = taken.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(taken.status(), "500");
    assert_eq!(message, format!("you sent {}", String::from_utf8(request).unwrap()));
}

#[test]
fn call_id_is_echoed_and_cost_reported_as_litellm_does() {
    let server = ModelServer::start(Script::always(Answer::text("hello").with_cost(0.5)));
    let chosen = "x-litellm-call-id: call-7\r\nConnection: close\r\n";
    let stream = json!({ "model": "m", "stream": true });
    let with_usage = json!({ "model": "m", "stream": true, "stream_options": { "include_usage": true } });
    let [whole, stream, with_usage] = [&json!({ "model": "m" }), &stream, &with_usage]
        .map(|body| ask(server.address(), &post_with(chosen, CHAT, body)));
    assert!(
        [&whole, &stream, &with_usage]
            .iter()
            .all(|taken| taken.head.contains("\r\nx-litellm-call-id: call-7\r\n"))
    );
    assert!(whole.head.contains("\r\nx-litellm-response-cost: 0.5\r\n"));
    assert!(
        !stream.head.contains("cost") && !stream.text().contains("cost") && !stream.text().contains("usage")
    );
    assert!(!with_usage.head.contains("cost") && with_usage.text().contains("\"cost\":0.5"));
    assert!(!ask(server.address(), &post(CHAT, &json!({ "model": "m" }))).head.contains("call-id"));
}

#[test]
fn queued_answers_are_used_in_order_and_not_for_model_lists() {
    let server = ModelServer::start(Script::queue([Answer::rate_limited(3), Answer::text("second")]));
    let list = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let body = json!({ "model": "m" });
    assert_eq!(ask(server.address(), list).json()["data"][0]["id"], "scripted");
    let limited = ask(server.address(), &post("/v1/messages", &body));
    assert!(limited.status() == "429" && limited.head.contains("\r\nretry-after: 3\r\n"), "{limited:?}");
    assert_eq!(limited.json()["error"]["type"], "rate_limit_error");
    assert_eq!(ask(server.address(), list).status(), "200");
    assert_eq!(ask(server.address(), &post("/v1/messages", &body)).json()["content"][0]["text"], "second");
    assert_eq!(ask(server.address(), &post("/v1/messages", &body)).status(), "500");
    assert_eq!(ask(server.address(), &post("/v1/files", &body)).status(), "404");
}

#[test]
fn working_model_calls_its_tools_in_sequence() {
    let calls = ["read", "edit"].map(|name| ToolCall::new(name, json!({ "path": "a" })));
    let server = ModelServer::start(Script::working(calls.to_vec(), "done"));
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let tools = json!([tool("read"), tool("edit")]);
    let result = json!({ "role": "tool", "content": "ok" });
    let said = |messages: &[serde_json::Value], tools: &serde_json::Value| {
        let body = json!({ "model": "m", "messages": messages, "tools": tools });
        ask(server.address(), &post(CHAT, &body)).json()["choices"][0]["message"].clone()
    };
    assert_eq!(said(&[], &tools)["tool_calls"][0]["function"]["name"], "read");
    assert_eq!(said(std::slice::from_ref(&result), &tools)["tool_calls"][0]["function"]["name"], "edit");
    assert_eq!(said(&[result.clone(), result], &tools)["content"], "done");
    assert_eq!(said(&[], &json!([]))["content"], "done");
}
