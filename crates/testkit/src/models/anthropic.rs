//! Anthropic's messages: blocks of content, each begun, filled and ended by events of its own.

use super::answer::{Part, Reply};
use super::rendered::{Events, Frame, RenderedAnswer, fragments, named};
use super::request::Request;
use serde_json::{Value, json};

/// An answer to `/v1/messages`.
pub(super) fn answer(request: &Request, reply: &Reply, frame: &Frame) -> RenderedAnswer {
    match request.asks_for_a_stream() {
        true => RenderedAnswer::server_sent(stream(reply, frame)),
        false => {
            let blocks: Vec<Value> =
                reply.parts.iter().enumerate().map(|(index, part)| block(part, index, frame, true)).collect();
            RenderedAnswer::json(200, &message(frame, &blocks, Some(stop_reason(reply)), reply.usage.output))
        }
    }
}

fn message(frame: &Frame, content: &[Value], stop_reason: Option<&str>, output_tokens: u64) -> Value {
    json!({
        "id": format!("msg_{}", frame.id), "type": "message", "role": "assistant", "model": frame.model,
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {
            "input_tokens": frame.usage.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": output_tokens, "service_tier": "standard",
        },
    })
}

/// A block with all that is in it, or as empty as it begins.
fn block(part: &Part, index: usize, frame: &Frame, is_whole: bool) -> Value {
    match part {
        Part::Text(pieces) => {
            let text: String = if is_whole { pieces.clone().collect() } else { String::new() };
            json!({ "type": "text", "text": text })
        }
        Part::Tool(call) => {
            let input = if is_whole { call.arguments.clone() } else { json!({}) };
            let id = frame.call_id("toolu", index);
            json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
        }
    }
}

fn stream(reply: &Reply, frame: &Frame) -> Events {
    let begun = [
        json!({ "type": "message_start", "message": message(frame, &[], None, 1) }),
        json!({ "type": "ping" }),
    ];
    let ended = [
        json!({
            "type": "message_delta", "delta": { "stop_reason": stop_reason(reply), "stop_sequence": null },
            "usage": {
                "input_tokens": reply.usage.input, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": reply.usage.output,
            },
        }),
        json!({ "type": "message_stop" }),
    ];
    let frame = frame.clone();
    let blocks = reply.parts.clone().into_iter().enumerate().flat_map(move |(index, part)| {
        let empty = block(&part, index, &frame, false);
        let opened = json!({ "type": "content_block_start", "index": index, "content_block": empty });
        let closed = json!({ "type": "content_block_stop", "index": index });
        let deltas = deltas(part)
            .map(move |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        std::iter::once(opened).chain(deltas).chain([closed])
    });
    Box::new(begun.into_iter().chain(blocks).chain(ended).map(|event| named(&event)))
}

fn deltas(part: Part) -> Box<dyn Iterator<Item = Value>> {
    match part {
        Part::Text(pieces) => Box::new(pieces.map(|text| json!({ "type": "text_delta", "text": text }))),
        Part::Tool(call) => Box::new(
            fragments(&call)
                .into_iter()
                .map(|json| json!({ "type": "input_json_delta", "partial_json": json })),
        ),
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.calls_a_tool() { "tool_use" } else { "end_turn" }
}
