//! Audit records of calls to models (`docs/contracts/agents.md#a1.7`, `docs/contracts/agents.md#a1.11`): the run that
//! called, the model, and the outcome; never a prompt, an answer or a credential.

mod cost;

pub use cost::{Cost, CostTotal, ParseCostError};

use crate::id::{CallId, RunId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of the audit record of a call.
pub const CALL: &str = "inference_call";

/// Kind of the audit record that precedes a call.
pub const BEGUN: &str = "inference_call_begun";

/// Kind of the audit record with the bodies of a call; written only if the operator has enabled that.
pub const BODIES: &str = "inference_bodies";

/// Bodies of a call. This record precedes the record of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodiesRecord {
    /// The call's id.
    pub call_id: CallId,
    /// The run that called.
    pub run_id: RunId,
    /// The body of the request, as the upstream was sent it.
    pub request: Body,
    /// Body of the response, as far as it was passed on; empty if it contained a credential.
    pub response: Body,
}

/// A body, or the beginning of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Length, in bytes.
    pub bytes: u64,
    /// Text, at most [`Body::LONGEST_BYTES`] of it; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// A call that is about to be made. This record is on disk before any of the call is sent to the upstream. The record
/// of the call follows when it is over; if that is missing, the node died during the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallStartRecord {
    /// The call's id, as the upstream knows it (`x-litellm-call-id`).
    pub call_id: CallId,
    /// The run that calls, known by the listener that it came in on.
    pub run_id: RunId,
    /// Number of the run's attempt.
    pub attempt: u32,
    /// Account that pays for the run.
    pub billing_account_id: Excerpt,
    /// Graph of the run, for example `sandbox:agent`.
    pub graph_id: Excerpt,
    /// Time at which the head of the request was complete (UTC).
    pub started_at: Timestamp,
    /// Method and path of the request.
    pub route: Route,
    /// Model that is requested from the upstream.
    pub model: Excerpt,
    /// The upstream.
    pub provider: Excerpt,
    /// Length of the request's body, in bytes.
    pub request_bytes: u64,
}

/// A call of a model, denied calls included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    /// The call's id, as the upstream knows it (`x-litellm-call-id`).
    pub call_id: CallId,
    /// The run that called, known by the listener that it came in on.
    pub run_id: RunId,
    /// Number of the run's attempt.
    pub attempt: u32,
    /// Account that pays for the run.
    pub billing_account_id: Excerpt,
    /// Graph of the run, for example `sandbox:agent`.
    pub graph_id: Excerpt,
    /// Time at which the head of the request was complete (UTC).
    pub started_at: Timestamp,
    /// Method and path of the request.
    pub route: Route,
    /// API dialect of the request.
    pub surface: ApiDialect,
    /// Requested model; null if the request names none.
    pub model_asked: Option<Excerpt>,
    /// Model that was requested from the upstream; null if none was.
    pub model_used: Option<Excerpt>,
    /// Name of the upstream; null if none was called.
    pub provider: Option<Excerpt>,
    /// Kind of that upstream; null if no upstream was called.
    pub provider_kind: Option<ProviderKind>,
    /// Status that the client got; null if it had disconnected.
    pub status: Option<u16>,
    /// Status of the upstream's response; null if there was none.
    pub upstream_status: Option<u16>,
    /// Outcome of the call.
    pub outcome: CallOutcome,
    /// Length of the request's body, in bytes.
    pub request_bytes: u64,
    /// Number of bytes of the response's body that were passed on.
    pub response_bytes: u64,
    /// Time to the first byte of the response, in milliseconds; null if there was none.
    pub first_byte_ms: Option<u64>,
    /// Total duration, in milliseconds.
    pub total_ms: u64,
    /// Usage that the upstream reports; null if it reports none.
    pub usage: Option<ReportedUsage>,
    /// The upstream's own id of the request.
    pub upstream_request_id: Option<Excerpt>,
    /// True if the response was a stream of events.
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

/// API dialect of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiDialect {
    /// OpenAI's.
    Openai,
    /// Anthropic's.
    Anthropic,
    /// Ollama's.
    Ollama,
}

/// Kind of a provider: it determines the accepted dialects and the source of billing data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// A LiteLLM proxy. It calls other providers, and its spend logs are what is billed.
    LiteLlm,
    /// A server with an OpenAI-compatible API.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// An Ollama server.
    Ollama,
}

/// Outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CallOutcome {
    /// The upstream's whole response was passed on, whatever its status.
    Completed,
    /// The call was denied; no upstream was called.
    Denied {
        /// Code of the reason.
        reason: ReasonCode,
    },
    /// The call was allowed, but there is no complete response.
    Failed {
        /// Cause of the failure.
        code: ReasonCode,
    },
    /// The client disconnected before the end.
    Canceled,
}

/// Usage of a call, as reported by an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedUsage {
    /// Part of the response that reports it.
    pub source: UsageSource,
    /// Tokens of the request.
    pub input_tokens: Option<u64>,
    /// Tokens of the response.
    pub output_tokens: Option<u64>,
    /// Cost, in US dollars.
    pub cost_usd: Option<Cost>,
}

/// Part of a response that reports usage.
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

/// Text from outside, truncated.
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
    /// Maximum length of a stored body, in bytes. Two of these fit into a record, however they are escaped.
    pub const LONGEST_BYTES: usize = 16 << 10;
}

// === impl CallRecord ===

impl CallRecord {
    /// Returns the time of the call's end.
    pub fn ended_at(&self) -> Timestamp {
        let took = SignedDuration::from_millis(i64::try_from(self.total_ms).unwrap_or(i64::MAX));
        self.started_at.saturating_add(took).unwrap_or(Timestamp::MAX)
    }
}

// === impl Excerpt ===

impl Excerpt {
    /// The longest one.
    pub const LONGEST_BYTES: usize = 256;

    /// Creates an excerpt from the beginning of a text.
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

    /// Returns a code of this program.
    ///
    /// # Panics
    /// If the text is not a valid code.
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
    /// Returns true if the provider accepts calls in that dialect.
    pub fn speaks(self, surface: ApiDialect) -> bool {
        matches!(
            (self, surface),
            (Self::LiteLlm, ApiDialect::Openai | ApiDialect::Anthropic)
                | (Self::OpenAi, ApiDialect::Openai)
                | (Self::Anthropic, ApiDialect::Anthropic)
                | (Self::Ollama, ApiDialect::Ollama | ApiDialect::Openai)
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

// === impl ApiDialect ===

impl fmt::Display for ApiDialect {
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
