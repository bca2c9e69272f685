//! State of a job: the answer to `jobs:run`, and to `GET /v1/worker/jobs/{job_id}`.

use super::ApiVersion;
use super::state::JobState;
use crate::egress::WebUsage;
use crate::failure::FailureCode;
use crate::id::{JobId, ProjectId, RunId, TaskId};
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
    /// Job with its state.
    #[serde(flatten)]
    pub job: JobSummary,
    /// Outcome of the job, once it is over.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<JobOutcome>,
}

/// A job and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobSummary {
    /// The task it belongs to.
    pub task_id: TaskId,
    /// The job.
    pub job_id: JobId,
    /// The project that the task belongs to, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    /// State of the job.
    pub status: JobState,
    /// Number of the attempt; 0 before the first.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// The run that is, or was, the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Time of acceptance (UTC).
    pub accepted_at: Timestamp,
    /// Start of the last attempt (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// End of the job (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Time at which it is ended if it still runs (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// True if cancellation was requested.
    pub cancel_requested: bool,
    /// SHA-256 of the stored outcome, in lower-case hexadecimal, once the job is over. Messages about one job with the
    /// same digest have the same outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_sha256: Option<String>,
    /// Time at which a client acknowledged the result (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<Timestamp>,
}

/// Outcome of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobOutcome {
    /// Exit code of the command or of the runner, 128 plus the signal that ended it, or -1 if there was none.
    pub exit_code: i32,
    /// Standard output as text; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error as text; bytes that are not UTF-8 are replaced.
    pub stderr: String,
    /// Outputs that were truncated.
    pub truncated: JobOutputTruncation,
    /// Failure code, if the job did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<FailureCode>,
    /// Failure message for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// The runner's result, if it was a job for the runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sba_result: Option<Box<JobResult>>,
    /// Files kept.
    pub artifacts: Vec<Artifact>,
    /// Resource usage.
    pub resource_usage: ResourceUsage,
    /// Model usage of the last attempt; absent if it had no access to models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inference: Option<UsageTotals>,
    /// Web usage; absent if the job had no network access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
    /// Isolation of the job from the node; absent if there was no sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

/// Truncation of outputs, at 262,144 bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobOutputTruncation {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// A page of a node's jobs: `GET /v1/worker/jobs`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobListResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The jobs, the last accepted first.
    pub jobs: Vec<JobSummary>,
    /// Value of `page_token` for the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// Maximum number of bytes kept of each stream (`docs/contracts/job.md#j4.7`).
pub const LARGEST_STREAM_BYTES: usize = 262_144;

/// Exit code of a job that ended without one.
pub const NO_EXIT_CODE: i32 = -1;

// === impl JobOutcome ===

impl JobOutcome {
    /// Creates the outcome of a job that failed without a result of its own.
    pub fn of_failure(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            exit_code: NO_EXIT_CODE,
            stdout: String::new(),
            stderr: String::new(),
            truncated: JobOutputTruncation::default(),
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
