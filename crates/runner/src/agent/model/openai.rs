//! OpenAI's chat completions API, which most providers support.

use super::UnusableReply;
use super::route::ListedModels;
use crate::agent::conversation::{Call, ConversationEntry, Definition, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const CHAT: &str = "/chat/completions";
pub(super) const MODELS: &str = "/models";

/// Parameter for the maximum length of an answer. Most servers know only the first. OpenAI's newer models reject it and
/// require the second. Some servers accept neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenLimitParameter {
    MaxTokens,
    MaxCompletionTokens,
    Unsaid,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Value>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

#[derive(Default, Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OpenAiModelList {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

pub(super) fn body(model: &str, request: &Request<'_>, limit: TokenLimitParameter) -> Value {
    let messages = super::messages(request, message);
    let mut body = json!({ "model": model, "messages": messages, "stream": false });
    if let Some(name) = limit.name() {
        body[name] = request.answer_tokens().into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

// === impl TokenLimitParameter ===

impl TokenLimitParameter {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::MaxTokens => Some("max_tokens"),
            Self::MaxCompletionTokens => Some("max_completion_tokens"),
            Self::Unsaid => None,
        }
    }

    /// Returns the parameter to try next if this one was the reason of the refusal.
    pub(super) fn after(self, refused: &UnusableReply) -> Option<Self> {
        let is_refused = refused.speaks_of(self.name()?);
        is_refused.then_some(match self {
            Self::MaxTokens if refused.speaks_of("max_completion_tokens") => Self::MaxCompletionTokens,
            _ => Self::Unsaid,
        })
    }
}

fn message(entry: &ConversationEntry) -> Value {
    match entry {
        ConversationEntry::Note(text) => json!({ "role": "user", "content": text }),
        ConversationEntry::Said { text, calls, raw_calls } => {
            // A message without calls must have a text, even an empty one.
            let mut said = json!({ "role": "assistant", "content": text });
            if calls.is_empty() {
                said["content"] = json!(text.as_deref().unwrap_or_default());
            } else {
                said["tool_calls"] = raw_calls.clone().unwrap_or_else(|| calls.iter().map(written).collect());
            }
            said
        }
        ConversationEntry::Outcome { call, text } => {
            json!({ "role": "tool", "tool_call_id": call.id, "content": text })
        }
    }
}

fn written(call: &Call) -> Value {
    let function = json!({ "name": call.tool, "arguments": call.object().to_string() });
    json!({ "id": call.id, "type": "function", "function": function })
}

pub(super) fn tool(definition: &Definition) -> Value {
    let Definition { name, description, schema } = definition;
    json!({ "type": "function", "function": { "name": name, "description": description, "parameters": schema } })
}

pub(super) fn reply(body: &[u8], turn: u32) -> Result<Reply, UnusableReply> {
    let unusable = |source| UnusableReply::Malformed { source };
    let completion: Completion = serde_json::from_slice(body).map_err(unusable)?;
    let choice = completion.choices.into_iter().next();
    let Choice { message, finish_reason } = choice.ok_or(UnusableReply::Empty)?;
    let raw_calls =
        message.tool_calls.filter(|calls| calls.as_array().is_some_and(|calls| !calls.is_empty()));
    let mut calls = Vec::new();
    for (at, raw) in
        raw_calls.iter().filter_map(Value::as_array).flatten().take(super::MOST_CALLS).enumerate()
    {
        let ToolCall { id, function } = ToolCall::deserialize(raw).map_err(unusable)?;
        let id = id.filter(|id| !id.is_empty() && id.len() <= super::LONGEST_ID);
        let is_new = |id: &String| !calls.iter().any(|call: &Call| call.id == *id);
        let id = id.filter(is_new);
        calls.push(Call {
            is_named: id.is_some(),
            id: id.unwrap_or_else(|| format!("call-{turn}-{at}")),
            tool: function.name,
            arguments: super::text_of(function.arguments),
        });
    }
    // Raw calls are sent back unchanged if possible, because some providers store data of their own in them.
    let are_kept = |raw: &Value| {
        let are_all = raw.as_array().is_some_and(|all| all.len() == calls.len());
        are_all
            && calls.iter().all(|call| call.is_named && call.is_object())
            && raw.to_string().len() <= super::LONGEST_RAW
    };
    let raw_calls = raw_calls.filter(are_kept);
    let usage = completion.usage.unwrap_or_default();
    Ok(Reply {
        entry: ConversationEntry::Said {
            text: message.content.filter(|text| !text.is_empty()),
            calls,
            raw_calls,
        },
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        is_cut: finish_reason.as_deref() == Some("length"),
    })
}

/// Returns the listed models; `None` if the body is no list.
pub(super) fn listed(body: &[u8]) -> ListedModels {
    let listed = serde_json::from_slice::<OpenAiModelList>(body).ok();
    listed.map(|listed| listed.data.into_iter().map(|model| model.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_token_limit_parameter_is_replaced_or_left_out() {
        let refused =
            |said: &str| UnusableReply::Refused { status: 400, code: String::new(), said: said.to_owned() };
        let newer = refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.");
        assert_eq!(
            TokenLimitParameter::MaxTokens.after(&newer),
            Some(TokenLimitParameter::MaxCompletionTokens)
        );
        let less = refused("max_tokens is too large: 8192");
        assert_eq!(TokenLimitParameter::MaxTokens.after(&less), Some(TokenLimitParameter::Unsaid));
        assert_eq!(TokenLimitParameter::MaxCompletionTokens.after(&newer), Some(TokenLimitParameter::Unsaid));
        assert_eq!(TokenLimitParameter::MaxTokens.after(&refused("messages: roles must alternate")), None);
        assert_eq!(TokenLimitParameter::Unsaid.after(&newer), None);
    }
}
