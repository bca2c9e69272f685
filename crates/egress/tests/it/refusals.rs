//! What isn't allowed is refused before anybody outside hears of it, in words that the client understands, and recorded.

use crate::rig::{CHAT, Plan, Rig};
use belljar_contract::inference::CallOutcome;
use belljar_egress::inference::budget::BudgetLimits;
use belljar_testkit::models::{Answer, Script};
use belljar_testkit::wait;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::atomic::Ordering;

fn hello() -> Rig {
    Rig::new(Script::always(Answer::text("hello")))
}

fn reasons(rig: &Rig) -> Vec<String> {
    let reason = |outcome: CallOutcome| match outcome {
        CallOutcome::Denied { reason } => reason.as_str().to_owned(),
        other => format!("{other}"),
    };
    rig.book.records().into_iter().map(|record| reason(record.outcome)).collect()
}

#[test]
fn another_model_path_or_method_is_refused_and_nobody_is_asked() {
    let rig = hello();
    for (path, body, status, reason) in [
        (CHAT, json!({"model": "other"}), 403, "model_not_allowed"),
        (CHAT, json!({"model": "gpt-4o-mini"}), 403, "model_not_allowed"),
        (CHAT, json!({"model": "SMALL"}), 403, "model_not_allowed"),
        (CHAT, json!({"model": ["small"]}), 400, "model_missing"),
        (CHAT, json!({}), 400, "model_missing"),
        (CHAT, json!([]), 400, "invalid_body"),
        (CHAT, json!({"model": "small", "api_base": "http://evil"}), 400, "member_not_allowed"),
        (CHAT, json!({"model": "small", "litellm_session_id": "x"}), 400, "member_not_allowed"),
        (CHAT, json!({"model": "small", "mock_response": "free"}), 400, "member_not_allowed"),
        (CHAT, json!({"model": "small", "input_cost_per_token": 0}), 400, "member_not_allowed"),
        (CHAT, json!({"model": "small", "tools": [{"type": "web_search"}]}), 400, "member_not_allowed"),
        ("/v1/responses", json!({"model": "small", "previous_response_id": "r"}), 400, "member_not_allowed"),
        ("/api/chat", json!({"model": "small"}), 400, "model_not_on_this_route"),
        ("/v1/files", json!({"model": "small"}), 404, "not_found"),
        ("/key/generate", json!({"model": "small"}), 404, "not_found"),
        ("/v1/chat/completions/", json!({"model": "small"}), 404, "not_found"),
        ("/v1/x/../chat/completions", json!({"model": "small"}), 404, "not_found"),
        ("/v1/chat%2Fcompletions", json!({"model": "small"}), 404, "not_found"),
    ] {
        let before = rig.book.records().len();
        let answer = rig.post(path, "", &body);
        assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
        assert_eq!(reasons(&rig)[before..], [reason], "{path} {body}");
    }
    assert_eq!(rig.get("/spend/logs").status, 404);
    assert_eq!((rig.server.request_count(), rig.server.connection_count()), (0, 0));
    // The control.
    assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, 200);
    assert_eq!(rig.server.request_count(), 1);
}

#[test]
fn a_refusal_has_the_shape_that_its_client_knows_and_says_what_is_allowed() {
    let rig = hello();
    let told = |path: &str| rig.post(path, "", &json!({"model": "other"})).json();
    let openai = told(CHAT);
    assert_eq!(
        (&openai["error"]["code"], &openai["error"]["type"], &openai["error"]["param"]),
        (&json!("model_not_allowed"), &json!("permission_error"), &json!("model"))
    );
    assert!(openai["error"]["message"].as_str().unwrap().contains("allowed are: large, small"));
    let anthropic = told("/v1/messages");
    assert_eq!(
        (&anthropic["type"], &anthropic["error"]["type"]),
        (&json!("error"), &json!("permission_error"))
    );
    assert!(told("/api/chat")["error"].is_string());
}

#[test]
fn only_allowed_models_are_listed() {
    let rig = hello();
    let ids = |list: &Value, name: &str| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one[name].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&rig.get("/v1/models").json()["data"], "id"), ["large", "small"]);
    assert_eq!(ids(&rig.get("/api/tags").json()["models"], "name"), ["large", "small"]);
    assert_eq!(rig.post("/api/show", "", &json!({"model": "other"})).status, 403);
    assert_eq!(rig.get("/health").json(), json!({"status": "ok", "runId": crate::rig::RUN}));
    assert_eq!(rig.server.connection_count(), 0);
}

#[test]
fn a_budget_ends_with_its_name_and_so_do_calls_at_a_time() {
    let limits = BudgetLimits { calls: Some(2), at_once: Some(1), ..BudgetLimits::default() };
    let rig =
        Rig::with(Plan { limits, ..Plan::default() }, Script::always(Answer::text("hello").silent_after(1)));
    let body = json!({"model": "small", "stream": true});
    let mut first = rig.connect();
    first.write_all(&crate::rig::request(CHAT, "", &body)).unwrap();
    wait::until(|| rig.server.request_count() == 1);
    let second = rig.post(CHAT, "", &body);
    assert_eq!((second.status, &second.json()["error"]["code"]), (429, &json!("too_many_calls")));
    drop(first);
    wait::until(|| rig.book.records().len() == 2);
    let mut third = rig.connect();
    third.write_all(&crate::rig::request(CHAT, "", &body)).unwrap();
    wait::until(|| rig.server.request_count() == 2);
    drop(third);
    wait::until(|| rig.book.records().len() == 3);
    let fourth = rig.post(CHAT, "", &body);
    assert_eq!((fourth.status, &fourth.json()["error"]["code"]), (429, &json!("budget_exceeded")));
    assert_eq!(rig.run.budget.spent().calls, 2);
    assert_eq!(rig.server.request_count(), 2);
}

#[test]
fn a_call_that_can_not_be_recorded_is_not_made() {
    let rig = hello();
    rig.book.is_broken.store(true, Ordering::Relaxed);
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!("audit_unavailable")));
    assert_eq!(rig.server.connection_count(), 0);
}
