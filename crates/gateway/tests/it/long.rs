//! Tests of long messages: each run has one under way, and no thread that serves others handles it.

use crate::rig::{Rig, TASK, in_sandbox, seat};
use axum::body::Body;
use axum::http::{Request, StatusCode};
use belljar_contract::id::RunId;
use belljar_contract::tool::AgentKind;
use belljar_gateway::{EndpointKind, LARGEST_SHORT_BYTES, routes};
use belljar_tools::caller::Caller;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Routes of the run with that number. Runs of different tests have different numbers.
fn run(rig: &Rig, number: u8) -> axum::Router {
    let run_id = RunId::parse(&format!("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d{number:02x}")).unwrap();
    let caller = Caller { kind: AgentKind::Operator, run_id: Some(run_id), ..in_sandbox() };
    routes(Arc::clone(&rig.gateway), EndpointKind::Hatch(seat(caller)), CancellationToken::new())
}

/// Calls a tool with arguments of that length.
async fn call(run: axum::Router, name: &str, bytes: usize) -> (StatusCode, Value) {
    let arguments = json!({ "task_id": TASK, "padding": "x".repeat(bytes) });
    let params = json!({ "name": name, "arguments": arguments });
    send(run, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string())
        .await
}

async fn send(run: axum::Router, message: String) -> (StatusCode, Value) {
    let request = Request::post("/mcp")
        .header("host", "127.0.0.1:7070")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Body::from(message))
        .unwrap();
    let response = run.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 8 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn long_call_is_handled_on_a_separate_thread() {
    let rig = Rig::new();
    let here = format!("{:?}", std::thread::current().id());
    let of = async |bytes| {
        let (status, answer) = call(run(&rig, 1), "where", bytes).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["result"]["structuredContent"]["data"].as_str().unwrap().to_owned()
    };
    assert_ne!(of(LARGEST_SHORT_BYTES).await, here);
    // Control: a short call is handled by the only thread of this runtime.
    assert_eq!(of(1).await, here);
}

#[tokio::test]
async fn run_has_one_long_call_under_way_and_delays_no_other_run() {
    let rig = Rig::new();
    let (many, one) = (run(&rig, 2), run(&rig, 3));
    let first = tokio::spawn(call(many.clone(), "wait", LARGEST_SHORT_BYTES));
    while rig.called() == 0 {
        assert!(!first.is_finished());
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn(call(many.clone(), "tell", LARGEST_SHORT_BYTES));
    tokio::task::yield_now().await;
    // Controls: another run's long call, and this run's short one.
    assert_eq!(call(one, "tell", LARGEST_SHORT_BYTES).await.0, StatusCode::OK);
    assert_eq!(call(many, "tell", 1).await.0, StatusCode::OK);
    assert_eq!((rig.called(), second.is_finished()), (3, false));
    first.abort();
}

#[tokio::test]
async fn message_with_too_many_json_values_is_a_bad_request() {
    let rig = Rig::new();
    let of = |count: usize| {
        let list = vec!["{\"a\":0}"; count].join(",");
        let arguments = format!(r#"{{"task_id":"{TASK}","list":[{list}]}}"#);
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"tell","arguments":{arguments}}}}}"#
        )
    };
    let (status, answer) = send(run(&rig, 4), of(43_690)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    let reason = answer["error"]["message"].as_str().unwrap();
    assert!(reason.contains("at most 131072"), "{reason}");
    assert_eq!(rig.called(), 0);
    // Control: slightly fewer.
    assert_eq!(send(run(&rig, 4), of(43_680)).await.0, StatusCode::OK);
    assert_eq!(rig.called(), 1);
}
