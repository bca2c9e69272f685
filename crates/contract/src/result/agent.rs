//! What the agent inside has done (`spec/1 §Todo List`, `§Result Contract`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the agent has done, of a job that had one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentReport {
    /// What it says in the end; null if it didn't come to that.
    pub answer: Option<String>,
    /// Whether it went on from the todo list of an earlier run of the same job.
    pub resumed: bool,
    /// The models that have answered, in the order in which they were first asked.
    pub models: Vec<String>,
    /// Answers of models.
    pub turns: u32,
    /// Tools that were called, and how many of the calls failed.
    pub tool_calls: u32,
    /// See `tool_calls`.
    pub failed_tool_calls: u32,
    /// What the models say they were sent, in tokens; null once one has not said it.
    pub prompt_tokens: Option<u64>,
    /// What the models say they have said, in tokens; null once one has not said it.
    pub completion_tokens: Option<u64>,
    /// The todo list as it was in the end.
    pub todo: Vec<TodoItem>,
    /// What was found of each acceptance criterion, in their order; empty if it didn't come to that.
    pub verification: Vec<Verified>,
}

// === impl AgentReport ===

impl Default for AgentReport {
    /// That of an agent that has done nothing yet.
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

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// Its number, which it keeps.
    pub id: u32,
    /// What is to be done.
    pub title: String,
    /// How far it is.
    pub status: TodoStatus,
    /// Where it comes from.
    pub origin: TodoOrigin,
    /// The item that it is a part of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<u32>,
    /// Why it is as it is, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far something is that is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Nothing of it is done.
    Open,
    /// It is being worked at.
    InProgress,
    /// It is done.
    Done,
    /// It is not to be done after all; `reason` says why.
    Dropped,
}

/// Where something comes from that is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoOrigin {
    /// A requirement of the job.
    Requirement,
    /// An acceptance criterion of the job.
    AcceptanceCriterion,
    /// A step of the job.
    Step,
    /// The job's task, where it says no more than that.
    Task,
    /// The agent.
    Agent,
}

/// What was found of one acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// The criterion's text.
    pub criterion: String,
    /// Whether it holds.
    pub met: bool,
    /// Who says so.
    pub by: Verifier,
    /// What shows it: the end of the command's output and its exit code, or what the model has said; or why nothing shows it.
    pub evidence: String,
}

/// Who says whether a criterion holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verifier {
    /// The criterion's own command.
    Command,
    /// A model: it may be wrong, or have been misled by what it has read.
    Model,
    /// Nothing: the criterion has no command, and the job has no model. Such a criterion is never met.
    Unverified,
}
