//! Tests of the maximum demand of each request shape, and of lowering the output limit.

use super::*;
use crate::inference::route::{Route, find};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

/// Number of tokens that files count as.
const FILES: u64 = 900_000;

fn call(path: &str) -> Call {
    let Some(Route::Call(call)) = find("POST", path) else { panic!("{path}") };
    call
}

fn read(kind: ProviderKind, path: &str, body: &Value) -> Result<Demand, Refusal> {
    Demand::read(body.to_string().as_bytes(), (call(path), kind), FILES)
}

/// Returns the body after that output limit was granted.
fn limited(kind: ProviderKind, path: &str, body: &Value, granted: u64) -> Value {
    let text = body.to_string();
    let demand = Demand::read(text.as_bytes(), (call(path), kind), FILES).unwrap();
    let changed = demand.limit(text.as_bytes(), (call(path), kind), granted).unwrap();
    changed.map_or_else(|| body.clone(), |changed| serde_json::from_slice(&changed).unwrap())
}

#[test]
fn demand_counts_output_limits_and_number_of_choices() {
    use ProviderKind::*;
    for (kind, path, body, output, choices) in [
        (OpenAi, CHAT, json!({"max_tokens": 100}), Some(100), 1),
        (OpenAi, CHAT, json!({"max_tokens": 100, "max_completion_tokens": 300}), Some(300), 1),
        (OpenAi, CHAT, json!({"max_tokens": null, "n": 128}), None, 128),
        (Ollama, CHAT, json!({"max_completion_tokens": 300}), None, 1),
        (OpenAi, CHAT, json!({"max_tokens": 1.0e3}), None, 1),
        (OpenAi, CHAT, json!({"max_tokens": "100"}), None, 1),
        (OpenAi, CHAT, json!({"max_tokens": -1}), None, 1),
        // 0 may mean "no limit".
        (OpenAi, CHAT, json!({"max_tokens": 0}), None, 1),
        (OpenAi, CHAT, json!({"max_tokens": 5, "max_completion_tokens": 0}), None, 1),
        (LiteLlm, CHAT, json!({"max_completion_tokens": 0}), None, 1),
        (Ollama, CHAT, json!({"max_tokens": 0}), None, 1),
        (OpenAi, "/v1/completions", json!({"max_tokens": 0}), None, 1),
        (OpenAi, "/v1/responses", json!({"max_output_tokens": 0}), None, 1),
        (Anthropic, "/v1/messages", json!({"max_tokens": 0}), None, 1),
        (Ollama, "/api/chat", json!({"options": {"num_predict": 0}}), None, 1),
        (OpenAi, "/v1/completions", json!({"max_tokens": 5, "n": 2, "best_of": 3}), Some(5), 6),
        (OpenAi, "/v1/completions", json!({"prompt": ["a", "b"], "n": 2}), None, 4),
        (OpenAi, "/v1/completions", json!({"prompt": [[1, 2], [3]], "max_tokens": 5}), Some(5), 2),
        (OpenAi, "/v1/completions", json!({"prompt": [1, 2, 3], "max_tokens": 5}), Some(5), 1),
        (OpenAi, CHAT, json!({"max_tokens": 7, "reasoning": {"max_tokens": 2_000}}), Some(2_007), 1),
        (OpenAi, CHAT, json!({"max_tokens": 7, "reasoning": {"effort": "low"}}), Some(7), 1),
        (Ollama, CHAT, json!({"max_tokens": 7, "max_completion_tokens": 9}), Some(9), 1),
        (Anthropic, "/v1/messages", json!({"max_tokens": 7}), Some(7), 1),
        (
            Anthropic,
            "/v1/messages",
            json!({"max_tokens": 7, "thinking": {"type": "enabled", "budget_tokens": 2_000}}),
            Some(2_007),
            1,
        ),
        (Ollama, "/api/chat", json!({"options": {"num_predict": 9}}), Some(9), 1),
        (Ollama, "/api/generate", json!({"options": {"num_predict": -1}}), None, 1),
        (Ollama, "/api/generate", json!({}), None, 1),
        (OpenAi, "/v1/embeddings", json!({"input": ["a"], "max_tokens": 9}), None, 1),
    ] {
        let demand = read(kind, path, &body).unwrap();
        assert_eq!((demand.output, demand.choices), (output, choices), "{path} {body}");
        assert_eq!(demand.input, body.to_string().len() as u64, "{path} {body}");
    }
    let counted = read(Anthropic, "/v1/messages/count_tokens", &json!({"max_tokens": 7})).unwrap();
    assert!(!counted.is_charged());
    for bad in [json!({"n": 0}), json!({"n": 2.0}), json!({"n": "2"}), json!({"best_of": [1]})] {
        assert!(matches!(read(OpenAi, CHAT, &bad), Err(Refusal::NotJson { .. })), "{bad}");
    }
    let most = read(OpenAi, CHAT, &json!({"max_tokens": u64::MAX, "n": u64::MAX})).unwrap();
    assert_eq!(most.total(u64::MAX), u64::MAX);
}

#[test]
fn images_and_files_count_a_fixed_number_of_tokens() {
    let url = |kind: &str| json!({"image_url": {"url": format!("data:{kind};base64,AA")}});
    let source = |kind: &str| json!({"source": {"type": "base64", "media_type": kind, "data": "AA"}});
    let content = |content: Value| json!({"messages": [{"content": content}]});
    const IMAGE: u64 = 50_000;
    for (path, body, tokens) in [
        (CHAT, content(json!([url("image/png"), url("image/png")])), 2 * IMAGE),
        (CHAT, content(json!([url("application/pdf"), url("video/mp4")])), FILES),
        (CHAT, content(json!([url("image/png"), url("")])), IMAGE + FILES),
        (CHAT, content(json!([{"input_audio": {"data": "AA", "format": "wav"}}])), FILES),
        (CHAT, content(json!([{"file": {"file_data": "AA"}}])), FILES),
        ("/v1/messages", content(json!([source("image/png")])), IMAGE),
        ("/v1/messages", content(json!([source("application/pdf")])), FILES),
        ("/v1/messages", content(json!([{"source": {"type": "base64", "data": "AA"}}])), FILES),
        ("/api/generate", json!({"images": ["AA", "BB"]}), 2 * IMAGE),
        ("/api/chat", json!({"messages": [{"role": "user", "content": "", "images": ["AA"]}]}), IMAGE),
        (CHAT, content(json!("an image, \"data:image\", \"base64\" and ä")), 0),
        (CHAT, content(json!("input_audio, image/png, application/pdf")), 0),
    ] {
        let demand = read(ProviderKind::LiteLlm, path, &body).unwrap();
        assert_eq!(demand.input - body.to_string().len() as u64, tokens, "{body}");
    }
}

#[test]
fn file_counts_as_file_despite_a_contradicting_image_type() {
    for body in [
        r#"{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,AA","format":"video/mp4"}}]}]}"#,
        r#"{"messages":[{"content":[{"image_url":{"format":"video/mp4","url":"data:image/png;base64,AA"}}]}]}"#,
        r#"{"messages":[{"source":{"type":"base64","media_type":"image/png","mime_type":"application/pdf"}}]}"#,
        r#"{"messages":[{"source":{"media_type":"application/pdf","media_type":"image/png","type":"base64"}}]}"#,
        r#"{"messages":[{"content":[{"file":{"file\u005fdata":"AA"}}]}]}"#,
        r#"{"messages":[{"content":[{"Input_Audio":{"data":"AA"}}]}]}"#,
    ] {
        let demand = Demand::read(body.as_bytes(), (call(CHAT), ProviderKind::LiteLlm), FILES).unwrap();
        assert!(demand.input >= FILES, "{body}");
    }
}

#[test]
fn attachment_is_counted_in_every_spelling() {
    for (path, body) in [
        (CHAT, r#"{"messages":[{"content":[{"url":"\u0064ata:image/png;base64,AA"}]}]}"#),
        (CHAT, r#"{"messages":[{"content":[{"url":"data\u003aimage/png;base64,AA"}]}]}"#),
        (CHAT, r#"{"messages":[{"content":[{"url":" DATA:IMAGE/png,AA"}]}]}"#),
        (
            "/v1/messages",
            r#"{"messages":[{"source":{"type":"base\u0036\u0034","media_type":"image/png","data":"AA"}}]}"#,
        ),
        ("/api/chat", r#"{"messages":[{"content":"","Images":["AA"]}]}"#),
        ("/api/chat", r#"{"messages":[{"content":"","\u0069mages":["AA"]}]}"#),
        ("/api/chat", r#"{"messages":[{"content":"","imageſ":["AA"]}]}"#),
        ("/api/chat", r#"{"messages":[{"content":"","images":["AA"]},null]}"#),
        ("/api/chat", r#"{"messages":[{"content":"","images":["AA"]},{"images":null}]}"#),
    ] {
        let demand = Demand::read(body.as_bytes(), (call(path), ProviderKind::LiteLlm), FILES).unwrap();
        assert_eq!(demand.input, body.len() as u64 + 50_000, "{body}");
    }
    // Control: text that mentions attachments, and a tool call with some in its arguments.
    for (path, body) in [
        (CHAT, r#"{"messages":[{"content":"\u00e4 data: base64 images file_data"}]}"#),
        ("/api/chat", r#"{"messages":[{"tool_calls":[{"function":{"arguments":{"images":["AA"]}}}]}]}"#),
    ] {
        let demand = Demand::read(body.as_bytes(), (call(path), ProviderKind::LiteLlm), FILES).unwrap();
        assert_eq!(demand.input, body.len() as u64, "{body}");
    }
}

#[test]
fn context_edit_that_calls_the_model_again_is_refused_under_a_token_limit() {
    let with = |management: Value| json!({"max_tokens": 9, "context_management": management});
    let edit = |kind: &str| json!({"edits": [{"type": "clear_thinking_20251015"}, {"type": kind}]});
    let messages = |body: &Value| read(ProviderKind::Anthropic, "/v1/messages", body);
    for (management, member) in [
        (edit("compact_20260112"), "context_management.edits[1].type"),
        (edit("clear_tool_uses_and_compact_20260112"), "context_management.edits[1].type"),
        (json!({"edits": [{"trigger": {}}]}), "context_management.edits[0].type"),
        (json!({"edits": [], "compaction": {}}), "context_management.compaction"),
    ] {
        let refused = messages(&with(management)).unwrap_err();
        assert!(
            matches!(&refused, Refusal::Forbidden { member: own, .. } if own.as_str() == member),
            "{refused:?}"
        );
    }
    for bad in [json!([]), json!("compact"), json!({"edits": {"type": "compact_20260112"}})] {
        assert_eq!(messages(&with(bad.clone())).unwrap_err().code(), "invalid_body", "{bad}");
    }
    for management in [edit("clear_tool_uses_20250919"), json!({"edits": []}), json!({}), json!(null)] {
        messages(&with(management)).unwrap();
    }
}

#[test]
fn demand_that_cannot_be_estimated_is_refused() {
    let think = |thinking: &str| format!(r#"{{"max_tokens":9000,"thinking":{thinking}}}"#);
    let images = |images: &str| format!(r#"{{"messages":[{{{images}}}]}}"#);
    for (path, body) in [
        ("/api/chat", images(r#""images":["AA"],"images":[]"#)),
        ("/api/chat", images(r#""images":["AA"],"Images":null"#)),
        ("/api/chat", images(r#""images":["AA"]},{"images":"AA""#)),
        ("/api/chat", images(r#""images":["AA"],"content":"\ud800""#)),
        ("/v1/messages", think(r#"{"budget_tokens":1024,"budget_tokens":40000}"#)),
        ("/v1/messages", think(r#"{"budget_tokens":1024,"Budget_Tokens":40000}"#)),
        ("/v1/messages", think(r#"{"budget_tokens":0}"#)),
        ("/v1/messages", think("40000")),
        (CHAT, r#"{"reasoning":{"max_tokens":0}}"#.to_owned()),
        (CHAT, r#"{"reasoning":{"max_tokens":1,"Max_Tokens":9}}"#.to_owned()),
        (CHAT, r#"{"reasoning":{"max_tokens":9},"thinking":{"budget_tokens":9}}"#.to_owned()),
        ("/api/chat", r#"{"options":{"num_predict":1,"Num_Predict":9}}"#.to_owned()),
        ("/api/chat", r#"{"options":{"num_predict":1,"num_predict":9}}"#.to_owned()),
        ("/v1/completions", r#"{"prompt":{"a":["b"]}}"#.to_owned()),
    ] {
        let refused = Demand::read(body.as_bytes(), (call(path), ProviderKind::LiteLlm), FILES).unwrap_err();
        assert_eq!((refused.code(), refused.status()), ("invalid_body", 400), "{body}");
    }
    for (path, body) in [
        ("/v1/messages", think(r#"{"type":"enabled","budget_tokens":2048}"#)),
        ("/v1/messages", think(r#"{"type":"disabled"}"#)),
        ("/v1/messages", think("null")),
        ("/api/chat", images(r#""images":["AA"],"content":"a""#)),
    ] {
        Demand::read(body.as_bytes(), (call(path), ProviderKind::LiteLlm), FILES).unwrap();
    }
}

#[test]
fn ollama_prompt_template_is_refused_under_a_token_limit() {
    let template = json!({"prompt": "x", "template": "{{printf \"%0100000d\" 1}}"});
    let refused = read(ProviderKind::Ollama, "/api/generate", &template).unwrap_err();
    assert_eq!((refused.code(), refused.status()), ("member_not_allowed", 400));
    let plain = json!({"prompt": "x", "system": "y", "suffix": "z", "context": [1, 2], "template": null});
    let demand = read(ProviderKind::Ollama, "/api/generate", &plain).unwrap();
    assert_eq!(demand.input, plain.to_string().len() as u64);
}

#[test]
fn output_limit_is_set_or_lowered_in_the_member_that_the_provider_reads() {
    use ProviderKind::*;
    for (kind, path, body, expected) in [
        (OpenAi, CHAT, json!({"n": 1}), json!({"n": 1, "max_completion_tokens": 50})),
        (LiteLlm, CHAT, json!({"n": 1}), json!({"n": 1, "max_tokens": 50})),
        (Ollama, CHAT, json!({"n": 1}), json!({"n": 1, "max_tokens": 50})),
        (OpenAi, CHAT, json!({"max_tokens": 900}), json!({"max_tokens": 50})),
        (OpenAi, CHAT, json!({"max_tokens": 50}), json!({"max_tokens": 50})),
        (OpenAi, CHAT, json!({"max_tokens": "900"}), json!({"max_tokens": 50})),
        (
            OpenAi,
            CHAT,
            json!({"max_tokens": 20, "max_completion_tokens": 900}),
            json!({"max_tokens": 20, "max_completion_tokens": 50}),
        ),
        (OpenAi, "/v1/completions", json!({"prompt": "a"}), json!({"prompt": "a", "max_tokens": 50})),
        (OpenAi, "/v1/responses", json!({"input": "a"}), json!({"input": "a", "max_output_tokens": 50})),
        (Anthropic, "/v1/messages", json!({"max_tokens": 900}), json!({"max_tokens": 50})),
        (OpenAi, CHAT, json!({"max_completion_tokens": 0}), json!({"max_completion_tokens": 50})),
        (
            LiteLlm,
            CHAT,
            json!({"max_tokens": 5, "max_completion_tokens": 0}),
            json!({"max_tokens": 5, "max_completion_tokens": 50}),
        ),
        (Ollama, CHAT, json!({"max_tokens": 0}), json!({"max_tokens": 50})),
        // Ollama ignores the other member, so the main one is set, too.
        (
            Ollama,
            CHAT,
            json!({"max_completion_tokens": 900}),
            json!({"max_completion_tokens": 50, "max_tokens": 50}),
        ),
        (
            Ollama,
            CHAT,
            json!({"max_tokens": 20, "max_completion_tokens": 900}),
            json!({"max_tokens": 20, "max_completion_tokens": 50}),
        ),
        (OpenAi, "/v1/responses", json!({"max_output_tokens": 0}), json!({"max_output_tokens": 50})),
        (Anthropic, "/v1/messages", json!({"max_tokens": 0}), json!({"max_tokens": 50})),
        (
            Ollama,
            "/api/chat",
            json!({"options": {"num_predict": 0}}),
            json!({"options": {"num_predict": 50}}),
        ),
        (Ollama, "/api/chat", json!({}), json!({"options": {"num_predict": 50}})),
        (
            Ollama,
            "/api/chat",
            json!({"options": {"num_predict": -1, "seed": 1}}),
            json!({"options": {"num_predict": 50, "seed": 1}}),
        ),
        (Ollama, "/api/chat", json!({"options": {"num_predict": 9}}), json!({"options": {"num_predict": 9}})),
    ] {
        assert_eq!(limited(kind, path, &body, 50), expected, "{path} {body}");
    }
}

#[test]
fn thinking_limit_is_lowered_below_the_output_limit() {
    let body = json!({"max_tokens": 9_000, "thinking": {"type": "enabled", "budget_tokens": 8_000}});
    let changed = limited(ProviderKind::Anthropic, "/v1/messages", &body, 5_000);
    let (limit, thinking) = (&changed["max_tokens"], &changed["thinking"]["budget_tokens"]);
    assert_eq!((limit, thinking), (&json!(2_501), &json!(2_499)));
    assert_eq!(limited(ProviderKind::Anthropic, "/v1/messages", &body, 17_000), body);
    let reasoning = json!({"max_tokens": 9_000, "reasoning": {"max_tokens": 100_000_000}});
    let changed = limited(ProviderKind::OpenAi, CHAT, &reasoning, 5_000);
    assert_eq!(changed, json!({"max_tokens": 2_501, "reasoning": {"max_tokens": 2_499}}));
    let text = body.to_string();
    let (call, kind) = (call("/v1/messages"), ProviderKind::Anthropic);
    let demand = Demand::read(text.as_bytes(), (call, kind), FILES).unwrap();
    let refused = demand.limit(text.as_bytes(), (call, kind), 100).unwrap_err();
    assert_eq!(refused.code(), "budget_exceeded");
}
