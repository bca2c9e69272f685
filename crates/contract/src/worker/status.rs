//! Status reports of a running job, and its deadline: `POST /v1/jobs/{job_id}/status`, at a hatch of its sandbox
//! (`docs/contracts/job.md#j5`).
//!
//! Reports come from inside a sandbox. The node identifies the job by the socket only, never by a report's content.

use super::ApiVersion;
use crate::decode::{Decode, DecodeContext, Fields, decode_document, whole_number};
use crate::json::{self, Node};
use crate::problem::Problems;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status report of a job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StatusReport {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// State that the job reports.
    pub status: ReportedStatus,
    /// Sequence number of the report. A report whose number is not larger than an earlier one's changes nothing, but is
    /// answered.
    #[schemars(default, with = "u64")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Result, if the job is over: as in `result.json`.
    #[schemars(default, with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<serde_json::Value>,
    /// Progress, for observers.
    #[schemars(default, with = "Progress")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Requested extension beyond the deadline, in seconds.
    #[schemars(default, with = "u32", range(min = 1, max = LONGEST_EXTENSION_SECONDS))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_request_seconds: Option<u32>,
}

/// State that a job reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportedStatus {
    /// The job is valid, and its steps run.
    InProgress,
    /// The job is over and has succeeded.
    Completed,
    /// The job is over and has failed.
    Failed,
    /// The job is over because its time was up.
    Timeout,
}

/// Progress of a job, for observers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Progress {
    /// Message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "String", length(max = 1_024))]
    pub message: Option<String>,
    /// Percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(default, with = "u8", range(max = 100))]
    pub percent: Option<u8>,
}

/// Answer to a status report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusAnswer {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Time at which the job is ended if it still runs (UTC).
    pub deadline: Timestamp,
    /// Time until then, in milliseconds.
    pub remaining_ms: u64,
    /// True if the requested extension was granted; absent if none was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
    /// Reason of a denied request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Maximum extension in one request, in seconds: thirty days.
pub const LONGEST_EXTENSION_SECONDS: u64 = 30 * 86_400;

/// Maximum length of a [`Progress`] message, in characters.
pub const LONGEST_MESSAGE: usize = 1_024;

// === impl StatusReport ===

impl StatusReport {
    /// Creates a report with nothing but a status.
    pub fn new(status: ReportedStatus) -> Self {
        Self {
            version: ApiVersion,
            status,
            seq: None,
            result: None,
            progress: None,
            extension_request_seconds: None,
        }
    }

    /// Reads a report.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for StatusReport {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let status = fields.required("status");
        let seq = fields.optional("seq");
        let result = fields.optional("result");
        let progress = fields.optional("progress");
        let extension = fields.optional("extension_request_seconds");
        fields.finish()?;
        Some(Self {
            version: version?,
            status: status?,
            seq: seq?.map(|Sequence(number)| number),
            result: result?.map(|Members(value)| value),
            progress: progress?,
            extension_request_seconds: extension?.map(|Extension(seconds)| seconds),
        })
    }
}

// === impl ReportedStatus ===

impl ReportedStatus {
    /// Returns true if the job reports that it is over.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::InProgress)
    }
}

impl Decode for ReportedStatus {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str() {
            Some("in_progress") => Some(Self::InProgress),
            Some("completed") => Some(Self::Completed),
            Some("failed") => Some(Self::Failed),
            Some("timeout") => Some(Self::Timeout),
            _ => at.mistyped(node, "`in_progress`, `completed`, `failed` or `timeout`"),
        }
    }
}

// === impl Progress ===

impl Decode for Progress {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let message = fields.optional("message");
        let percent = fields.optional("percent");
        fields.check(|at| {
            let says_something = node.member("message").is_some() || node.member("percent").is_some();
            if !says_something {
                at.refuse("neither `message` nor `percent`", "at least one of them");
            }
            says_something
        });
        fields.finish()?;
        Some(Self {
            message: message?.map(|Message(text)| text),
            percent: percent?.map(|Percent(number)| number),
        })
    }
}

struct Sequence(u64);
struct Members(serde_json::Value);
struct Extension(u32);
struct Message(String);
struct Percent(u8);

impl Decode for Sequence {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        whole_number(node, at, 0..=u64::MAX).map(Self)
    }
}

impl Decode for Members {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Object(_) => Some(Self(node.to_value())),
            _ => at.mistyped(node, "an object: a result as in result.json"),
        }
    }
}

impl Decode for Extension {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let seconds = whole_number(node, at, 1..=LONGEST_EXTENSION_SECONDS)?;
        u32::try_from(seconds).ok().map(Self)
    }
}

impl Decode for Message {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str().filter(|text| text.chars().count() <= LONGEST_MESSAGE) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, format!("at most {LONGEST_MESSAGE} characters")),
        }
    }
}

impl Decode for Percent {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let number = whole_number(node, at, 0..=100)?;
        u8::try_from(number).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_report_round_trips() {
        let report = StatusReport {
            seq: Some(3),
            result: Some(serde_json::json!({ "status": "success" })),
            progress: Some(Progress { message: Some("half".to_owned()), percent: Some(50) }),
            extension_request_seconds: Some(60),
            ..StatusReport::new(ReportedStatus::InProgress)
        };
        let document = serde_json::to_vec(&report).unwrap();
        assert_eq!(StatusReport::parse(&document), Ok(report));
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let refused = StatusReport::parse(
            br#"{"version":2,"status":"done","seq":-1,"result":[],"progress":{"percent":101},
                "extension_request_seconds":0,"more":1}"#,
        );
        let places: Vec<_> =
            refused.unwrap_err().as_slice().iter().map(|problem| problem.path.clone()).collect();
        for place in [
            "$.version",
            "$.status",
            "$.seq",
            "$.result",
            "$.progress.percent",
            "$.extension_request_seconds",
            "$.more",
        ] {
            assert!(places.iter().any(|found| found == place), "{place} of {places:?}");
        }
        assert!(StatusReport::parse(br#"{"version":1,"status":"in_progress","progress":{}}"#).is_err());
        // The control.
        assert!(StatusReport::parse(br#"{"version":1,"status":"in_progress"}"#).is_ok());
    }
}
