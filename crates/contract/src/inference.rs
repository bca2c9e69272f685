//! What is recorded of calls to models (`spec/2 §Invariants`, 7 and 11): who called what, and what came of it; never a
//! prompt, an answer or a credential.

mod cost;

pub use cost::{Cost, CostTotal, ParseCostError};

use crate::id::{CallId, RunId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind under which such a record stands in the audit.
pub const CALL: &str = "inference_call";

/// The kind under which it stands there that a call is about to be made.
pub const BEGUN: &str = "inference_call_begun";

/// The kind under which what was said in a call stands there, where somebody has asked for that.
pub const BODIES: &str = "inference_bodies";

/// What was said in one call that was made. It stands before the record of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodiesRecord {
    /// The call's id.
    pub call_id: CallId,
    /// The run that called.
    pub run_id: RunId,
    /// The body of the request, as the upstream was sent it.
    pub request: Body,
    /// The body of the response, as far as it was passed on; nothing of one that a credential stood in.
    pub response: Body,
}

/// A body, or the beginning of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// How long it was, in bytes.
    pub bytes: u64,
    /// Its text, at most [`Body::LONGEST_BYTES`] of it; what is no UTF-8 is replaced.
    pub text: String,
}

/// A call that is about to be made: on the disk before the upstream is sent anything of it. The record of the call follows
/// when it is over; one that is missing was cut off with its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BegunRecord {
    /// The call's id, as the upstream knows it (`x-litellm-call-id`).
    pub call_id: CallId,
    /// The run that calls, known by the listener that it came in on.
    pub run_id: RunId,
    /// Which attempt of the run.
    pub attempt: u32,
    /// Who pays for the run.
    pub billing_account_id: Excerpt,
    /// What the run is of, such as `sandbox:agent`.
    pub graph_id: Excerpt,
    /// When the head of the request was there (UTC).
    pub started_at: Timestamp,
    /// What was asked for.
    pub route: Route,
    /// The model that the upstream is asked for.
    pub model: Excerpt,
    /// The upstream.
    pub provider: Excerpt,
    /// The bytes of the request's body.
    pub request_bytes: u64,
}

/// One call of a model, denied ones included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    /// The call's id, as the upstream knows it (`x-litellm-call-id`).
    pub call_id: CallId,
    /// The run that called, known by the listener that it came in on.
    pub run_id: RunId,
    /// Which attempt of the run.
    pub attempt: u32,
    /// Who pays for the run.
    pub billing_account_id: Excerpt,
    /// What the run is of, such as `sandbox:agent`.
    pub graph_id: Excerpt,
    /// When the head of the request was there (UTC).
    pub started_at: Timestamp,
    /// What was asked for.
    pub route: Route,
    /// Whose dialect that is.
    pub surface: Surface,
    /// The model that was asked for; null where the request names none.
    pub model_asked: Option<Excerpt>,
    /// The model that the upstream was asked for; null when none was.
    pub model_used: Option<Excerpt>,
    /// The upstream; null when none was asked.
    pub provider: Option<Excerpt>,
    /// What that upstream is; null when none was asked.
    pub provider_kind: Option<ProviderKind>,
    /// The status that the client was told; null when it was gone before.
    pub status: Option<u16>,
    /// The status that the upstream gave; null when it gave none.
    pub upstream_status: Option<u16>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The bytes of the request's body.
    pub request_bytes: u64,
    /// The bytes of the response's body, as far as they were passed on.
    pub response_bytes: u64,
    /// How long the first byte of the response took, in milliseconds; null when there was none.
    pub first_byte_ms: Option<u64>,
    /// How long all of it took, in milliseconds.
    pub total_ms: u64,
    /// What the upstream says that it used; null when it says nothing.
    pub usage: Option<ReportedUsage>,
    /// The upstream's own id of the request.
    pub upstream_request_id: Option<Excerpt>,
    /// Whether the response was a stream of events.
    pub is_streamed: bool,
}

/// The method and path of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The method.
    pub method: Excerpt,
    /// The path, without a query.
    pub path: Excerpt,
}

/// Whose dialect of requests and responses is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// OpenAI's.
    Openai,
    /// Anthropic's.
    Anthropic,
    /// Ollama's.
    Ollama,
}

/// What a provider is: which dialects it speaks, and where its bills are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// A LiteLLM proxy. It speaks for others, and what it writes down is what is billed.
    LiteLlm,
    /// Whoever speaks OpenAI's language.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// An Ollama server.
    Ollama,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CallOutcome {
    /// The upstream's whole response was passed on, whatever it was.
    Completed,
    /// It was refused here; no upstream was asked.
    Denied {
        /// Why.
        reason: ReasonCode,
    },
    /// It was let through, and there is no whole response.
    Failed {
        /// What went wrong.
        code: ReasonCode,
    },
    /// The client was gone before the end.
    Canceled,
}

/// What an upstream says that a call used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedUsage {
    /// Where it says so.
    pub source: UsageSource,
    /// Tokens of the request.
    pub input_tokens: Option<u64>,
    /// Tokens of the response.
    pub output_tokens: Option<u64>,
    /// What it cost, in US dollars.
    pub cost_usd: Option<Cost>,
}

/// Where an upstream told of usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// In the head of its response.
    Header,
    /// In the body.
    Body,
    /// In an event of a stream.
    Stream,
}

/// Text from outside, cut where it gets long.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Excerpt(String);

/// The text is longer than an excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("longer than {} bytes", Excerpt::LONGEST_BYTES)]
pub struct TooLongError;

/// A stable code: lower-case letters, digits and underscores.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ReasonCode(String);

/// The text is no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a code of lower-case letters, digits and underscores")]
pub struct ParseCodeError;

// === impl Body ===

impl Body {
    /// As much of a body is kept. Two of these fit into a record, however they are escaped.
    pub const LONGEST_BYTES: usize = 16 << 10;
}

// === impl CallRecord ===

impl CallRecord {
    /// When it was over.
    pub fn ended_at(&self) -> Timestamp {
        let took = SignedDuration::from_millis(i64::try_from(self.total_ms).unwrap_or(i64::MAX));
        self.started_at.saturating_add(took).unwrap_or(Timestamp::MAX)
    }
}

// === impl Excerpt ===

impl Excerpt {
    /// The longest one.
    pub const LONGEST_BYTES: usize = 256;

    /// As much of the text as fits.
    pub fn of(text: &str) -> Self {
        Self(text[..text.floor_char_boundary(Self::LONGEST_BYTES)].to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Excerpt {
    type Error = TooLongError;

    fn try_from(text: String) -> Result<Self, TooLongError> {
        if text.len() > Self::LONGEST_BYTES { Err(TooLongError) } else { Ok(Self(text)) }
    }
}

impl From<Excerpt> for String {
    fn from(excerpt: Excerpt) -> Self {
        excerpt.0
    }
}

// === impl ReasonCode ===

impl ReasonCode {
    const LONGEST_BYTES: usize = 64;

    /// Reads a code.
    ///
    /// # Errors
    /// [`ParseCodeError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseCodeError> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        let is_code = (1..=Self::LONGEST_BYTES).contains(&text.len()) && text.bytes().all(is_allowed);
        if is_code { Ok(Self(text.to_owned())) } else { Err(ParseCodeError) }
    }

    /// One of our own.
    ///
    /// # Panics
    /// When it is none.
    pub fn of(code: &'static str) -> Self {
        Self::parse(code).unwrap_or_else(|_| unreachable!("{code} is no code"))
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ReasonCode {
    type Error = ParseCodeError;

    fn try_from(text: String) -> Result<Self, ParseCodeError> {
        Self::parse(&text)
    }
}

impl From<ReasonCode> for String {
    fn from(code: ReasonCode) -> Self {
        code.0
    }
}

// === impl ProviderKind ===

impl ProviderKind {
    /// Whether it understands calls of that dialect.
    pub fn speaks(self, surface: Surface) -> bool {
        matches!(
            (self, surface),
            (Self::LiteLlm, Surface::Openai | Surface::Anthropic)
                | (Self::OpenAi, Surface::Openai)
                | (Self::Anthropic, Surface::Anthropic)
                | (Self::Ollama, Surface::Ollama | Surface::Openai)
        )
    }

    /// Its name in configurations and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LiteLlm => "litellm",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Surface, CallOutcome ===

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        })
    }
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed => f.write_str("completed"),
            Self::Denied { reason } => write!(f, "denied: {}", reason.as_str()),
            Self::Failed { code } => write!(f, "failed: {}", code.as_str()),
            Self::Canceled => f.write_str("canceled"),
        }
    }
}
