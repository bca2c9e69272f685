//! MCP on the wire, in both families of revisions.

use crate::rig::{Rig, TASK, in_sandbox, seat};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use belljar_gateway::{Door, routes};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const STATELESS: &str = "2026-07-28";

fn router(rig: &Rig) -> axum::Router {
    routes(Arc::clone(&rig.gateway), Door::Hatch(seat(in_sandbox())), CancellationToken::new())
}

/// Sends one message, and gives the status and the answer.
async fn send(router: &axum::Router, headers: &[(&str, &str)], message: &Value) -> (StatusCode, Value) {
    let mut request = Request::post("/mcp");
    if headers.iter().all(|(name, _)| *name != "host") {
        request = request.header("host", "127.0.0.1:7070");
    }
    request = request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(message.to_string())).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 8 << 20).await.unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The same as the revision without a handshake wants it.
async fn ask(router: &axum::Router, method: &str, mut params: Value) -> (StatusCode, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![("mcp-protocol-version", STATELESS), ("mcp-method", method)];
    if !name.is_empty() {
        headers.push(("mcp-name", &name));
    }
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    send(router, &headers, &message).await
}

#[tokio::test]
async fn tools_are_listed_and_called_without_a_handshake() {
    let rig = Rig::new();
    let router = router(&rig);
    let (status, discovered) = ask(&router, "server/discover", json!({})).await;
    assert_eq!(status, StatusCode::OK, "{discovered}");
    let versions = discovered["result"]["supportedVersions"].as_array().cloned().unwrap_or_default();
    assert!(versions.contains(&json!(STATELESS)) && versions.contains(&json!("2025-11-25")), "{discovered}");
    let (status, listed) = ask(&router, "tools/list", json!({})).await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    let tools = listed["result"]["tools"].as_array().unwrap();
    let get = tools.iter().find(|tool| tool["name"] == "artifact.get").unwrap();
    assert_eq!(get["inputSchema"]["properties"]["task_id"]["const"], TASK);
    assert!(tools.iter().all(|tool| tool["name"] != "sandbox.exec"));
    let arguments = json!({ "name": "artifact.get", "arguments": { "task_id": TASK, "text": "a" } });
    let (status, called) = ask(&router, "tools/call", arguments).await;
    assert_eq!(status, StatusCode::OK, "{called}");
    assert_eq!(called["result"]["structuredContent"]["data"]["text"], "a");
    assert_eq!(called["result"]["isError"], false);
}

#[tokio::test]
async fn tools_are_called_after_a_handshake_of_the_revision_before() {
    let rig = Rig::new();
    let router = router(&rig);
    let version = ("mcp-protocol-version", "2025-11-25");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" }
    }});
    let (status, greeted) = send(&router, &[], &hello).await;
    assert_eq!(status, StatusCode::OK, "{greeted}");
    assert_eq!(greeted["result"]["protocolVersion"], "2025-11-25");
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(&router, &[version], &initialized).await.0, StatusCode::ACCEPTED);
    let call = json!({ "jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": {
        "name": "artifact.get", "arguments": { "task_id": TASK }
    }});
    let (status, called) = send(&router, &[version], &call).await;
    assert_eq!(status, StatusCode::OK, "{called}");
    assert_eq!((&called["id"], &called["result"]["isError"]), (&json!("two"), &json!(false)));
}

#[tokio::test]
async fn what_may_not_be_called_is_an_error_of_the_protocol() {
    let rig = Rig::new();
    let router = router(&rig);
    for (name, reason) in [("sandbox.exec", "never"), ("web.fetch", "no_reach"), ("nothing", "unknown")] {
        let (_, refused) = ask(&router, "tools/call", json!({ "name": name, "arguments": {} })).await;
        assert_eq!(refused["error"]["data"]["reason"], reason, "{refused}");
    }
    assert_eq!(rig.called(), 0);
}

#[tokio::test]
async fn a_page_of_another_site_calls_nothing() {
    let rig = Rig::new();
    let router = router(&rig);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "artifact.get", "arguments": { "task_id": TASK }
    }});
    for headers in [
        &[("origin", "http://evil.example")][..],
        &[("origin", "null")],
        &[("origin", "https://127.0.0.1")],
        &[("origin", "http://127.0.0.1.evil.example:7070")],
        &[("origin", "http://localhost:7070"), ("origin", "http://evil.example")],
        &[("host", "evil.example")],
        &[("host", "127.0.0.1.evil.example:7070")],
        &[("host", "127.0.0.1:7070"), ("host", "evil.example")],
        &[("host", "")],
    ] {
        let (status, answer) = send(&router, headers, &call).await;
        assert!(status.is_client_error(), "{headers:?}: {status} {answer}");
    }
    assert_eq!(rig.called(), 0);
    assert_eq!(send(&router, &[], &call).await.0, StatusCode::OK);
    assert_eq!(rig.called(), 1);
}
