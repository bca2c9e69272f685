//! The providers' own clients understand the server's answers.

use crate::python;
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall, Usage};
use belljar_testkit::skip::skip;
use serde_json::{Value, json};

const ERROR: &str = "the scripted server was told to answer";

/// A text and a call of a tool; and the error that a model is named for.
fn script() -> Script {
    Script::from_fn(|request| {
        let model = request.model();
        let failing = model.strip_prefix("fail-").and_then(|status| status.parse().ok()).map(Answer::error);
        let call = ToolCall::new(
            "write",
            json!({ "path": "a \"b\"", "text": "many words, over two fragments \u{e9}" }),
        );
        let answer = Answer::pieces(&["Hel", "lo, \u{1f514}", " world"]).and_tool(call);
        let answer = answer.with_usage(Usage { input: 30, output: 12 }).with_cost(0.000_25);
        request.operation().generates().then(|| failing.unwrap_or(answer))
    })
}

fn seen_by(script: &str, test: &str) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let (server, socket) = (ModelServer::start(self::script()), folder.path().join("socket"));
    server.listen_at(&socket);
    let ran = python::run(script, &[&server.url(), &socket.display().to_string()]);
    assert!(server.flawed().is_empty(), "{:?}", server.flawed());
    ran.inspect_err(|why| skip(test, why)).ok()
}

fn arguments() -> Value {
    json!({ "path": "a \"b\"", "text": "many words, over two fragments \u{e9}" })
}

#[test]
fn openais_client_understands_every_answer() {
    let test = "openais_client_understands_every_answer";
    let Some(seen) = seen_by(include_str!("clients/openai.py"), test) else { return };
    let (text, pieces) = ("Hello, \u{1f514} world", json!(["Hel", "lo, \u{1f514}", " world"]));
    let expected = json!({
        "whole": [text, "write", arguments(), "call", "tool_calls", 42, "m", 0.000_25],
        "stream": [pieces, ["write"], arguments(), "tool_calls", 42, 0.000_25],
        "stream_without_usage": [true, true],
        "responses": [text, "write", arguments(), 42, "completed"],
        "responses_stream": [[
            "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
            "response.output_text.delta", "response.output_text.done", "response.content_part.done",
            "response.output_item.done", "response.function_call_arguments.delta",
            "response.function_call_arguments.done", "response.completed",
        ], pieces, arguments(), true, text, 0.000_25],
        "responses_accumulated": text,
        "completions": [text, 42],
        "completions_stream": ["Hel", "lo, \u{1f514}", " world", ""],
        "embeddings": [2, true, true],
        "models": ["scripted"],
        "over_socket": text,
        "401": ["AuthenticationError", 401, "authentication_error", null, "req_"],
        "429": ["RateLimitError", 429, "rate_limit_error", "1", "req_"],
        "500": ["InternalServerError", 500, "api_error", null, "req_"],
        "529": ["InternalServerError", 529, "overloaded_error", null, "req_"],
    });
    assert_eq!(seen, expected);
}

#[test]
fn anthropics_client_understands_every_answer() {
    let test = "anthropics_client_understands_every_answer";
    let Some(seen) = seen_by(include_str!("clients/anthropic.py"), test) else { return };
    let text = "Hello, \u{1f514} world";
    let expected = json!({
        "whole": [text, "write", arguments(), "toolu_", "tool_use", 30, 12, "req_"],
        "stream": [[
            "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
            "message_stop",
        ], ["Hel", "lo, \u{1f514}", " world"], arguments()],
        "accumulated": [text, arguments(), "tool_use", 12],
        "count": true,
        "models": ["scripted"],
        "401": ["AuthenticationError", 401, "authentication_error", null, "req_"],
        "429": ["RateLimitError", 429, "rate_limit_error", "1", "req_"],
        "500": ["InternalServerError", 500, "api_error", null, "req_"],
        "529": ["OverloadedError", 529, "overloaded_error", null, "req_"],
    });
    assert_eq!(seen, expected);
}

#[test]
fn ollamas_client_understands_every_answer() {
    let test = "ollamas_client_understands_every_answer";
    let Some(seen) = seen_by(include_str!("clients/ollama.py"), test) else { return };
    let text = "Hello, \u{1f514} world";
    let expected = json!({
        "chat": [text, ["write", arguments()], true, "stop", 30, 12],
        "chat_stream": [["Hel", "lo, \u{1f514}", " world"], [["write", arguments()]], 1, 12],
        "generate": [text, true],
        "generate_stream": [text, true],
        "embed": [4, 4],
        "tags": ["scripted"],
        "show": ["completion", "tools"],
        "401": [401, format!("{ERROR} 401")],
        "429": [429, format!("{ERROR} 429")],
        "500": [500, format!("{ERROR} 500")],
        "529": [529, format!("{ERROR} 529")],
    });
    assert_eq!(seen, expected);
}
