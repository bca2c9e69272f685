//! The result: what became of a job (`spec/1 §Result Contract`, `spec/5 §6`).
//!
//! A result is complete JSON whatever happened, also when the job could not be read. Members beyond the minimum of
//! `spec/1` are those of `spec/5` and our own; all are listed in the published schema.

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

/// What became of one job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobResult {
    /// The version of this contract the result is written in.
    pub protocol_version: ProtocolVersion,
    /// The job's id as it was sent; null if it could not be read.
    pub job_id: Option<String>,
    /// The task's id as it was sent; null if it could not be read.
    pub task_id: Option<String>,
    /// The skill that the job says it was made from, if it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill_id: Option<String>,
    /// Where the job says its persona comes from, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona_id: Option<String>,
    /// How the job ended.
    pub status: JobStatus,
    /// The steps that ran or were refused, in order.
    pub steps: Vec<StepResult>,
    /// Files kept.
    pub artifacts: Vec<Artifact>,
    /// Why the job failed; null on success.
    pub failure_code: Option<FailureCode>,
    /// The same for a person; null on success.
    pub failure_message: Option<String>,
    /// The limit of the sandbox that ended the job, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded_limit: Option<Limit>,
    /// Every mistake in a job that was refused as malformed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// When the runner took the job up (UTC).
    pub started_at: Timestamp,
    /// When the result was complete (UTC).
    pub finished_at: Timestamp,
    /// What all steps used together.
    pub resource_usage: ResourceUsage,
    /// What was taken over from an earlier run of the same job, if one was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
    /// What the agent inside has done, if the job had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentReport>,
    /// What it has had of the web, if it might reach any; as its host saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
    /// What stood between the job and its host; absent when no host reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// What the job changed in a workspace it had as a copy; absent for other workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<WorkspaceChanges>,
}

/// What a run has taken over from an earlier one that was cut off.
///
/// It is known by a file that lies where the job's own programs could reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    /// So many of the steps, from the first on, were carried out by the earlier run and not again.
    pub steps_taken_over: usize,
    /// The id of the step that it was at, which was begun again.
    pub step_run_again: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStatus {
    /// Every step did what it should.
    Success,
    /// Something failed; see `failure_code`.
    Failure,
    /// The job or a step ran out of time.
    Timeout,
}

/// What became of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepResult {
    /// The step's place in the job, from 0.
    pub index: usize,
    /// The step's id, or `step-N` counted from 1.
    pub id: String,
    /// What kind of step it is.
    #[serde(rename = "type")]
    pub step_type: StepType,
    /// Whether it did what it should.
    pub status: StepStatus,
    /// When it started (UTC); null if it was refused beforehand.
    pub started_at: Option<Timestamp>,
    /// When it ended (UTC); null if it was refused beforehand.
    pub finished_at: Option<Timestamp>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it returned; of a failed step whatever there was.
    pub result: Option<StepOutput>,
    /// Why it failed; null on success.
    pub error: Option<StepError>,
}

/// Whether a step did what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// It did.
    Success,
    /// It didn't; see `error`.
    Failure,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepError {
    /// The kind of failure.
    #[serde(rename = "type")]
    pub code: FailureCode,
    /// The same for a person.
    pub message: String,
}

/// A file kept after the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifact {
    /// Where it was, as the job sees it: below `/job/artifacts` or `/workspace`. Of a file that its agent has put into the task
    /// (`artifact.put`), the path there, which is relative.
    /// A path that is no UTF-8 stands escaped, as `\xff` for each foreign byte and with backslashes doubled.
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

/// What a job changed in its copy of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceChanges {
    /// All files, sorted by path.
    pub files: Vec<ChangedFile>,
    /// The same as a git-style unified diff; files that a diff can't show are named in it.
    pub diff: String,
    /// Whether `diff` was cut for length, or there are paths that are too long to be listed.
    pub truncated: bool,
    /// The id under which the changes are kept (`belljar changes`); absent if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What became of the changes at the end of the run; absent while that is open.
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

/// What became of the changes that a run made in its copy of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangesState {
    /// There were none.
    None,
    /// They are written to the source.
    Applied,
    /// They are kept for later.
    Kept,
    /// They are deleted, because that was asked for.
    Discarded,
    /// Those that conflict with changes of the source are kept; all others are written to the source.
    Conflict,
    /// They are pushed to a branch of a repository.
    Pushed,
}

/// One file or directory that a job changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// The path in the workspace. That of a directory ends with a slash: one that is made or removed, and of which nothing else is listed.
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// What it holds now, if the diff doesn't show that in full; absent if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<Unshown>,
}

/// A new content that a diff doesn't show: it is no UTF-8 text, it is too large, or the diff has no room left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unshown {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal; absent if it was too large to be hashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is new.
    Created,
    /// Its content is another.
    Modified,
    /// It is gone.
    Deleted,
    /// It was `from` before.
    Renamed,
    /// It is a copy of `from`.
    Copied,
    /// Only its permission bits are others.
    ModeChanged,
}

/// How a job ends that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind of failure.
    pub code: FailureCode,
    /// The same for a person.
    pub message: String,
}

// === impl JobResult ===

impl JobResult {
    /// A result of a job that has just been taken up: a success so far, without steps.
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

    /// The same result, ended by a failure.
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

    /// The exit code of a program whose outcome this is: 0 success, 1 failure, 2 malformed job, 124 timeout.
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
