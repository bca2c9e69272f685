//! What is recorded of calls of tools: who, which tool, what was decided, and what came of it. Never
//! what a call has answered.

use super::{AgentKind, DomainCode};
use crate::access::AccessLevel;
use crate::action::{ActionType, Risk};
use crate::category::Category;
use crate::id::{AgentId, JobId, RunId, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The kind of event of a call that changes something and is about to be made.
pub const TOOL_BEGUN: &str = "tool_begun";

/// The kind of event of a call that is over, or was refused.
pub const TOOL_CALLED: &str = "tool_called";

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// This call; made by the host.
    pub call_id: Uuid,
    /// The name that was asked for; what is no name is cut and escaped.
    pub tool_name: String,
    /// Who asked.
    #[serde(flatten)]
    pub subject: ToolSubject,
    /// Whether it might.
    pub decision: ToolDecision,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// By what it was judged, where the caller is an agent with rules of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<JudgedRecord>,
    /// What came of it; nothing while it isn't over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// The class of its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<DomainCode>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The SHA-256 of its arguments as JSON, members in order of their names.
    pub arguments_sha256: String,
    /// The length of that JSON in bytes; 0 in records from before it was recorded.
    #[serde(default)]
    pub arguments_bytes: u64,
    /// Its arguments. `***` stands for secrets that the host knows, for tokens, and for values that the tool's schema marks as secret.
    pub arguments: Value,
    /// Whether `arguments` is only the beginning of their JSON, as a text, because there is much of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_preview: bool,
}

/// By what a call was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedRecord {
    /// The agent, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The level that counted.
    pub level: AccessLevel,
    /// What kind of thing the tool does.
    pub category: Category,
    /// What the agent does by it.
    pub action_type: ActionType,
    /// How much may go wrong by that.
    pub risk: Risk,
    /// Whether the tool leaves the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reaches_out: bool,
    /// The rule, by its name.
    pub rule: String,
    /// The rule, in words.
    pub reason: String,
    /// Which rules there were: the first digits of a digest of all of them, and of what the agent had earned.
    pub generation: String,
    /// The least that would have let it be done, as a configuration says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<String>,
    /// The person's yes that was asked for or used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    /// What looked like a secret in its answer: in how many places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_found: Option<u64>,
}

/// Who calls a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSubject {
    /// As what.
    pub subject_type: AgentKind,
    /// Under which name, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject_id: Option<String>,
    /// For whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// That user's groups.
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
    /// The attempt at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

/// Whether a call might be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDecision {
    /// It might.
    Allow,
    /// It might not.
    Deny,
    /// A person was asked.
    Escalate,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what it was for.
    Success,
    /// It didn't.
    Error,
    /// Whoever asked has gone, or the run is over.
    Cancelled,
}
