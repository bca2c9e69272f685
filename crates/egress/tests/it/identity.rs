//! Tests that the host sets the identity of a caller, in head and body, whatever the client states.

use crate::rig::{CHAT, KEY, RUN, Rig, RigConfig};
use belljar_egress::inference::models::ProviderKind;
use belljar_testkit::models::{Answer, Script};
use serde_json::json;

/// Headers by which a client pretends to be another one.
const FORGED: &str = "Authorization: Bearer forged\r\nX-Api-Key: forged\r\nX-LiteLLM-Call-Id: forged\r\n\
                      x-litellm-end-user-id: forged\r\nX-LITELLM-SPEND-LOGS-METADATA: {\"run_id\":\"forged\"}\r\n\
                      x-litellm-tags: forged\r\nx-litellm-timeout: 1\r\nX-Forwarded-For: forged\r\n\
                      Proxy-Authorization: forged\r\nCookie: forged\r\nX-Original-URL: /forged\r\n\
                      Connection: keep-alive, authorization, x-litellm-end-user-id\r\nTE: trailers\r\n\
                      Upgrade: websocket\r\nUser-Agent: agent/1\r\n";

#[test]
fn injected_headers_replace_those_of_the_client() {
    let rig = Rig::new(Script::always(Answer::text("hello")));
    let body = json!({"model": "small", "messages": [], "user": "forged", "metadata": {"run_id": "forged"}});
    let answer = rig.post(CHAT, FORGED, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(rig.server.flawed().is_empty());
    let requests = rig.server.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let once = |name: &str| {
        let all: Vec<&str> = request.headers_named(name).collect();
        assert_eq!(all.len(), 1, "{name}: {all:?}");
        all[0].to_owned()
    };
    assert_eq!(once("authorization"), format!("Bearer {KEY}"));
    assert_eq!(once("x-litellm-end-user-id"), "account-7");
    let metadata: serde_json::Value = serde_json::from_str(&once("x-litellm-spend-logs-metadata")).unwrap();
    assert_eq!(
        metadata,
        json!({"run_id": RUN, "attempt": 2, "user_id": "user-9", "graph_id": "sandbox:agent",
               "existing_trace_id": "trace-1", "session_id": "session-3"})
    );
    assert_eq!(once("x-litellm-call-id"), rig.book.only().call_id.as_str());
    assert_eq!(once("user-agent"), "agent/1");
    assert!(!request.contains(b"forged"), "{request:?}");
    let sent = request.json();
    assert_eq!((&sent["user"], &sent["model"]), (&json!("account-7"), &json!("gpt-4o-mini")));
    assert_eq!(sent.get("metadata"), None);
}

#[test]
fn identity_is_sent_in_the_format_of_each_provider_kind() {
    let rig = Rig::with(
        RigConfig { kind: ProviderKind::Anthropic, ..RigConfig::default() },
        Script::always(Answer::text("hello")),
    );
    let body = json!({"model": "small", "max_tokens": 5, "messages": [], "metadata": {"user_id": "forged"}});
    let answer = rig.post("/v1/messages?beta=true", FORGED, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    let request = rig.server.requests().pop().unwrap();
    assert_eq!(request.header("x-api-key"), Some(KEY));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!((request.header("authorization"), request.path()), (None, "/v1/messages"));
    assert_eq!(request.json()["metadata"], json!({"user_id": "account-7"}));
    assert!(!request.contains(b"forged"));
}

#[test]
fn reported_cost_of_a_call_is_recorded() {
    let rig = Rig::new(Script::always(Answer::text("hello").with_cost(0.000_013_5)));
    rig.post(CHAT, "", &json!({"model": "small", "messages": []}));
    let usage = rig.book.only().usage.unwrap();
    assert_eq!(usage.cost_usd.unwrap().as_str().parse(), Ok(0.000_013_5));
    let rig = Rig::new(Script::always(Answer::text("hello").with_cost(0.25)));
    let streamed = rig.post(CHAT, "", &json!({"model": "small", "messages": [], "stream": true}));
    assert!(streamed.body.contains("[DONE]"), "{streamed:?}");
    let record = rig.book.only();
    assert!(record.is_streamed && record.usage.as_ref().unwrap().input_tokens.is_some(), "{record:?}");
    assert_eq!(record.usage.unwrap().cost_usd.unwrap().as_str().parse(), Ok(0.25));
    let asked = rig.server.requests().pop().unwrap().json();
    assert_eq!(asked["stream_options"]["include_usage"], json!(true));
}

#[test]
fn bodies_are_recorded_if_configured_and_without_credentials() {
    let said = json!({"model": "small", "messages": [{"role": "user", "content": "a question"}]});
    let rig = Rig::new(Script::always(Answer::text("an answer")));
    assert_eq!(rig.post(CHAT, "", &said).status, 200);
    rig.post(CHAT, "", &json!({"model": "other", "messages": []}));
    let bodies = rig.book.bodies();
    assert_eq!(bodies.len(), 1, "bodies of refused calls are not recorded: {bodies:?}");
    let request: serde_json::Value = serde_json::from_str(&bodies[0].request.text).unwrap();
    assert_eq!((&request["messages"], &request["user"]), (&said["messages"], &json!("account-7")));
    assert!(bodies[0].response.text.contains("an answer"), "{bodies:?}");
    assert_eq!(bodies[0].call_id, rig.book.records()[0].call_id);
    for answer in [
        Answer::echo(400),
        Answer::pieces(&["it is ", KEY]),
        Answer::pieces(&["it is ", &KEY[..9], &KEY[9..]]),
    ] {
        let rig = Rig::new(Script::always(answer));
        rig.post(CHAT, "", &json!({"model": "small", "stream": true, "messages": []}));
        belljar_testkit::wait::until(|| rig.book.bodies().len() == 1);
        let bodies = format!("{:?}", rig.book.bodies());
        assert!(!bodies.contains(KEY) && !bodies.contains(&KEY[..9]), "{bodies}");
    }
    let long = Rig::new(Script::always(Answer::text(&"\u{1}".repeat(100_000))));
    long.post(CHAT, "", &said);
    let body = &long.book.bodies()[0].response;
    assert!(body.bytes > 100_000 && body.text.len() <= 16 << 10, "{}", body.text.len());
}
