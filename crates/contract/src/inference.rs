//! Calls of models, as they are recorded (`spec/2` invariants 7 and 10).

use crate::id::RunId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Whose shape a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// `/v1/…` as OpenAI has it.
    OpenAi,
    /// `/v1/messages` as Anthropic has it.
    Anthropic,
    /// `/api/…` as Ollama has it.
    Ollama,
}

/// One call, made or refused. Nothing of what was said in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    /// Chosen by the host; what LiteLLM bills it by.
    pub call_id: String,
    /// The run that called, known by the socket that it called through.
    pub run_id: RunId,
    /// Which attempt of it.
    pub attempt: u32,
    /// When its head had arrived.
    pub started_at: Timestamp,
    /// As it was asked for, at most 200 characters.
    pub method: String,
    /// The same; without a query.
    pub path: String,
    /// Whose shape it has.
    pub surface: Surface,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_model: Option<String>,
    /// What its provider calls it, if it was allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// That provider, by its name in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What became of it.
    pub outcome: CallOutcome,
    /// The status that the sandbox was told; none if it was told nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The status that the provider gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_status: Option<u16>,
    /// What the provider calls the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_request_id: Option<String>,
    /// Of its body.
    pub request_bytes: u64,
    /// Of the answer's body, as far as it was passed on.
    pub response_bytes: u64,
    /// Whether the answer came piece by piece.
    pub is_streamed: bool,
    /// From its head to the head of the provider's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// From its head to its end.
    pub total_ms: u64,
    /// Tokens that went in, as the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that came out, as the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Dollars, as the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Where the cost was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "result", deny_unknown_fields)]
pub enum CallOutcome {
    /// The provider's answer was passed on to its end, whatever it says.
    Completed,
    /// No provider was asked.
    Denied {
        /// A stable name.
        reason: String,
    },
    /// A provider was asked, and its answer was not passed on to its end.
    Failed {
        /// A stable name.
        code: String,
    },
    /// Whoever called was gone before the end.
    Canceled,
}

/// Where the cost of a call was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// In a header of the answer.
    Header,
    /// In its body.
    Body,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> CallRecord {
        CallRecord {
            call_id: "call".to_owned(),
            run_id: RunId::parse("01a20073-e9f5-7598-b496-5102b8186da2").unwrap(),
            attempt: 0,
            started_at: Timestamp::UNIX_EPOCH,
            method: "POST".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            surface: Surface::OpenAi,
            requested_model: Some("small".to_owned()),
            model: None,
            provider: None,
            outcome: CallOutcome::Denied { reason: "model_not_allowed".to_owned() },
            status: Some(403),
            upstream_status: None,
            upstream_request_id: None,
            request_bytes: 2,
            response_bytes: 0,
            is_streamed: false,
            first_byte_ms: None,
            total_ms: 1,
            input_tokens: None,
            output_tokens: None,
            cost_usd: Some(0.25),
            cost_source: Some(CostSource::Header),
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_and_takes_nothing_that_it_does_not_know() {
        let text = serde_json::to_string(&record()).unwrap();
        assert!(text.contains(r#""surface":"openai""#), "{text}");
        assert!(text.contains(r#""outcome":{"result":"denied","reason":"model_not_allowed"}"#), "{text}");
        assert_eq!(serde_json::from_str::<CallRecord>(&text).unwrap(), record());
        let more = text.replacen('{', "{\"x\":1,", 1);
        assert!(serde_json::from_str::<CallRecord>(&more).is_err());
    }
}
