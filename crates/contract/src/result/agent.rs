//! Report of the agent in a sandbox (`docs/contracts/job.md#j3.3`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Report of a job's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentReport {
    /// Final answer; null if there is none.
    pub answer: Option<String>,
    /// True if it continued the todo list of an earlier run of the same job.
    pub resumed: bool,
    /// The models that have answered, in the order in which they were first asked.
    pub models: Vec<String>,
    /// Number of answers of models.
    pub turns: u32,
    /// Number of tool calls, failed ones included.
    pub tool_calls: u32,
    /// Number of failed tool calls.
    pub failed_tool_calls: u32,
    /// Prompt tokens, as the models report them; null once a model has not reported them.
    pub prompt_tokens: Option<u64>,
    /// Completion tokens, as the models report them; null once a model has not reported them.
    pub completion_tokens: Option<u64>,
    /// Final todo list.
    pub todo: Vec<TodoItem>,
    /// Verification of each acceptance criterion, in their order; empty if none was attempted.
    pub verification: Vec<CriterionVerification>,
}

// === impl AgentReport ===

impl Default for AgentReport {
    /// Returns the report of an agent that has done nothing yet.
    fn default() -> Self {
        Self {
            answer: None,
            resumed: false,
            models: Vec::new(),
            turns: 0,
            tool_calls: 0,
            failed_tool_calls: 0,
            prompt_tokens: Some(0),
            completion_tokens: Some(0),
            todo: Vec::new(),
            verification: Vec::new(),
        }
    }
}

/// A todo item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// Its number, which it keeps.
    pub id: u32,
    /// Title of the item.
    pub title: String,
    /// Status of the item.
    pub status: TodoStatus,
    /// Origin of the item.
    pub origin: TodoOrigin,
    /// Parent item, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<u32>,
    /// Reason for its status, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Status of a todo item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// The item is not started.
    Open,
    /// The item is in progress.
    InProgress,
    /// The item is done.
    Done,
    /// The item was dropped; `reason` gives the cause.
    Dropped,
}

/// Origin of a todo item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoOrigin {
    /// A requirement of the job.
    Requirement,
    /// An acceptance criterion of the job.
    AcceptanceCriterion,
    /// A step of the job.
    Step,
    /// The job's task, if nothing more specific is given.
    Task,
    /// The agent.
    Agent,
}

/// Verification of an acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CriterionVerification {
    /// The criterion's text.
    pub criterion: String,
    /// True if the criterion holds.
    pub met: bool,
    /// Verifier that decided.
    pub by: Verifier,
    /// Evidence: the end of the command's output and its exit code, or the model's statement; or the reason why there
    /// is no evidence.
    pub evidence: String,
}

/// Verifier of a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verifier {
    /// The criterion's own command.
    Command,
    /// A model: it may be wrong, or have been misled by what it has read.
    Model,
    /// No verifier: the criterion has no command, and the job has no model. Such a criterion is never met.
    Unverified,
}
