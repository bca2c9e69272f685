//! What happens to a job, as it happens: `GET /v1/worker/jobs/{job_id}/events`.

use super::state::JobState;
use super::status::Progress;
use crate::failure::FailureCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobEvent {
    /// Its place among the job's events, from 1 and without gaps.
    pub id: u64,
    /// When it happened (UTC). Of two events the one with the larger id is the later, whatever the times say.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub happening: Happening,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happening {
    /// The job has come to a state, or to another attempt.
    Status {
        /// The state.
        status: JobState,
        /// The attempt.
        attempt: u32,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure_code: Option<FailureCode>,
    },
    /// Somebody wants it to stop.
    CancelRequested,
    /// The runner has said something: a step that begins, goes on, or ends.
    Step {
        /// A line of the runner's log ([`crate::event::LogLine`]).
        #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
        line: serde_json::Value,
    },
    /// The command has written something.
    Log {
        /// Where to.
        stream: Stream,
        /// What, as text; what isn't UTF-8 is replaced.
        text: String,
    },
    /// The job has said how far it is.
    Progress(Progress),
    /// The job has asked for more time than it had.
    Extension {
        /// How many seconds it asked for.
        asked_seconds: u32,
        /// Whether it has got them.
        granted: bool,
        /// When it will be ended from now on, if it goes on for so long.
        deadline: Timestamp,
        /// Why it has not got them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// More happened than is kept: nothing of the kind follows.
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

// === impl Happening ===

impl Happening {
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
