//! The runner's log: one JSON object a line (`docs/contracts/draft.md#d9`).

use crate::failure::FailureCode;
use crate::job::step::StepType;
use crate::result::{JobStatus, ResourceUsage, StepStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Time at which it was written (UTC).
    pub at: Timestamp,
    /// The job's id, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Event that occurred.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The job was read and found sound; its steps begin.
    JobStarted {
        /// Number of steps.
        steps: usize,
    },
    /// A step begins.
    StepStarted {
        /// Its place in the job, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// Its type.
        #[serde(rename = "type")]
        step_type: StepType,
    },
    /// A step is running; written a few times a second at most, and only if requested.
    StepProgress {
        /// Its place in the job, from 0.
        index: usize,
        /// Last line of output, truncated.
        last_line: String,
    },
    /// A step ended.
    StepFinished {
        /// Its place in the job, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// Outcome of the step.
        status: StepStatus,
        /// Duration, in milliseconds.
        duration_ms: u64,
        /// True if any of its output was truncated.
        truncated: bool,
        /// Resources that it used.
        resource_usage: ResourceUsage,
        /// Reason of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure_code: Option<FailureCode>,
    },
    /// A model has answered the agent.
    ModelAnswered {
        /// Number of the agent's turn, from 1.
        turn: u32,
        /// The model.
        model: String,
        /// Tokens of the prompt, as the model reports them; null if it doesn't.
        prompt_tokens: Option<u64>,
        /// Tokens of the completion, as the model reports them; null if it doesn't.
        completion_tokens: Option<u64>,
    },
    /// A tool that the agent has called is done.
    ToolFinished {
        /// Number of the agent's turn, from 1.
        turn: u32,
        /// The tool.
        tool: String,
        /// Outcome of the call.
        status: StepStatus,
        /// Duration, in milliseconds.
        duration_ms: u64,
    },
    /// The result is written.
    JobFinished {
        /// Outcome of the job.
        status: JobStatus,
        /// Reason of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure_code: Option<FailureCode>,
        /// Duration, in milliseconds.
        duration_ms: u64,
        /// Resources that it used.
        resource_usage: ResourceUsage,
    },
    /// Something an operator should know.
    Warning {
        /// Message.
        message: String,
    },
}
