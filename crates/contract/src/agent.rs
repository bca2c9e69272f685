//! Result of an agent's run, for programs (`docs/contracts/agents.md#a5.4`).

use crate::egress::WebUsage;
use crate::id::RunId;
use crate::result::{ChangedFile, ChangesState};
use crate::usage::{UsageReport, UsageTotals};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Result of an agent's run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentResult {
    /// The run.
    pub run_id: RunId,
    /// The agent's name.
    pub agent: String,
    /// Graph that was run, for example `sandbox:codex`.
    pub graph_id: String,
    /// True if the agent succeeded.
    pub ok: bool,
    /// Outcome of the run.
    pub finish_reason: FinishReason,
    /// Failure of the run; null on success.
    pub failure: Option<AgentFailure>,
    /// Answer of the agent.
    pub content: String,
    /// Exit code of its program, 128 plus the signal that ended it, or -1 if it was not started.
    pub exit_code: i32,
    /// Standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Standard error; bytes that are not UTF-8 are replaced.
    pub stderr: String,
    /// True if some of the output was dropped.
    pub output_truncated: bool,
    /// Usage of each call of a model.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub usage: Vec<UsageReport>,
    /// Total usage of all calls.
    pub totals: UsageTotals,
    /// Number of calls that are only in the audit log.
    pub unlisted_calls: u64,
    /// The files that it changed.
    pub files: Vec<ChangedFile>,
    /// Changes as a unified diff.
    pub diff: String,
    /// True if there are more changes than are shown.
    pub diff_truncated: bool,
    /// State of the agent's changes.
    pub changes: AgentChanges,
    /// The directory in which they are kept, if they are.
    pub kept_in: Option<String>,
    /// Web usage; absent if the run had no network access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
    /// Result of pushing the changes to a branch; null if no push was requested or it was not attempted.
    pub push: Option<AgentPush>,
    /// Position of the run in the audit log; null if not all of it could be recorded.
    pub audit: Option<AuditSpan>,
    /// Duration, in milliseconds.
    pub duration_ms: u64,
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The agent ended by itself.
    Stop,
    /// The run failed.
    Error,
}

/// Failure of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentFailure {
    /// Code for the client that requested the run.
    pub error: GraphErrorCode,
    /// Cause: a code of the run, for example `timeout`, or one that the agent gave, for example `llm_error`.
    pub code: String,
    /// Message for a person.
    pub message: String,
}

/// Error codes that all graph executors share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphErrorCode {
    /// The request can't be carried out.
    InvalidRequest,
    /// There is no such agent.
    NotFound,
    /// The run exceeded its time limit.
    Timeout,
    /// The run was cancelled, or ended because memory or disk space ran out.
    Aborted,
    /// The provider's rate limit is exceeded.
    RateLimit,
    /// Anything else.
    Internal,
    /// The budget is used up.
    InsufficientCredits,
    /// The provider doesn't answer.
    ProviderUnavailable,
}

/// State of an agent's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentChanges {
    /// The id under which they are kept (`belljar changes`); null if they are not.
    pub id: Option<RunId>,
    /// State of the changes.
    pub state: ChangesState,
    /// Paths that were not applied because the source was changed there since the copy was made.
    pub conflicts: Vec<String>,
    /// Paths of the source that something else than this run changed since the copy was made. A directory in which a
    /// name was added or removed ends with a slash.
    pub changed_in_source: Vec<String>,
}

/// Result of pushing an agent's changes to a branch (`belljar agent --push`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentPush {
    /// `pushed`, `already_there`, `nothing_to_push`, `refused`, `taken` or `failed`.
    pub outcome: String,
    /// Reason why nothing was pushed: a stable code; null if it was pushed.
    pub reason: Option<String>,
    /// URL of the remote repository.
    pub remote: String,
    /// The branch.
    pub branch: String,
    /// The commit; null if none was made.
    pub commit: Option<String>,
    /// Paths that were not pushed because they are repositories, in the place of submodules, or not files. They stay
    /// with the kept changes.
    pub left_out: Vec<String>,
    /// Paths that were not pushed because the cloned commit ignores them; a directory stands for everything in it. They
    /// stay with the kept changes.
    pub ignored: Vec<String>,
    /// Paths that need an approval which was not given.
    pub handoff: Vec<PathNeedingApproval>,
    /// The pull request; null if none was requested, or nothing was pushed.
    pub pull_request: Option<AgentPullRequest>,
}

/// A pull request for the pushed branch (`belljar agent --push --pr`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentPullRequest {
    /// `opened`, `already_open` or `failed`.
    pub outcome: String,
    /// Reason why there is no pull request: a stable code; null if there is one.
    pub reason: Option<String>,
    /// URL of its web page; null if there is none.
    pub url: Option<String>,
    /// Target branch.
    pub base: String,
}

/// A path that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PathNeedingApproval {
    /// The path.
    pub path: String,
    /// Kind of program that would trust the path: a stable code.
    pub kind: String,
    /// Reason, for a person.
    pub reason: String,
}

/// Position of a run in the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditSpan {
    /// Its first record.
    pub first: u64,
    /// Its last record.
    pub last: u64,
    /// Hash of the last record, in hexadecimal.
    pub head: String,
}

// === impl AgentFailure ===

impl AgentFailure {
    /// Creates an error from its codes and message.
    pub fn new(error: GraphErrorCode, code: &str, message: &str) -> Self {
        Self { error, code: code.to_owned(), message: message.to_owned() }
    }
}
