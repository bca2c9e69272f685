//! What came of an agent's run, as programs read it (`spec/2 §Graph Execution Flow`, `GraphFinal`).

use crate::egress::WebUsage;
use crate::id::RunId;
use crate::result::{ChangedFile, ChangesState};
use crate::usage::{UsageReport, UsageTotals};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What came of an agent's run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentResult {
    /// The run.
    pub run_id: RunId,
    /// The agent's name.
    pub agent: String,
    /// What was run, such as `sandbox:codex`.
    pub graph_id: String,
    /// Whether the agent ended well.
    pub ok: bool,
    /// How it ended.
    pub finish_reason: FinishReason,
    /// Why it failed; null if it didn't.
    pub failure: Option<AgentFailure>,
    /// What it has answered.
    pub content: String,
    /// Its program's exit code, 128 and the signal that ended it, or -1 where it didn't come to that.
    pub exit_code: i32,
    /// What it printed to standard output; what is not UTF-8 is replaced.
    pub stdout: String,
    /// The same of standard error.
    pub stderr: String,
    /// Whether something that it printed was dropped.
    pub output_truncated: bool,
    /// What each call of a model has used.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub usage: Vec<UsageReport>,
    /// What they have used together.
    pub totals: UsageTotals,
    /// Calls that are in the audit alone.
    pub unlisted_calls: u64,
    /// The files that it changed.
    pub files: Vec<ChangedFile>,
    /// How, as a unified diff.
    pub diff: String,
    /// Whether there is more of these than is shown.
    pub diff_truncated: bool,
    /// What became of its changes.
    pub changes: AgentChanges,
    /// The directory in which they are kept, if they are.
    pub kept_in: Option<String>,
    /// What it has had of the web, if it might reach any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebUsage>,
    /// What became of the branch that they were to be; null where none was asked for, or it didn't come to that.
    pub push: Option<AgentPush>,
    /// Where the run is in the audit; null if not all of it could be recorded.
    pub audit: Option<AuditSpan>,
    /// How long it took.
    pub duration_ms: u64,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The agent had no more to say.
    Stop,
    /// It failed.
    Error,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentFailure {
    /// What it means for whoever asked for the run.
    pub error: GraphCode,
    /// What happened: a code of the run, such as `timeout`, or one that the agent gave, such as `llm_error`.
    pub code: String,
    /// The same for a person.
    pub message: String,
}

/// The codes that executors of graphs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphCode {
    /// What was asked for can't be done.
    InvalidRequest,
    /// There is no such agent.
    NotFound,
    /// It took too long.
    Timeout,
    /// It was stopped: by somebody, or for want of memory or room.
    Aborted,
    /// The provider wants fewer calls.
    RateLimit,
    /// Anything else.
    Internal,
    /// The budget is used up.
    InsufficientCredits,
    /// The provider doesn't answer.
    ProviderUnavailable,
}

/// What became of an agent's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentChanges {
    /// The id under which they are kept (`belljar changes`); null if they are not.
    pub id: Option<RunId>,
    /// What became of them.
    pub state: ChangesState,
    /// Paths that were not applied because the source was changed there since the copy was made.
    pub conflicts: Vec<String>,
    /// Paths of the source that something else than this run changed since the copy was made. A directory in which a
    /// name was added or removed ends with a slash.
    pub changed_in_source: Vec<String>,
}

/// A branch that an agent's changes were to be (`belljar agent --push`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentPush {
    /// `pushed`, `already_there`, `nothing_to_push`, `refused`, `taken` or `failed`.
    pub outcome: String,
    /// Why it isn't there: a stable code; null where it is.
    pub reason: Option<String>,
    /// Where.
    pub remote: String,
    /// The branch.
    pub branch: String,
    /// The commit; null where it didn't come to one.
    pub commit: Option<String>,
    /// Paths that were not pushed, as they are repositories, in the place of submodules, or no files. They stay with the kept changes.
    pub left_out: Vec<String>,
    /// Paths that were not pushed, as the commit that was cloned ignores them; a directory stands for all that is in it. They stay
    /// with the kept changes.
    pub ignored: Vec<String>,
    /// Paths that take a yes which nobody has said.
    pub handoff: Vec<AgentHandoff>,
    /// The pull request; null where none was asked for, or nothing was pushed.
    pub pull_request: Option<AgentPullRequest>,
}

/// A pull request for such a branch (`belljar agent --push --pr`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentPullRequest {
    /// `opened`, `already_open` or `failed`.
    pub outcome: String,
    /// Why there is none: a stable code; null where there is.
    pub reason: Option<String>,
    /// Where people see it; null where there is none.
    pub url: Option<String>,
    /// The branch that it is to get into.
    pub base: String,
}

/// A path that takes somebody's yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentHandoff {
    /// The path.
    pub path: String,
    /// Who would trust it: a stable code.
    pub kind: String,
    /// Why, for a person.
    pub reason: String,
}

/// Where a run is in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AuditSpan {
    /// Its first record.
    pub first: u64,
    /// Its last record.
    pub last: u64,
    /// The hash of that, in hexadecimal.
    pub head: String,
}

// === impl AgentFailure ===

impl AgentFailure {
    /// One of these.
    pub fn new(error: GraphCode, code: &str, message: &str) -> Self {
        Self { error, code: code.to_owned(), message: message.to_owned() }
    }
}
