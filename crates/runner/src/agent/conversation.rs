//! What has been said between the agent and a model, in no provider's words.

use super::window::OF_ANSWER;
use serde_json::Value;

/// What one side has said, the earliest first.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Entry {
    /// What the runner says.
    Note(String),
    /// What a model has said.
    Said {
        text: Option<String>,
        calls: Vec<Call>,
        /// How the provider wrote the calls: some want them back letter by letter.
        raw_calls: Option<Value>,
    },
    /// What came of a call.
    Outcome { call: Call, text: String },
}

/// A tool that a model wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    /// Whether the provider gave it its id.
    pub(super) is_named: bool,
    pub(super) tool: String,
    /// As the model has written them.
    pub(super) arguments: String,
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Definition {
    /// As providers allow it: letters, digits, `_` and `-`.
    pub(super) name: String,
    pub(super) description: String,
    /// A JSON Schema of an object.
    pub(super) schema: Value,
}

/// All that one request carries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'r> {
    pub(super) system: &'r str,
    pub(super) conversation: &'r [Entry],
    /// What is so just now; said last, and not kept.
    pub(super) runtime: &'r str,
    pub(super) tools: &'r [Definition],
    /// Tokens that the request may take with its answer.
    pub(super) context_tokens: u32,
    /// Whether what is so just now is said with what comes first: some providers take nobody's word between a tool's and a model's.
    pub(super) is_said_first: bool,
}

/// What a model answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) entry: Entry,
    /// As the model counts them; nothing if it doesn't say.
    pub(super) prompt_tokens: Option<u64>,
    pub(super) completion_tokens: Option<u64>,
    /// It was cut for length.
    pub(super) is_cut: bool,
}

// === impl Request ===

impl Request<'_> {
    /// Tokens that the answer may take.
    pub(super) fn answer_tokens(&self) -> u32 {
        (self.context_tokens / OF_ANSWER).max(1)
    }
}

// === impl Call ===

impl Call {
    /// Its arguments, if they are what arguments have to be; what isn't would have every later request refused.
    pub(super) fn object(&self) -> Value {
        let read = serde_json::from_str::<Value>(&self.arguments).ok();
        read.filter(Value::is_object).unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }

    pub(super) fn is_object(&self) -> bool {
        serde_json::from_str::<Value>(&self.arguments).is_ok_and(|arguments| arguments.is_object())
    }
}

// === impl Entry ===

impl Entry {
    /// Its bytes, as far as they are the conversation's own.
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
