//! Results of jobs (`docs/contracts/job.md#j11`, `docs/contracts/draft.md#d6`).
//!
//! A result is always complete JSON, even if the job could not be read. Members beyond the minimum
//! (`docs/contracts/job.md#j11.2`) are those of the older draft (`docs/contracts/draft.md#d6.1`) and our own; all are listed
//! in the published schema.

pub mod agent;
pub mod output;

use crate::egress::WebUsage;
use crate::failure::FailureCode;
use crate::isolation::Isolation;
use crate::job::step::StepType;
use crate::job::{InvalidJob, Job};
use crate::limit::Limit;
use crate::problem::Problem;
use crate::version::ProtocolVersion;
use agent::AgentReport;
use jiff::Timestamp;
use output::StepOutput;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobResult {
    /// The version of this contract the result is written in.
    pub protocol_version: ProtocolVersion,
    /// The job's id as it was sent; null if it could not be read.
    pub job_id: Option<String>,
    /// The task's id as it was sent; null if it could not be read.
    pub task_id: Option<String>,
    /// Skill that the job was made from, if the job names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_id: Option<String>,
    /// Source of the persona, if the job names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona_id: Option<String>,
    /// Outcome of the job.
    pub status: JobStatus,
    /// The steps that ran or were refused, in order.
    pub steps: Vec<StepResult>,
    /// Files kept.
    pub artifacts: Vec<Artifact>,
    /// Failure code; null on success.
    pub failure_code: Option<FailureCode>,
    /// Failure message for a person; null on success.
    pub failure_message: Option<String>,
    /// The limit of the sandbox that ended the job, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded_limit: Option<Limit>,
    /// All problems of a job that was rejected as malformed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// Time at which the runner started the job (UTC).
    pub started_at: Timestamp,
    /// Time at which the result was complete (UTC).
    pub finished_at: Timestamp,
    /// Total resource usage of all steps.
    pub resource_usage: ResourceUsage,
    /// Steps reused from an earlier run of the same job, if one was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<ResumeSummary>,
    /// Report of the agent, if the job had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentReport>,
    /// Web usage, as the host measured it; absent if the job had no network access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
    /// Isolation of the job from its host; absent if no host reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Changes to a copied workspace; absent for other workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<WorkspaceChanges>,
}

/// Progress of an earlier, interrupted run that this run has reused.
///
/// It is read from a file that the job's own programs could modify.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeSummary {
    /// Number of steps, from the first on, that the earlier run had completed and that were not repeated.
    pub steps_taken_over: usize,
    /// Id of the step that was interrupted and begun again.
    pub step_run_again: Option<String>,
}

/// Outcome of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// All steps succeeded.
    Success,
    /// Something failed; see `failure_code`.
    Failure,
    /// The job or a step ran out of time.
    Timeout,
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepResult {
    /// The step's place in the job, from 0.
    pub index: usize,
    /// The step's id, or `step-N` counted from 1.
    pub id: String,
    /// Type of the step.
    #[serde(rename = "type")]
    pub step_type: StepType,
    /// Success or failure of the step.
    pub status: StepStatus,
    /// Start time (UTC); null if the step was denied beforehand.
    pub started_at: Option<Timestamp>,
    /// End time (UTC); null if the step was denied beforehand.
    pub finished_at: Option<Timestamp>,
    /// Duration, in milliseconds.
    pub duration_ms: u64,
    /// Output of the step; of a failed step as much as there was.
    pub result: Option<StepOutput>,
    /// Error of the step; null on success.
    pub error: Option<StepError>,
}

/// Success or failure of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// The step succeeded.
    Success,
    /// The step failed; see `error`.
    Failure,
}

/// Error of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepError {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub code: FailureCode,
    /// Message for a person.
    pub message: String,
}

/// A file kept after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Path of the file, as the job sees it: below `/job/artifacts` or `/workspace`. For a file that the agent has
    /// stored in the task (`artifact.put`), its relative path there.
    /// Bytes of a path that are not UTF-8 are escaped as `\xff`, and backslashes are doubled.
    pub path: String,
    /// Its SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// Processor time and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceUsage {
    /// Processor time, user and system, in milliseconds.
    pub cpu_time_ms: u64,
    /// The largest resident set of any one process, in bytes.
    pub max_rss_bytes: u64,
}

/// Changes of a job to its copy of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceChanges {
    /// All files, sorted by path.
    pub files: Vec<ChangedFile>,
    /// Changes as a git-style unified diff; it names files that a diff can't show.
    pub diff: String,
    /// True if `diff` was truncated, or there are paths that are too long to be listed.
    pub truncated: bool,
    /// The id under which the changes are kept (`belljar changes`); absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// State of the changes at the end of the run; absent while that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ChangesState>,
    /// Paths that were not applied because the source was changed there since the copy was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Paths of the source that something else than this run changed since the copy was made. A directory in which a
    /// name was added or removed ends with a slash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_in_source: Vec<String>,
}

/// State of the changes that a run made to its copy of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangesState {
    /// There were no changes.
    None,
    /// The changes were written to the source.
    Applied,
    /// The changes are kept for later.
    Kept,
    /// The changes were deleted on request.
    Discarded,
    /// Changes that conflict with changes of the source are kept; all others were written to the source.
    Conflict,
    /// The changes were pushed to a branch of a repository.
    Pushed,
}

/// A file or directory that a job changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// The path in the workspace. That of a directory ends with a slash: one that is made or removed, and of which nothing else is listed.
    pub path: String,
    /// Kind of change.
    pub change: Change,
    /// Present content, if the diff doesn't show it in full; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<OmittedContent>,
}

/// New content that a diff doesn't show: it is not UTF-8 text, it is too large, or the diff has no space left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OmittedContent {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal; absent if it was too large to be hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The file is new.
    Created,
    /// The content has changed.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file was renamed from `from`.
    Renamed,
    /// The file is a copy of `from`.
    Copied,
    /// Only the permission bits have changed.
    ModeChanged,
}

/// Failure of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub code: FailureCode,
    /// Message for a person.
    pub message: String,
}

// === impl JobResult ===

impl JobResult {
    /// Creates the result of a job that has just been started: a success so far, without steps.
    pub fn begun(job: &Job, started_at: Timestamp) -> Self {
        let ids = (Some(job.job_id.to_string()), Some(job.task_id.to_string()));
        Self {
            skill_id: job.skill_id.clone(),
            persona_id: job.persona_id.clone(),
            ..Self::empty(ids, started_at)
        }
    }

    /// The result of a document that is no job.
    pub fn of_invalid_job(invalid: InvalidJob, at: Timestamp) -> Self {
        let message = invalid.to_string();
        let mut result = Self::empty((invalid.job_id, invalid.task_id), at);
        result.problems = invalid.problems.into_vec();
        result.failed(Failure { code: FailureCode::SchemaValidation, message }, at)
    }

    /// The result of a job that could not be carried out at all.
    pub fn of_failure(ids: (Option<String>, Option<String>), failure: Failure, at: Timestamp) -> Self {
        Self::empty(ids, at).failed(failure, at)
    }

    fn empty((job_id, task_id): (Option<String>, Option<String>), at: Timestamp) -> Self {
        Self {
            protocol_version: ProtocolVersion::OURS,
            job_id,
            task_id,
            skill_id: None,
            persona_id: None,
            status: JobStatus::Success,
            steps: Vec::new(),
            artifacts: Vec::new(),
            failure_code: None,
            failure_message: None,
            exceeded_limit: None,
            problems: Vec::new(),
            started_at: at,
            finished_at: at,
            resource_usage: ResourceUsage::default(),
            resumed: None,
            agent: None,
            web: None,
            isolation: None,
            changes: None,
        }
    }

    /// Returns the same result, ended by a failure.
    #[must_use]
    pub fn failed(mut self, failure: Failure, at: Timestamp) -> Self {
        self.status = match failure.code {
            FailureCode::Timeout => JobStatus::Timeout,
            _ => JobStatus::Failure,
        };
        self.failure_code = Some(failure.code);
        self.failure_message = Some(failure.message);
        self.finished_at = at;
        self
    }

    /// Returns the exit code for this outcome: 0 success, 1 failure, 2 malformed job, 124 timeout.
    pub fn exit_code(&self) -> u8 {
        match (self.status, self.failure_code) {
            (JobStatus::Success, _) => 0,
            (JobStatus::Timeout, _) => 124,
            (JobStatus::Failure, Some(FailureCode::SchemaValidation)) => 2,
            (JobStatus::Failure, _) => 1,
        }
    }
}

// === impl Failure ===

impl Failure {
    /// A failure of that kind.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
