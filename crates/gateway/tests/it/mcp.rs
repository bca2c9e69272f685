//! Tests of MCP on the wire, in both families of revisions.

use crate::rig::{Rig, TASK, in_sandbox, seat};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use belljar_gateway::{EndpointKind, routes};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const STATELESS: &str = "2026-07-28";

fn router(rig: &Rig) -> axum::Router {
    routes(Arc::clone(&rig.gateway), EndpointKind::Hatch(seat(in_sandbox())), CancellationToken::new())
}

/// Sends one message; returns the status and the answer.
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

/// Sends a request in the form of the revision without a handshake.
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
async fn cursor_beyond_the_last_tool_lists_none() {
    let rig = Rig::new();
    let router = router(&rig);
    for (method, member) in [("tools/list", "tools"), ("resources/list", "resources")] {
        for cursor in ["1000", &usize::MAX.to_string()] {
            let (status, listed) = ask(&router, method, json!({ "cursor": cursor })).await;
            assert_eq!((status, &listed["result"][member]), (StatusCode::OK, &json!([])), "{listed}");
        }
        let (_, first) = ask(&router, method, json!({ "cursor": "0" })).await;
        assert!(first["result"][member].is_array(), "the control: {first}");
    }
}

#[tokio::test]
async fn tools_are_called_after_a_handshake_of_the_previous_mcp_revision() {
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
async fn denied_tool_call_is_a_protocol_error() {
    let rig = Rig::new();
    let router = router(&rig);
    for (name, reason) in [("sandbox.exec", "never"), ("web.fetch", "no_reach")] {
        let (_, refused) = ask(&router, "tools/call", json!({ "name": name, "arguments": {} })).await;
        assert_eq!(refused["error"]["data"]["reason"], reason, "{refused}");
    }
    // The answer to a misread name lists the existing ones, as a result that a model reads.
    let (_, unknown) = ask(&router, "tools/call", json!({ "name": "artifact_get", "arguments": {} })).await;
    let result = &unknown["result"];
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["domain_code"]),
        (&json!(true), &json!("not_found"))
    );
    let message = result["structuredContent"]["message"].as_str().unwrap();
    assert!(message.contains("artifact.get") && !message.contains("sandbox.exec"), "{message}");
    assert_eq!(rig.called(), 0);
}

#[tokio::test]
async fn request_from_a_foreign_origin_or_host_is_refused() {
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
        &[("host", "127.0.0.1:7070.evil.example")],
        &[("host", "127.0.0.1:evil.example")],
        &[("host", "127.0.0.1:70700")],
        &[("host", "127.0.0.1:")],
        &[("host", "evil@127.0.0.1")],
        &[("host", "[::1].evil.example")],
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

#[tokio::test]
async fn request_whose_target_and_host_header_differ_is_refused() {
    let rig = Rig::new();
    let router = router(&rig);
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "artifact.get", "arguments": { "task_id": TASK }
    }});
    let ask = |target: &'static str| {
        let request = Request::post(target)
            .header("host", "127.0.0.1:7070")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Body::from(message.to_string()))
            .unwrap();
        router.clone().oneshot(request)
    };
    for target in ["http://evil.example/mcp", "http://127.0.0.1:7071/mcp", "http://127.0.0.1/mcp"] {
        assert_eq!(ask(target).await.unwrap().status(), StatusCode::BAD_REQUEST, "{target}");
    }
    assert_eq!(rig.called(), 0);
    for target in ["/mcp", "http://127.0.0.1:7070/mcp"] {
        assert_eq!(ask(target).await.unwrap().status(), StatusCode::OK, "{target}");
    }
}

#[tokio::test]
async fn malformed_json_or_duplicate_members_are_a_bad_request() {
    let rig = Rig::new();
    let router = router(&rig);
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"artifact.get","arguments":{arguments}}}}}"#
        )
    };
    let given = |text: &str| format!(r#"{{"task_id":"{TASK}","text":{text}}}"#);
    let ask = |message: String| {
        let request = Request::post("/mcp")
            .header("host", "127.0.0.1:7070")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(Body::from(message))
            .unwrap();
        router.clone().oneshot(request)
    };
    let twice = given(r#""a","te\u0078t":"b""#);
    let bad = [String::new(), "{".to_owned(), call(&given(r#""\ud800""#)), call(&twice), "[NaN]".to_owned()];
    for message in bad {
        let answer = ask(message.clone()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{message}");
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"]["code"].as_i64().is_some_and(|code| code < 0), "{body}");
    }
    assert_eq!(rig.called(), 0);
    assert_eq!(ask(call(&given("\"a\""))).await.unwrap().status(), StatusCode::OK);
    assert_eq!(rig.called(), 1);
}
