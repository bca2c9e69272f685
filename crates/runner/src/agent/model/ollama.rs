//! Ollama's own API, for servers without an OpenAI-compatible one.

use super::UnusableReply;
use super::route::ListedModels;
use crate::agent::conversation::{Call, ConversationEntry, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const CHAT: &str = "/api/chat";
pub(super) const MODELS: &str = "/api/tags";

#[derive(Deserialize)]
struct Chat {
    message: Message,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize)]
struct OllamaModelList {
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(alias = "model")]
    name: String,
}

pub(super) fn body(model: &str, request: &Request<'_>) -> Value {
    let messages = super::messages(request, message);
    let tools: Vec<Value> = request.tools.iter().map(super::openai::tool).collect();
    // Ollama silently cuts the beginning of a request that exceeds its own default window.
    let options = json!({ "num_ctx": request.context_tokens, "num_predict": request.answer_tokens() });
    json!({ "model": model, "messages": messages, "tools": tools, "options": options, "stream": false })
}

fn message(entry: &ConversationEntry) -> Value {
    match entry {
        ConversationEntry::Note(text) => json!({ "role": "user", "content": text }),
        ConversationEntry::Said { text, calls, .. } => {
            let calls: Vec<Value> = calls.iter().map(written).collect();
            json!({ "role": "assistant", "content": text.as_deref().unwrap_or_default(), "tool_calls": calls })
        }
        ConversationEntry::Outcome { call, text } => {
            json!({ "role": "tool", "tool_name": call.tool, "content": text })
        }
    }
}

fn written(call: &Call) -> Value {
    json!({ "function": { "name": call.tool, "arguments": call.object() } })
}

pub(super) fn reply(body: &[u8], turn: u32) -> Result<Reply, UnusableReply> {
    let chat: Chat = serde_json::from_slice(body).map_err(|source| UnusableReply::Malformed { source })?;
    let calls =
        chat.message.tool_calls.unwrap_or_default().into_iter().take(super::MOST_CALLS).enumerate().map(
            |(at, ToolCall { function })| Call {
                id: format!("call-{turn}-{at}"),
                is_named: false,
                tool: function.name,
                arguments: super::text_of(function.arguments),
            },
        );
    Ok(Reply {
        entry: ConversationEntry::Said {
            text: chat.message.content.filter(|text| !text.is_empty()),
            calls: calls.collect(),
            raw_calls: None,
        },
        prompt_tokens: chat.prompt_eval_count,
        completion_tokens: chat.eval_count,
        is_cut: chat.done_reason.as_deref() == Some("length"),
    })
}

/// Returns the listed models; `None` if the body is no list.
pub(super) fn listed(body: &[u8]) -> ListedModels {
    let listed = serde_json::from_slice::<OllamaModelList>(body).ok();
    listed.map(|listed| listed.models.into_iter().map(|model| model.name).collect())
}
