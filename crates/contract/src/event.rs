//! The runner's log: one JSON object a line (`spec/5 §9`).

use crate::failure::FailureCode;
use crate::job::step::StepType;
use crate::result::{JobStatus, ResourceUsage, StepStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was written (UTC).
    pub at: Timestamp,
    /// The job's id, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The job was read and found sound; its steps begin.
    JobStarted {
        /// How many steps it has.
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
    /// A step is at work; written a few times a second at most, and only when asked for.
    StepProgress {
        /// Its place in the job, from 0.
        index: usize,
        /// The last line it wrote, cut for length.
        last_line: String,
    },
    /// A step ended.
    StepFinished {
        /// Its place in the job, from 0.
        index: usize,
        /// Its id.
        id: String,
        /// How it ended.
        status: StepStatus,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// Whether any of its output was cut.
        truncated: bool,
        /// What it used.
        resource_usage: ResourceUsage,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure_code: Option<FailureCode>,
    },
    /// A model has answered the agent.
    ModelAnswered {
        /// Which of the agent's turns it was, from 1.
        turn: u32,
        /// The model.
        model: String,
        /// What it was sent, in tokens, as it says itself; null if it doesn't.
        prompt_tokens: Option<u64>,
        /// What it has said, in tokens, as it says itself; null if it doesn't.
        completion_tokens: Option<u64>,
    },
    /// A tool that the agent has called is done.
    ToolFinished {
        /// Which of the agent's turns it was, from 1.
        turn: u32,
        /// The tool.
        tool: String,
        /// How it ended.
        status: StepStatus,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// The result is written.
    JobFinished {
        /// How the job ended.
        status: JobStatus,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure_code: Option<FailureCode>,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// What it used.
        resource_usage: ResourceUsage,
    },
    /// Something an operator should know.
    Warning {
        /// What.
        message: String,
    },
}
