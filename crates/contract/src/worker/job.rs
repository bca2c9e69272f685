//! What a node tells of a job: the answer to `jobs:run`, and what `GET /v1/worker/jobs/{job_id}` gives.

use super::ApiVersion;
use super::state::JobState;
use crate::egress::WebUsage;
use crate::failure::FailureCode;
use crate::id::{JobId, RunId, TaskId};
use crate::isolation::Isolation;
use crate::result::{Artifact, JobResult, ResourceUsage};
use crate::usage::UsageTotals;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A job, as the node has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The job and how far it is.
    #[serde(flatten)]
    pub job: JobSummary,
    /// What came of it, once it is over.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<JobOutcome>,
}

/// A job and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobSummary {
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The job.
    pub job_id: JobId,
    /// How far it is.
    pub status: JobState,
    /// Which attempt at it this is; 0 before the first.
    pub attempt: u32,
    /// How many there may be.
    pub max_attempts: u32,
    /// The run that is, or was, the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// When the node accepted it (UTC).
    pub accepted_at: Timestamp,
    /// When the last attempt began (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it was over (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When it will be ended, if it goes on for so long (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether somebody wants it to stop.
    pub cancel_requested: bool,
    /// The SHA-256 of the outcome as the node keeps it, in lower-case hexadecimal, once the job is over. Two messages
    /// about one job with the same digest tell the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_sha256: Option<String>,
    /// When somebody said that they have the result (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Timestamp>,
}

/// What came of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobOutcome {
    /// The exit code of the command or of the runner, 128 and the signal that ended it, or -1 where it didn't come to one.
    pub exit_code: i32,
    /// What it wrote to standard output, as text; what isn't UTF-8 is replaced.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// What of that was cut.
    pub truncated: Truncated,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    /// The same for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// The runner's result, if it was a job for the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sba_result: Option<Box<JobResult>>,
    /// Files kept.
    pub artifacts: Vec<Artifact>,
    /// What it used.
    pub resource_usage: ResourceUsage,
    /// What its last attempt has used of models, if it might call any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<UsageTotals>,
    /// What it has had of the web, if it might reach any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
    /// What stood between the job and the node; absent when there was no sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

/// Whether output was cut, at 262,144 bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Truncated {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// Some of a node's jobs: `GET /v1/worker/jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobListResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The jobs, the last accepted first.
    pub jobs: Vec<JobSummary>,
    /// What `page_token` is for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// As much is kept of each stream, in bytes (`REQ-WORKER-0146`).
pub const LARGEST_STREAM_BYTES: usize = 262_144;

/// The exit code of what didn't come to one.
pub const NO_EXIT_CODE: i32 = -1;

// === impl JobOutcome ===

impl JobOutcome {
    /// The outcome of a job that did not come to one by itself.
    pub fn of_failure(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            exit_code: NO_EXIT_CODE,
            stdout: String::new(),
            stderr: String::new(),
            truncated: Truncated::default(),
            failure_code: Some(code),
            failure_message: Some(message.into()),
            sba_result: None,
            artifacts: Vec::new(),
            resource_usage: ResourceUsage::default(),
            inference: None,
            web: None,
            isolation: None,
        }
    }
}
