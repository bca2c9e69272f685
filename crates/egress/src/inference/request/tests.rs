//! Tests of what a provider is sent, and what it is never sent.

use super::*;
use crate::inference::models::Provider;
use crate::inference::route::{Route, find};
use crate::upstream::Upstream;
use belljar_contract::id::RunId;
use serde_json::{Value, json};
use std::sync::Arc;

fn models(kind: ProviderKind) -> Models {
    let upstream = Upstream::parse("http://127.0.0.1:1").unwrap();
    let provider = Arc::new(Provider { name: "house".to_owned(), kind, upstream, credential: None });
    let (name, upstream_name) = ("small".to_owned(), "their-small".to_owned());
    let model = Model { name, upstream_name, provider, stated_price: None };
    [model].into_iter().collect()
}

fn identity() -> Identity {
    Identity {
        run_id: RunId::parse("01a20073-e9f5-7598-b496-5102b8186da2").unwrap(),
        attempt: 0,
        billing_account_id: "account".to_owned(),
        graph_id: "sandbox:agent".to_owned(),
        user_id: None,
        existing_trace_id: None,
        session_id: None,
        trace_user_id: None,
    }
}

fn prepared(kind: ProviderKind, path: &str, body: &Value) -> Result<(Value, bool), Refusal> {
    let Some(Route::Call(call)) = find("POST", path) else { panic!("{path}") };
    let prepared = prepare(body.to_string().into_bytes(), call, &models(kind), &identity())?;
    Ok((serde_json::from_slice(&prepared.body).unwrap(), prepared.streams))
}

#[test]
fn host_sets_user_and_model_in_every_api_format() {
    use ProviderKind::*;
    let body = json!({"model": "small", "user": "me", "metadata": {"a": 1}, "tools": []});
    for (kind, path, expected) in [
        (LiteLlm, "/v1/chat/completions", json!({"model": "their-small", "user": "account", "tools": []})),
        (
            OpenAi,
            "/v1/responses",
            json!({"model": "their-small", "user": "account", "tools": [], "store": false}),
        ),
        (
            Anthropic,
            "/v1/messages",
            json!({"model": "their-small", "metadata": {"user_id": "account"}, "tools": []}),
        ),
        (Anthropic, "/v1/messages/count_tokens", json!({"model": "their-small", "tools": []})),
        (Ollama, "/v1/chat/completions", json!({"model": "their-small", "tools": []})),
    ] {
        assert_eq!(prepared(kind, path, &body).unwrap().0, expected, "{path}");
    }
    let stored = json!({"model": "small", "store": true});
    assert_eq!(prepared(OpenAi, "/v1/chat/completions", &stored).unwrap().0["store"], json!(false));
}

#[test]
fn stream_request_includes_usage_and_keeps_its_other_options() {
    let path = "/v1/chat/completions";
    let stream = json!({"model": "small", "stream": true, "stream_options": {"include_obfuscation": false}});
    let (sent, streams) = prepared(ProviderKind::LiteLlm, path, &stream).unwrap();
    assert!(streams);
    assert_eq!(sent["stream_options"], json!({"include_obfuscation": false, "include_usage": true}));
    let off = json!({"model": "small", "stream": true, "stream_options": {"include_usage": false}});
    assert_eq!(
        prepared(ProviderKind::LiteLlm, path, &off).unwrap().0["stream_options"],
        json!({"include_usage": true})
    );
    let whole = json!({"model": "small", "stream": false});
    let (sent, streams) = prepared(ProviderKind::LiteLlm, path, &whole).unwrap();
    assert!(!streams && sent.get("stream_options").is_none());
    // Ollama streams by default.
    assert!(prepared(ProviderKind::Ollama, "/api/chat", &json!({"model": "small"})).unwrap().1);
    assert!(!prepared(ProviderKind::Ollama, "/api/chat", &whole).unwrap().1);
    for bad in [json!({"model": "small", "stream": "true"}), json!({"model": "small", "stream": 1})] {
        assert!(matches!(prepared(ProviderKind::OpenAi, path, &bad), Err(Refusal::NotJson { .. })));
    }
}

#[test]
fn unknown_members_are_refused_and_known_ones_accepted() {
    let path = "/v1/chat/completions";
    let with = |name: &str| json!({"model": "small", name: "x"});
    for name in [
        "api_base",
        "api_key",
        "content_policy_fallbacks",
        "router_settings_override",
        "mock_response",
        "tags",
        "litellm_metadata",
        "aws_access_key_id",
        "input_cost_per_token",
        "langfuse_host",
        "Model",
        "STREAM",
        "\u{17f}tream",
        "",
        "extra_body",
        "plugins",
        "data_sources",
        "search_parameters",
        "vector_store_ids",
    ] {
        for kind in [ProviderKind::LiteLlm, ProviderKind::OpenAi, ProviderKind::Ollama] {
            let refused = prepared(kind, path, &with(name));
            let is_named =
                matches!(&refused, Err(Refusal::Forbidden { member, .. }) if member.as_str() == name);
            assert!(is_named, "{name}: {refused:?}");
        }
    }
    for name in ["temperature", "reasoning_effort", "n", "response_format"] {
        assert!(prepared(ProviderKind::LiteLlm, path, &with(name)).is_ok(), "{name}");
    }
}

#[test]
fn each_api_format_accepts_only_the_output_limits_that_are_counted() {
    const ALL: [&str; 7] = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "n",
        "best_of",
        "thinking",
        "num_predict",
    ];
    for (path, allowed) in [
        ("/v1/chat/completions", &["max_tokens", "max_completion_tokens", "n", "best_of", "thinking"][..]),
        ("/v1/completions", &["max_tokens", "n", "best_of"]),
        ("/v1/responses", &["max_output_tokens"]),
        ("/v1/embeddings", &[]),
        ("/v1/messages", &["max_tokens", "thinking"]),
        ("/v1/messages/count_tokens", &["max_tokens", "thinking"]),
    ] {
        for name in ALL {
            let sent = prepared(ProviderKind::LiteLlm, path, &json!({"model": "small", name: 16}));
            assert_eq!(sent.is_ok(), allowed.contains(&name), "{path} {name}");
        }
    }
}

#[test]
fn nested_output_limit_that_is_not_counted_is_refused() {
    let path = "/v1/chat/completions";
    for (member, within) in [
        ("reasoning", "max_output_tokens"),
        ("reasoning", "Max_Tokens"),
        ("reasoning", "budget_tokens"),
        ("reasoning", "token_limit"),
        ("thinking", "max_tokens"),
        ("thinking", "thinking_budget"),
        ("thinking", "maxLength"),
    ] {
        let body = json!({"model": "small", member: {within: 100_000_000}});
        let refused = prepared(ProviderKind::OpenAi, path, &body).unwrap_err();
        let expected = format!("{member}.{within}");
        assert!(
            matches!(&refused, Refusal::Forbidden { member, .. } if member.as_str() == expected),
            "{expected}: {refused:?}"
        );
    }
    for body in [
        json!({"model": "small", "reasoning": {"effort": "high", "max_tokens": 9, "exclude": true}}),
        json!({"model": "small", "reasoning": null, "thinking": null}),
        json!({"model": "small", "thinking": {"type": "enabled", "budget_tokens": 9, "display": "omitted"}}),
    ] {
        prepared(ProviderKind::OpenAi, path, &body).unwrap();
    }
}

#[test]
fn ollama_options_that_use_host_resources_are_bounded() {
    let with = |name: &str, value: Value| json!({"model": "small", "prompt": "a", "options": {name: value}});
    let sent = |body: &Value| prepared(ProviderKind::Ollama, "/api/generate", body);
    for size in [json!(0), json!(-1), json!(262_145), json!(1e9), json!("8192"), json!([1])] {
        assert_eq!(sent(&with("num_ctx", size.clone())).unwrap_err().code(), "invalid_body", "{size}");
    }
    for (name, value) in [
        ("num_thread", json!(100_000)),
        ("num_thread", json!(-1)),
        ("num_batch", json!(2_147_483_647)),
        ("num_batch", json!(0)),
        ("repeat_last_n", json!(2_147_483_647)),
        ("num_gpu", json!(1_000_000)),
        ("num_keep", json!(1e9)),
    ] {
        assert_eq!(sent(&with(name, value)).unwrap_err().code(), "invalid_body", "{name}");
    }
    for name in ["Num_Thread", "num_threads", "vocab_only", "num_\u{17f}tx", ""] {
        assert_eq!(sent(&with(name, json!(1))).unwrap_err().code(), "member_not_allowed", "{name}");
    }
    for (name, value) in [
        ("num_ctx", json!(8_192)),
        ("num_ctx", json!(262_144)),
        ("num_ctx", json!(null)),
        ("num_thread", json!(8)),
        ("num_batch", json!(512)),
        ("num_gpu", json!(-1)),
        ("temperature", json!(0.5)),
        ("num_predict", json!(-1)),
        ("stop", json!(["a"])),
    ] {
        sent(&with(name, value)).unwrap();
    }
    let embedded = json!({"model": "small", "input": "a", "options": {"num_thread": 100_000}});
    assert!(prepared(ProviderKind::Ollama, "/api/embed", &embedded).is_err());
    sent(&json!({"model": "small", "prompt": "a", "options": null})).unwrap();
}
