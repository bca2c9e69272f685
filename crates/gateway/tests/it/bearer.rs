//! Tests of authentication by token: each request is looked up, and each token has a caller slot of its own.

use crate::rig::{Rig, TASK, in_sandbox, planner};
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use belljar_gateway::bearer::{InvalidTokenError, OneToken, TokenLookupError, Tokens, guarded};
use belljar_gateway::caller_slot::{CallerSlot, TooManyRequests};
use belljar_gateway::{EndpointKind, routes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const SANDBOX: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const PLANNER: &str = "0000000000000000000000000000000000000000000000000000000000000002";

/// A token that can't be looked up.
const LOST: &str = "0000000000000000000000000000000000000000000000000000000000000003";

/// Tokens whose look-up takes a while.
struct TokenTable(BTreeMap<&'static str, CallerSlot>);

impl Tokens for TokenTable {
    async fn seat(&self, token: &str) -> Result<CallerSlot, TokenLookupError> {
        tokio::task::yield_now().await;
        let unknown = if token == LOST { TokenLookupError::NotKnown } else { TokenLookupError::Unknown };
        self.0.get(token).cloned().ok_or(unknown)
    }
}

/// An endpoint for two callers, and the token that removes the first one's slot.
fn door(rig: &Rig) -> (axum::Router, CancellationToken) {
    let ended = CancellationToken::new();
    let seats = [
        (SANDBOX, CallerSlot::new(in_sandbox(), ended.clone())),
        (PLANNER, CallerSlot::new(planner(), CancellationToken::new())),
    ];
    let door = EndpointKind::Remote(vec!["node.example:443".to_owned()]);
    let routes = routes(Arc::clone(&rig.gateway), door, CancellationToken::new());
    (guarded(routes, Arc::new(TokenTable(seats.into_iter().collect()))), ended)
}

async fn ask(router: &axum::Router, token: Option<&str>, method: &str, params: Value) -> (StatusCode, Value) {
    let mut request = Request::post("/mcp")
        .header("host", "node.example:443")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let response =
        router.clone().oneshot(request.body(Body::from(message.to_string())).unwrap()).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

async fn listed(router: &axum::Router, token: &str) -> Vec<String> {
    let (status, told) = ask(router, Some(token), "tools/list", json!({})).await;
    assert_eq!(status, StatusCode::OK, "{told}");
    let tools = told["result"]["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_token_gets_the_tools_of_its_own_caller_slot() {
    let rig = Rig::new();
    let (router, _ended) = door(&rig);
    assert!(listed(&router, PLANNER).await.contains(&"sandbox.exec".to_owned()));
    assert!(!listed(&router, SANDBOX).await.contains(&"sandbox.exec".to_owned()));
    let call = json!({ "name": "artifact.get", "arguments": { "task_id": TASK } });
    let (status, called) = ask(&router, Some(SANDBOX), "tools/call", call).await;
    assert_eq!((status, &called["result"]["isError"]), (StatusCode::OK, &json!(false)), "{called}");
    assert_eq!(rig.records().last().unwrap().1["subject_type"], "sandbox");
}

#[tokio::test]
async fn token_is_rejected_at_once_after_its_caller_slot_ends() {
    let rig = Rig::new();
    let (router, ended) = door(&rig);
    assert_eq!(ask(&router, Some(SANDBOX), "tools/list", json!({})).await.0, StatusCode::OK);
    ended.cancel();
    let call = json!({ "name": "artifact.get", "arguments": { "task_id": TASK } });
    for (method, params) in [("tools/list", json!({})), ("tools/call", call), ("initialize", json!({}))] {
        assert_eq!(ask(&router, Some(SANDBOX), method, params).await.0, StatusCode::UNAUTHORIZED, "{method}");
    }
    assert_eq!(ask(&router, Some(PLANNER), "tools/list", json!({})).await.0, StatusCode::OK);
    assert_eq!(ask(&router, None, "tools/list", json!({})).await.0, StatusCode::UNAUTHORIZED);
    // A token that can't be looked up isn't reported as invalid: its client would discard it.
    assert_eq!(ask(&router, Some(LOST), "tools/list", json!({})).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(rig.called(), 0);
}

#[test]
fn short_or_malformed_token_is_invalid() {
    let new =
        |token: &str| OneToken::new(token, CallerSlot::new(planner(), CancellationToken::new())).map(drop);
    assert_eq!(new(SANDBOX), Ok(()));
    for token in ["", "short", &SANDBOX[..31], &format!("{SANDBOX} "), "ä".repeat(32).as_str()] {
        assert_eq!(new(token), Err(InvalidTokenError), "{token}");
    }
}

#[tokio::test]
async fn token_is_removed_before_the_request_reaches_the_handler() {
    let told = |headers: HeaderMap| async move { format!("{headers:?}").contains(SANDBOX).to_string() };
    let behind = || axum::Router::new().route("/mcp", axum::routing::post(told));
    let seat = CallerSlot::new(in_sandbox(), CancellationToken::new());
    let door = guarded(behind(), Arc::new(TokenTable([(SANDBOX, seat)].into_iter().collect())));
    let ask = async |router: axum::Router| {
        let request = Request::post("/mcp").header("authorization", format!("Bearer {SANDBOX}"));
        let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        axum::body::to_bytes(response.into_body(), 1 << 10).await.unwrap()
    };
    assert_eq!(ask(door).await, "false");
    // Control.
    assert_eq!(ask(behind()).await, "true");
}

#[test]
fn caller_slot_limits_concurrent_requests_and_reports_when_unused() {
    let seat = CallerSlot::new(in_sandbox(), CancellationToken::new()).with_room_for(2);
    let other = seat.clone();
    assert!(!seat.is_unused());
    let (first, second) = (seat.enter().unwrap(), other.enter().unwrap());
    assert_eq!(seat.enter().err(), Some(TooManyRequests));
    drop(first);
    assert!(other.enter().is_ok());
    drop((second, other));
    assert!(seat.is_unused());
}
