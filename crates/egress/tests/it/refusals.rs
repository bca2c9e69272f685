//! Tests that calls are refused before anything is sent, in the client's API format, and recorded.

use crate::rig::{CHAT, Rig, RigConfig};
use belljar_contract::inference::{CallOutcome, ProviderKind};
use belljar_egress::inference::budget::BudgetLimits;
use belljar_egress::inference::models::Price;
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
fn disallowed_model_path_or_method_is_refused_without_a_provider_call() {
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
    // Control.
    assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, 200);
    assert_eq!(rig.server.request_count(), 1);
}

#[test]
fn refusal_uses_the_error_format_of_the_client_api_and_lists_models() {
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
    // A provider without Ollama's API has no models for Ollama's clients.
    assert_eq!(ids(&rig.get("/api/tags").json()["models"], "name"), [""; 0]);
    assert_eq!(rig.post("/api/show", "", &json!({"model": "other"})).status, 403);
    assert_eq!(rig.get("/health").json(), json!({"status": "ok", "runId": crate::rig::RUN}));
    assert_eq!(rig.server.connection_count(), 0);
    let ollama = RigConfig { kind: ProviderKind::Ollama, ..RigConfig::default() };
    let rig = Rig::with(ollama, Script::always(Answer::text("hello")));
    assert_eq!(ids(&rig.get("/api/tags").json()["models"], "name"), ["large", "small"]);
}

#[test]
fn call_and_concurrency_limits_are_named_in_refusals() {
    let limits = BudgetLimits { calls: Some(2), at_once: Some(1), ..BudgetLimits::default() };
    let rig = Rig::with(
        RigConfig { limits, ..RigConfig::default() },
        Script::always(Answer::text("hello").silent_after(1)),
    );
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
fn call_that_cannot_be_recorded_is_refused() {
    let rig = hello();
    rig.book.is_broken.store(true, Ordering::Relaxed);
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!("audit_unavailable")));
    assert_eq!(rig.server.connection_count(), 0);
}

#[test]
fn call_is_recorded_before_the_provider_is_contacted() {
    let rig = hello();
    rig.book.is_slow.store(true, Ordering::Relaxed);
    for (is_written, status) in [(false, 503), (true, 200)] {
        let mut stream = rig.connect();
        let asked = crate::rig::request(CHAT, "Connection: close\r\n", &json!({"model": "small"}));
        stream.write_all(&asked).unwrap();
        wait::until(|| rig.book.waiting.lock().unwrap().len() == 1);
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(rig.server.connection_count(), 0);
        let call = rig.book.begun().pop().unwrap();
        assert_eq!((call.model.as_str(), call.provider.as_str()), ("gpt-4o-mini", "house"));
        rig.book.waiting.lock().unwrap().pop().unwrap().send(is_written).unwrap();
        assert_eq!(crate::rig::read(stream).status, status);
        wait::until(|| rig.book.records().last().is_some_and(|record| record.call_id == call.call_id));
    }
    assert_eq!(rig.server.request_count(), 1);
}

#[test]
fn call_waits_for_space_in_the_audit_log() {
    let rig = hello();
    rig.book.is_full.store(true, Ordering::Relaxed);
    let mut stream = rig.connect();
    let asked = crate::rig::request(CHAT, "Connection: close\r\n", &json!({"model": "small"}));
    stream.write_all(&asked).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(rig.server.connection_count(), 0);
    rig.book.is_full.store(false, Ordering::Relaxed);
    assert_eq!(crate::rig::read(stream).status, 200);
}

#[test]
fn refusals_are_throttled_and_calls_are_not() {
    let rig = hello();
    let many = "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50);
    let floods: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = rig.connect();
            stream.write_all(many.as_bytes()).unwrap();
            stream
        })
        .collect();
    // A burst of a thousand, then a hundred per second.
    wait::until(|| rig.book.records().len() >= 1_000);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let refused = rig.book.records().len();
    assert!(refused < 1_500, "{refused}");
    assert!((0..20).all(|_| rig.post(CHAT, "", &json!({"model": "small"})).status == 200));
    drop(floods);
}

#[test]
fn aborted_stream_is_charged_before_its_cost_is_reported() {
    let limits = BudgetLimits { tokens: Some(200), ..BudgetLimits::default() };
    let answer = Answer::text("one two three four five").silent_after(3);
    let rig = Rig::with(RigConfig { limits, ..RigConfig::default() }, Script::always(answer));
    let mut last = 0;
    for calls in 1..100 {
        let mut stream = rig.connect();
        stream.write_all(&crate::rig::request(CHAT, "", &json!({"model": "small", "stream": true}))).unwrap();
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut first).unwrap();
        if &first[9..] != b"200" {
            last = calls;
            break;
        }
        drop(stream);
        wait::until(|| rig.book.records().len() == calls);
    }
    assert!((2..10).contains(&last), "{last}");
    assert_eq!(reasons(&rig).pop().as_deref(), Some("budget_exceeded"));
}

#[test]
fn streams_without_reported_cost_are_charged_by_stated_price_or_refused() {
    let limits = BudgetLimits { cost: Some(0.01), ..BudgetLimits::default() };
    let stream = json!({"model": "small", "stream": true, "max_tokens": 20});
    let made = |stated_price: Option<Price>| {
        let rig = Rig::with(
            RigConfig { limits, stated_price, ..RigConfig::default() },
            Script::always(Answer::text("one two three four five")),
        );
        let made = (0..100).take_while(|_| rig.post(CHAT, "", &stream).status == 200).count();
        (made, reasons(&rig).pop(), rig.run.budget.spent().cost)
    };
    let (calls, reason, _) = made(None);
    assert_eq!((calls, reason.as_deref()), (16, Some("cost_unknown")));
    // A hundred dollars for a million tokens.
    let (calls, reason, cost) = made(Some(Price { input: 0, output: 100_000 }));
    assert_eq!(reason.as_deref(), Some("budget_exceeded"));
    assert!((4..30).contains(&calls) && cost <= 0.01, "{calls} calls, ${cost}");
    // Control: without a limit all calls are made.
    let rig = Rig::with(RigConfig::default(), Script::always(Answer::text("one two three four five")));
    assert!((0..30).all(|_| rig.post(CHAT, "", &stream).status == 200));
}

#[test]
fn deep_or_wide_bodies_do_not_exhaust_memory() {
    let rig = hello();
    let many = |element: &str, count: usize| vec![element; count].join(",");
    // Eight million bytes without content: deep, wide, and with names of every kind.
    for (body, status) in [
        (format!("{{\"model\":\"small\",\"messages\":[{}],\"u\":\"\\u0061\"}}", many("{}", 2_000_000)), 400),
        (format!("{{\"model\":\"small\",\"messages\":[\"\\u0061\",{}]}}", many("[]", 2_000_000)), 200),
        (format!("{{\"model\":\"small\",\"tools\":[{}]}}", many("{}", 2_000_000)), 200),
        (
            format!("{{\"model\":\"small\",\"messages\":{}\"\\u0061\"{}}}", "[".repeat(200), "]".repeat(200)),
            400,
        ),
        (
            format!(
                "{{\"model\":\"small\",\"stream\":true,\"stream_options\":{{\"a\":[{}]}}}}",
                many("{}", 1_000_000)
            ),
            400,
        ),
        (format!("{{\"model\":\"small\",\"{}\":1}}", "a".repeat(1_000_000)), 400),
    ] {
        let before = peak();
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer = rig.raw(&[head.as_bytes(), body.as_bytes()].concat());
        assert_eq!(answer.status, status, "{}: {answer:?}", &body[..60]);
        assert!(answer.bytes.len() < 20_000);
        // This includes the client's own copies.
        let more = peak() - before;
        assert!(more < 200 << 10, "{} took {more} KiB", &body[..60]);
    }
    let show = format!("{{\"model\":[{}]}}", many("{}", 1_000_000));
    let head = format!("POST /api/show HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", show.len());
    assert_eq!(rig.raw(&[head.as_bytes(), show.as_bytes()].concat()).status, 413);
}

/// Returns the peak memory of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
