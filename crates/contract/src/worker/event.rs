//! Events of a job, as a stream: `GET /v1/worker/jobs/{job_id}/events`.

use super::state::JobState;
use super::status::Progress;
use crate::failure::FailureCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobEvent {
    /// Its place among the job's events, from 1 and without gaps.
    pub id: u64,
    /// Time of the event (UTC). Of two events the one with the larger id is the later, whatever their times are.
    pub at: Timestamp,
    /// Kind of the event, with its details.
    #[serde(flatten)]
    pub happening: JobEventKind,
}

/// Kind of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum JobEventKind {
    /// The job has reached a state, or another attempt.
    Status {
        /// The state.
        status: JobState,
        /// The attempt.
        attempt: u32,
        /// Reason of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure_code: Option<FailureCode>,
    },
    /// Cancellation was requested.
    CancelRequested,
    /// The runner reports a step: its beginning, its progress, or its end.
    Step {
        /// A line of the runner's log ([`crate::event::LogLine`]).
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        line: serde_json::Value,
    },
    /// The command has printed output.
    Log {
        /// Stream that was written to.
        stream: Stream,
        /// Output as text; bytes that are not UTF-8 are replaced.
        text: String,
    },
    /// The job reports progress.
    Progress(Progress),
    /// The job has requested an extension of its deadline.
    Extension {
        /// Number of requested seconds.
        asked_seconds: u32,
        /// True if the request was granted.
        granted: bool,
        /// New deadline of the job.
        deadline: Timestamp,
        /// Reason of a denied request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The maximum number of such events is reached; no more of the kind follow.
    Truncated,
}

/// A program's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

// === impl Stream ===

impl Stream {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

// === impl JobEventKind ===

impl JobEventKind {
    /// The name of its kind: the event's name in a stream of events.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::CancelRequested => "cancel_requested",
            Self::Step { .. } => "step",
            Self::Log { .. } => "log",
            Self::Progress(_) => "progress",
            Self::Extension { .. } => "extension",
            Self::Truncated => "truncated",
        }
    }
}
