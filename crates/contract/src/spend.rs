//! LiteLLM's spend logs (`GET /spend/logs`): a row for each call. They are the basis of billing
//! (`docs/contracts/agents.md#a1.11`).
//!
//! The members of a row that bills are compared by are read strictly; the others are LiteLLM's own and ignored.

use crate::id::{CallId, RunId};
use crate::inference::{Cost, Excerpt};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A call in LiteLLM's spend logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpendRow {
    /// The row's own id.
    pub request_id: Excerpt,
    /// Id of the call, if it is one of ours. If a caller sets none, LiteLLM makes one of another form.
    pub call_id: Option<CallId>,
    /// Run, which the host attaches to the call.
    pub run_id: Option<RunId>,
    /// Number of the run's attempt.
    pub attempt: Option<u32>,
    /// Account that is billed.
    pub end_user: Option<Excerpt>,
    /// The model that was called.
    pub model: Excerpt,
    /// Time of the call's start.
    pub started_at: Timestamp,
    /// Cost, in US dollars.
    pub cost_usd: Cost,
    /// Tokens of the request.
    pub input_tokens: u64,
    /// Number of input tokens that were read from a cache or written to one. Some responses don't report them.
    pub cached_input_tokens: u64,
    /// Tokens of the response.
    pub output_tokens: u64,
    /// True if the call failed.
    pub is_failure: bool,
}

/// Reason why an answer is no list of rows.
#[derive(Debug, thiserror::Error)]
pub enum SpendRowsError {
    /// The body is something else.
    #[error("the spend logs are not a list of rows")]
    NoList {
        /// Underlying error.
        #[source]
        source: serde_json::Error,
    },
    /// A row is none.
    #[error("row {at} of the spend logs does not describe a call")]
    Row {
        /// Index of the row, from 0.
        at: usize,
        /// Underlying error.
        #[source]
        source: serde_json::Error,
    },
    /// A member of a row is not what it must be.
    #[error("row {at} of the spend logs: `{member}` must be {expected}")]
    Member {
        /// Index of the row, from 0.
        at: usize,
        /// Its member.
        member: &'static str,
        /// Expected value.
        expected: &'static str,
    },
}

/// A row in LiteLLM's format. Other members are ignored.
#[derive(Deserialize)]
struct LiteLlmSpendRow<'r> {
    request_id: String,
    litellm_call_id: Option<String>,
    end_user: Option<String>,
    model: Option<String>,
    #[serde(rename = "startTime")]
    start_time: String,
    /// Cost as text, because billed amounts must not be rounded.
    #[serde(borrow)]
    spend: &'r RawValue,
    prompt_tokens: u64,
    completion_tokens: u64,
    metadata: Option<Value>,
    status: Option<String>,
}

/// Members of `metadata.additional_usage_values`.
const CACHED: [&str; 2] = ["cache_read_input_tokens", "cache_creation_input_tokens"];

/// Problem of a row: the member, and what it must be.
type RowProblem = (&'static str, &'static str);

// === impl SpendRow ===

impl SpendRow {
    /// Parses an answer of `/spend/logs`.
    ///
    /// # Errors
    /// [`SpendRowsError`], also for rows that are sums of many calls: LiteLLM returns those for queries by day without
    /// `summarize=false`.
    pub fn parse_all(body: &[u8]) -> Result<Vec<Self>, SpendRowsError> {
        let no_list = |source| SpendRowsError::NoList { source };
        let rows: Vec<&RawValue> = serde_json::from_slice(body).map_err(no_list)?;
        rows.iter().enumerate().map(|(at, row)| Self::parse(at, row)).collect()
    }

    fn parse(at: usize, row: &RawValue) -> Result<Self, SpendRowsError> {
        let written: LiteLlmSpendRow<'_> =
            serde_json::from_str(row.get()).map_err(|source| SpendRowsError::Row { at, source })?;
        written.read().map_err(|(member, expected)| SpendRowsError::Member { at, member, expected })
    }
}

// === impl LiteLlmSpendRow ===

impl LiteLlmSpendRow<'_> {
    fn read(self) -> Result<SpendRow, RowProblem> {
        let metadata = object(self.metadata, "metadata")?;
        // The host's own metadata is in a member of its own. Older versions of LiteLLM mixed it with theirs.
        let theirs = object(metadata.get("spend_logs_metadata").cloned(), "metadata.spend_logs_metadata")?;
        let said = |name: &str| theirs.get(name).or_else(|| metadata.get(name));
        let call_id = self.litellm_call_id.or_else(|| text(metadata.get("litellm_call_id")));
        let call_id = call_id.filter(|id| !id.is_empty());
        let call_id = CallId::parse(call_id.as_deref().unwrap_or(&self.request_id)).ok();
        Ok(SpendRow {
            call_id,
            run_id: text(said("run_id")).and_then(|id| RunId::parse(&id).ok()),
            attempt: said("attempt").and_then(Value::as_u64).and_then(|attempt| attempt.try_into().ok()),
            end_user: self.end_user.filter(|user| !user.is_empty()).map(|user| Excerpt::of(&user)),
            model: Excerpt::of(&self.model.unwrap_or_default()),
            started_at: time(&self.start_time).ok_or(("startTime", "a time"))?,
            cost_usd: Cost::parse(self.spend.get()).map_err(|_| ("spend", "dollars, from 0 on"))?,
            input_tokens: self.prompt_tokens,
            cached_input_tokens: CACHED
                .iter()
                .map(|name| count(&metadata, name))
                .fold(0, u64::saturating_add),
            output_tokens: self.completion_tokens,
            is_failure: self.status.as_deref() == Some("failure"),
            request_id: Excerpt::of(&self.request_id),
        })
    }
}

/// Returns an object, which may be encoded as a text.
fn object(value: Option<Value>, member: &'static str) -> Result<serde_json::Map<String, Value>, RowProblem> {
    let value = match value {
        Some(Value::String(text)) if text.is_empty() => None,
        Some(Value::String(text)) => {
            Some(serde_json::from_str(&text).map_err(|_| (member, "an object, or one in a text"))?)
        }
        other => other,
    };
    match value {
        None | Some(Value::Null) => Ok(serde_json::Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err((member, "an object, or one in a text")),
    }
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn count(metadata: &serde_json::Map<String, Value>, name: &str) -> u64 {
    let counts = metadata.get("additional_usage_values");
    counts.and_then(|counts| counts.get(name)).and_then(Value::as_u64).unwrap_or_default()
}

/// Parses a time with its offset, or in UTC without one.
fn time(text: &str) -> Option<Timestamp> {
    let without = || Offset::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok();
    text.parse().ok().or_else(without)
}
