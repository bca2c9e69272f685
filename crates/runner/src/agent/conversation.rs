//! Conversation between the agent and a model, independent of a provider's format.

use super::window::OF_ANSWER;
use serde_json::Value;

/// Entry of a conversation, which is in chronological order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConversationEntry {
    /// Message of the runner.
    Note(String),
    /// Message of a model.
    Said {
        text: Option<String>,
        calls: Vec<Call>,
        /// Calls in the provider's format: some providers require them back unchanged.
        raw_calls: Option<Value>,
    },
    /// Result of a call.
    Outcome { call: Call, text: String },
}

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    /// True if the provider assigned the id.
    pub(super) is_named: bool,
    pub(super) tool: String,
    /// Arguments as the model has written them.
    pub(super) arguments: String,
}

/// Definition of a tool for a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Definition {
    /// Name in the characters that providers allow: letters, digits, `_` and `-`.
    pub(super) name: String,
    pub(super) description: String,
    /// A JSON Schema of an object.
    pub(super) schema: Value,
}

/// All data of one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'r> {
    pub(super) system: &'r str,
    pub(super) conversation: &'r [ConversationEntry],
    /// Present state, sent last and not kept in the conversation.
    pub(super) runtime: &'r str,
    pub(super) tools: &'r [Definition],
    /// Maximum number of tokens of the request with its answer.
    pub(super) context_tokens: u32,
    /// True if the present state is sent with the system message: some providers accept no message between a tool's and
    /// a model's.
    pub(super) is_said_first: bool,
}

/// Answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) entry: ConversationEntry,
    /// Tokens as the model reports them; `None` if it doesn't.
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    /// True if the answer was cut for length.
    pub(super) is_cut: bool,
}

// === impl Request ===

impl Request<'_> {
    /// Returns the maximum number of tokens of the answer.
    pub(super) fn answer_tokens(&self) -> u32 {
        (self.context_tokens / OF_ANSWER).max(1)
    }
}

// === impl Call ===

impl Call {
    /// Returns the arguments if they are an object, else an empty one: providers would refuse every later request with
    /// invalid arguments.
    pub(super) fn object(&self) -> Value {
        let read = serde_json::from_str::<Value>(&self.arguments).ok();
        read.filter(Value::is_object).unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }

    pub(super) fn is_object(&self) -> bool {
        serde_json::from_str::<Value>(&self.arguments).is_ok_and(|arguments| arguments.is_object())
    }
}

// === impl ConversationEntry ===

impl ConversationEntry {
    /// Returns the number of bytes that belong to the conversation itself.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Note(text) => text.len(),
            Self::Said { text, calls, raw_calls } => {
                let calls: usize =
                    calls.iter().map(|call| call.id.len() + call.tool.len() + call.arguments.len()).sum();
                let raw = raw_calls.as_ref().map_or(0, |raw| raw.to_string().len());
                text.as_ref().map_or(0, String::len) + calls.max(raw)
            }
            Self::Outcome { text, .. } => text.len(),
        }
    }
}
