//! OpenAI's responses: items, each begun, filled and ended by events of its own.

use super::answer::{Part, Reply, ToolCall};
use super::rendered::{Events, Frame, RenderedAnswer, fragments, named};
use super::request::Request;
use serde_json::{Value, json};
use std::iter::once;

/// An answer to `/v1/responses`.
pub(super) fn answer(request: &Request, reply: &Reply, frame: &Frame) -> RenderedAnswer {
    // A tool that takes a text is called otherwise than one that takes an object.
    let items: Vec<Item> =
        reply.parts.iter().enumerate().map(|(index, part)| Item::new(index, part, frame)).collect();
    if request.asks_for_a_stream() {
        return RenderedAnswer::server_sent(stream(items, frame));
    }
    let output: Vec<Value> = items.iter().map(|item| item.ended(&item.text())).collect();
    RenderedAnswer::json(200, &response(frame, "completed", &output))
}

/// An item of the output.
#[derive(Clone)]
struct Item {
    index: usize,
    id: String,
    call_id: String,
    part: Part,
}

// === impl Item ===

impl Item {
    fn new(index: usize, part: &Part, frame: &Frame) -> Self {
        let prefix = match part {
            Part::Text(_) => "msg",
            Part::Tool(call) if call.arguments.is_string() => "ctc",
            Part::Tool(_) => "fc",
        };
        let (id, call_id) = (frame.call_id(prefix, index), frame.call_id("call", index));
        Self { index, id, call_id, part: part.clone() }
    }

    /// All that it is filled with.
    fn text(&self) -> String {
        match &self.part {
            Part::Text(pieces) => pieces.clone().collect(),
            Part::Tool(call) => call.arguments_as_text(),
        }
    }

    fn begun(&self) -> Value {
        match &self.part {
            Part::Text(_) => self.message("in_progress", &[]),
            Part::Tool(call) => self.call(call, "in_progress", ""),
        }
    }

    fn ended(&self, text: &str) -> Value {
        match &self.part {
            Part::Text(_) => self.message("completed", &[content(text)]),
            Part::Tool(call) => self.call(call, "completed", text),
        }
    }

    fn message(&self, status: &str, content: &[Value]) -> Value {
        json!({
            "id": self.id, "type": "message", "status": status, "role": "assistant", "content": content,
        })
    }

    fn call(&self, call: &ToolCall, status: &str, text: &str) -> Value {
        let (kind, input) = if call.arguments.is_string() {
            ("custom_tool_call", "input")
        } else {
            ("function_call", "arguments")
        };
        let mut item = json!({ "id": self.id, "type": kind, "status": status, "call_id": self.call_id });
        item["name"] = json!(call.name);
        if let Some(namespace) = &call.namespace {
            item["namespace"] = json!(namespace);
        }
        item[input] = json!(text);
        item
    }

    /// The event that begins it, those that fill it and those that end it.
    fn events(self) -> Box<dyn Iterator<Item = Value>> {
        let (id, index) = (self.id.clone(), self.index);
        let of_item = move |kind: &str| json!({ "type": kind, "item_id": id, "output_index": index });
        let begun =
            json!({ "type": "response.output_item.added", "output_index": index, "item": self.begun() });
        let text = self.text_if_it_ends();
        let ended =
            json!({ "type": "response.output_item.done", "output_index": index, "item": self.ended(&text) });
        match self.part {
            Part::Text(pieces) => {
                let with = move |kind: &str, member: &str, value: Value| {
                    let mut event = of_item(kind);
                    event["content_index"] = json!(0);
                    event[member] = value;
                    event
                };
                let opened = with("response.content_part.added", "part", content(""));
                let mut all = with("response.output_text.done", "text", json!(text));
                all["logprobs"] = json!([]);
                let closed = with("response.content_part.done", "part", content(&text));
                let deltas = pieces.map(move |piece| {
                    let mut event = with("response.output_text.delta", "delta", json!(piece));
                    event["logprobs"] = json!([]);
                    event
                });
                Box::new([begun, opened].into_iter().chain(deltas).chain([all, closed, ended]))
            }
            Part::Tool(call) => {
                let (kind, member) = match call.arguments.is_string() {
                    true => ("response.custom_tool_call_input", "input"),
                    false => ("response.function_call_arguments", "arguments"),
                };
                let mut all = of_item(&format!("{kind}.done"));
                all[member] = json!(text);
                if member == "arguments" {
                    all["name"] = json!(call.name);
                }
                let deltas = fragments(&call).into_iter().map(move |fragment| {
                    let mut event = of_item(&format!("{kind}.delta"));
                    event["delta"] = json!(fragment);
                    event
                });
                Box::new(once(begun).chain(deltas).chain([all, ended]))
            }
        }
    }

    /// Returns the text like [`Item::text`]; of an endless text a beginning. That text is never sent, because the
    /// stream doesn't end.
    fn text_if_it_ends(&self) -> String {
        match &self.part {
            Part::Text(pieces) => pieces.clone().take(1 << 17).collect(),
            Part::Tool(call) => call.arguments_as_text(),
        }
    }
}

fn content(text: &str) -> Value {
    json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text })
}

fn stream(items: Vec<Item>, frame: &Frame) -> Events {
    let state = |kind: &str, response: Value| json!({ "type": kind, "response": response });
    let begun = ["response.created", "response.in_progress"]
        .map(|kind| state(kind, response(frame, "in_progress", &[])));
    let output: Vec<Value> = items.iter().map(|item| item.ended(&item.text_if_it_ends())).collect();
    let ended = state("response.completed", response(frame, "completed", &output));
    let events = begun.into_iter().chain(items.into_iter().flat_map(Item::events)).chain(once(ended));
    Box::new(events.enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        named(&event)
    }))
}

fn response(frame: &Frame, status: &str, output: &[Value]) -> Value {
    let usage = (status == "completed").then(|| {
        let (input, output) = (frame.usage.input, frame.usage.output);
        let mut usage = json!({
            "input_tokens": input, "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
            "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + output,
        });
        if let Some(cost) = frame.cost {
            usage["cost"] = json!(cost);
        }
        usage
    });
    json!({
        "id": format!("resp_{}", frame.id), "object": "response", "created_at": frame.created, "status": status,
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "metadata": {}, "model": frame.model, "output": output,
        "parallel_tool_calls": true, "previous_response_id": null, "reasoning": { "effort": null, "summary": null },
        "store": false, "temperature": 1.0, "text": { "format": { "type": "text" } }, "tool_choice": "auto",
        "tools": [], "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": null,
    })
}
