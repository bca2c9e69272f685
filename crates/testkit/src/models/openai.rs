//! OpenAI's chat and its older completions, with what LiteLLM adds to them.

use super::answer::{Part, Reply};
use super::rendered::{Events, Frame, RenderedAnswer, data, fragments};
use super::request::Request;
use serde_json::{Value, json};
use std::iter::once;

/// An answer to `/v1/chat/completions`.
pub(super) fn chat(request: &Request, reply: &Reply, frame: Frame) -> RenderedAnswer {
    match request.asks_for_a_stream() {
        true => RenderedAnswer::server_sent(stream(reply, frame)),
        false => RenderedAnswer::json(200, &whole(reply, &frame)),
    }
}

/// An answer to `/v1/completions`.
pub(super) fn completion(request: &Request, reply: &Reply, frame: Frame) -> RenderedAnswer {
    let object = move |choices: Value, usage: Value| {
        json!({
            "id": format!("cmpl-{}", frame.id), "object": "text_completion", "created": frame.created,
            "model": frame.model, "choices": choices, "usage": usage,
        })
    };
    let choice = |text: &str, finish| choices("text", json!(text), finish);
    let (told, tells) = (usage(reply), request.json()["stream_options"]["include_usage"] == true);
    if !request.asks_for_a_stream() {
        return RenderedAnswer::json(200, &object(choice(&reply.text(), json!("stop")), told));
    }
    let (first, last) = (object.clone(), object);
    let texts = texts(reply).map(move |text| data(&first(choice(&text, Value::Null), Value::Null)));
    let mut end = vec![data(&last(choice("", json!("stop")), Value::Null))];
    end.extend(tells.then(|| data(&last(json!([]), told))));
    end.push(b"data: [DONE]\n\n".to_vec());
    RenderedAnswer::server_sent(Box::new(texts.chain(end)))
}

fn whole(reply: &Reply, frame: &Frame) -> Value {
    let call = |(index, call): (usize, &super::answer::ToolCall)| {
        json!({
            "id": frame.call_id("call", index), "type": "function",
            "function": { "name": call.name, "arguments": call.arguments_as_text() },
        })
    };
    let calls: Vec<Value> = reply.calls().enumerate().map(call).collect();
    let text = Some(reply.text()).filter(|text| !text.is_empty() || calls.is_empty());
    let mut message = json!({ "role": "assistant", "content": text, "refusal": null, "annotations": [] });
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({
        "id": format!("chatcmpl-{}", frame.id), "object": "chat.completion", "created": frame.created,
        "model": frame.model, "system_fingerprint": null, "service_tier": "default", "usage": usage(reply),
        "choices": choices("message", message, json!(finish(reply))),
    })
}

fn stream(reply: &Reply, frame: Frame) -> Events {
    let chunk = {
        let frame = frame.clone();
        move |choices: Value, usage: Option<Value>| {
            let mut chunk = json!({
                "id": format!("chatcmpl-{}", frame.id), "object": "chat.completion.chunk",
                "created": frame.created, "model": frame.model, "system_fingerprint": null, "choices": choices,
            });
            if frame.tells_usage {
                chunk["usage"] = usage.unwrap_or_default();
            }
            data(&chunk)
        }
    };
    let choice = |delta, finish| choices("delta", delta, finish);
    let first = chunk(choice(json!({ "role": "assistant", "content": "" }), Value::Null), None);
    let mut end = vec![chunk(choice(json!({}), json!(finish(reply))), None)];
    if frame.tells_usage {
        let mut told = usage(reply);
        if let Some(cost) = frame.cost {
            told["cost"] = json!(cost);
        }
        end.push(chunk(json!([]), Some(told)));
    }
    end.push(b"data: [DONE]\n\n".to_vec());
    let deltas = deltas(reply, frame).map(move |delta| chunk(choice(delta, Value::Null), None));
    Box::new(once(first).chain(deltas).chain(end))
}

/// Returns the pieces of the message.
fn deltas(reply: &Reply, frame: Frame) -> Box<dyn Iterator<Item = Value>> {
    let mut calls = 0;
    let parts = reply.parts.clone().into_iter().flat_map(move |part| -> Box<dyn Iterator<Item = Value>> {
        match part {
            Part::Text(pieces) => Box::new(pieces.map(|text| json!({ "content": text }))),
            Part::Tool(call) => {
                let (index, fragments) = (calls, fragments(&call));
                calls += 1;
                let begun = json!({ "tool_calls": [{
                    "index": index, "id": frame.call_id("call", index), "type": "function",
                    "function": { "name": call.name, "arguments": "" },
                }] });
                let rest = fragments.into_iter().map(move |fragment| {
                    json!({ "tool_calls": [{ "index": index, "function": { "arguments": fragment } }] })
                });
                Box::new(once(begun).chain(rest))
            }
        }
    });
    Box::new(parts)
}

fn texts(reply: &Reply) -> impl Iterator<Item = String> + use<> {
    reply.parts.clone().into_iter().flat_map(|part| match part {
        Part::Text(pieces) => Some(pieces).into_iter().flatten(),
        Part::Tool(_) => None.into_iter().flatten(),
    })
}

/// The one choice there is, which holds its part in this member.
fn choices(member: &str, part: Value, finish: Value) -> Value {
    let mut choice = json!({ "index": 0, "logprobs": null });
    choice["finish_reason"] = finish;
    choice[member] = part;
    json!([choice])
}

fn finish(reply: &Reply) -> &'static str {
    if reply.calls_a_tool() { "tool_calls" } else { "stop" }
}

fn usage(reply: &Reply) -> Value {
    let (input, output) = (reply.usage.input, reply.usage.output);
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": { "cached_tokens": 0, "audio_tokens": 0 },
        "completion_tokens_details": { "reasoning_tokens": 0, "audio_tokens": 0 },
    })
}
