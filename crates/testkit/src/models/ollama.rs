//! Ollama's own chat and generation: lines of JSON, the last of which tells what it took.

use super::answer::{Part, Reply, ToolCall};
use super::operation::Operation;
use super::rendered::{Events, Frame, RenderedAnswer};
use super::request::Request;
use serde_json::{Value, json};

/// An answer to `/api/chat` or `/api/generate`.
pub(super) fn answer(request: &Request, reply: &Reply, frame: Frame) -> RenderedAnswer {
    let shape = OllamaResponseShape { is_chat: request.operation() == Operation::OllamaChat, frame };
    if request.asks_for_a_stream() {
        return RenderedAnswer::lines(stream(reply, shape));
    }
    let calls: Vec<Value> = reply.calls().map(call).collect();
    RenderedAnswer::json(200, &shape.last(&reply.text(), &calls))
}

/// Which of the two operations it is: chat or generate.
struct OllamaResponseShape {
    is_chat: bool,
    frame: Frame,
}

// === impl OllamaResponseShape ===

impl OllamaResponseShape {
    fn part(&self, text: &str, calls: &[Value]) -> Value {
        let created_at = rfc3339(self.frame.created);
        let mut part = json!({ "model": self.frame.model, "created_at": created_at, "done": false });
        match self.is_chat {
            true => part["message"] = json!({ "role": "assistant", "content": text }),
            false => part["response"] = json!(text),
        }
        if self.is_chat && !calls.is_empty() {
            part["message"]["tool_calls"] = json!(calls);
        }
        part
    }

    fn last(&self, text: &str, calls: &[Value]) -> Value {
        let mut part = self.part(text, calls);
        let told = json!({
            "done": true, "done_reason": "stop", "total_duration": 5_000_000, "load_duration": 1_000_000,
            "prompt_eval_count": self.frame.usage.input, "prompt_eval_duration": 1_000_000,
            "eval_count": self.frame.usage.output, "eval_duration": 2_000_000,
        });
        for (name, value) in told.as_object().into_iter().flatten() {
            part[name.as_str()] = value.clone();
        }
        part
    }
}

fn stream(reply: &Reply, shape: OllamaResponseShape) -> Events {
    let last = shape.last("", &[]);
    let parts = reply.parts.clone().into_iter().flat_map(move |part| -> Box<dyn Iterator<Item = Value>> {
        let shape = OllamaResponseShape { is_chat: shape.is_chat, frame: shape.frame.clone() };
        match part {
            Part::Text(pieces) => Box::new(pieces.map(move |text| shape.part(&text, &[]))),
            Part::Tool(tool) => Box::new(std::iter::once(shape.part("", &[call(&tool)]))),
        }
    });
    Box::new(parts.chain([last]).map(|part| format!("{part}\n").into_bytes()))
}

fn call(call: &ToolCall) -> Value {
    json!({ "function": { "name": call.name, "arguments": call.arguments } })
}

/// A time as Ollama and Anthropic write it.
pub(super) fn rfc3339(seconds: u64) -> String {
    let second = i64::try_from(seconds).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    second.unwrap_or_default().to_string()
}
