//! Audit records of tool calls: the caller, the tool, the decision, and the outcome; never the answer.

use super::{AgentKind, DomainCode};
use crate::access::AccessLevel;
use crate::action::{ActionType, Risk};
use crate::category::Category;
use crate::id::{AgentId, JobId, RunId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// Kind of the audit record that precedes a call that changes something.
pub const TOOL_BEGUN: &str = "tool_begun";

/// Kind of the audit record of a call that is over, or was denied.
pub const TOOL_CALLED: &str = "tool_called";

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// This call; made by the host.
    pub call_id: Uuid,
    /// Requested name; a text that is no name is truncated and escaped.
    pub tool_name: String,
    /// Caller of the tool.
    #[serde(flatten)]
    pub subject: ToolSubject,
    /// Decision about the call.
    pub decision: ToolDecision,
    /// Reason of a denial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// Judgement of the call, if the caller is an agent with rules of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<JudgementRecord>,
    /// Outcome of the call; absent while it is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// The class of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<DomainCode>,
    /// Duration, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The SHA-256 of its arguments as JSON, members in order of their names.
    pub arguments_sha256: String,
    /// The length of that JSON in bytes; 0 in records from before it was recorded.
    #[serde(default)]
    pub arguments_bytes: u64,
    /// Its arguments. `***` stands for secrets that the host knows, for tokens, and for values that the tool's schema marks as secret.
    pub arguments: Value,
    /// True if `arguments` is only the beginning of their JSON, as a text, because they are long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_preview: bool,
}

/// Judgement of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgementRecord {
    /// The agent, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Access level that applied.
    pub level: AccessLevel,
    /// Category of the tool.
    pub category: Category,
    /// Action of the call.
    pub action_type: ActionType,
    /// Risk of the action.
    pub risk: Risk,
    /// True if the tool reaches destinations outside of the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reaches_out: bool,
    /// Name of the rule.
    pub rule: String,
    /// Explanation of the rule.
    pub reason: String,
    /// Version of the rules: the first digits of a digest of all rules, and of the agent's earned trust.
    pub generation: String,
    /// Smallest change of the configuration that would have allowed the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<String>,
    /// Approval that was requested or used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    /// Number of places in the answer that looked like a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_found: Option<u64>,
}

/// Caller of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSubject {
    /// Kind of caller.
    pub subject_type: AgentKind,
    /// Name of the caller, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// User that the caller acts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Groups of that user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_ids: Vec<String>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// The job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<JobId>,
    /// Run that attempts the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// Decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDecision {
    /// The call was allowed.
    Allow,
    /// The call was denied.
    Deny,
    /// A person was asked.
    Escalate,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The call succeeded.
    Success,
    /// The call failed.
    Error,
    /// The caller has disconnected, or the run has ended.
    Cancelled,
}
