//! Why an agent's run failed, in the words of whoever executes graphs (`spec/2 §Graph Execution Flow`).

use super::envelope::AgentError;
use crate::once::OnceCode;
use belljar_contract::inference::{CallOutcome, CallRecord};
use serde::Serialize;

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What it means for whoever asked for the run.
    #[serde(rename = "error")]
    pub graph_code: GraphCode,
    /// What happened: a code of the run (`timeout`), or one that the agent gave (`llm_error`).
    pub code: String,
    /// The same for a person.
    pub message: String,
}

/// The codes that executors of graphs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

// === impl Failure ===

impl Failure {
    /// One of these.
    pub fn new(graph_code: GraphCode, code: &str, message: &str) -> Self {
        Self { graph_code, code: code.to_owned(), message: message.to_owned() }
    }

    /// A run that didn't come to a good end of its program.
    pub fn of_run(code: OnceCode, message: &str) -> Self {
        let graph_code = match code {
            OnceCode::Timeout => GraphCode::Timeout,
            OnceCode::OomKilled | OnceCode::DiskFull | OnceCode::Canceled => GraphCode::Aborted,
            OnceCode::Internal | OnceCode::ContainerFailed | OnceCode::OutputTruncated => GraphCode::Internal,
        };
        Self::new(graph_code, code.as_str(), message)
    }

    /// What an agent says of itself. What it says of a model is held against what the host has seen.
    pub fn of_agent(error: &AgentError, calls: &[CallRecord]) -> Self {
        let graph_code = match error.code.as_str() {
            "config_error" | "input_error" => GraphCode::InvalidRequest,
            "llm_error" => of_last_call(calls).unwrap_or(GraphCode::ProviderUnavailable),
            _ => GraphCode::Internal,
        };
        Self::new(graph_code, &error.code, &error.message)
    }

    /// An agent that ended with an exit code and without a reason. The last of its calls may be one.
    pub fn of_exit_code(exit_code: i32, calls: &[CallRecord]) -> Self {
        let graph_code = of_last_call(calls).unwrap_or(GraphCode::Internal);
        Self::new(graph_code, "agent_failed", &format!("the agent ended with exit code {exit_code}"))
    }
}

/// What a call that has failed means; nothing if the last one hasn't.
fn of_last_call(calls: &[CallRecord]) -> Option<GraphCode> {
    let last = calls.last()?;
    match (&last.outcome, last.upstream_status.or(last.status)) {
        (CallOutcome::Denied { reason }, _) if reason.as_str() == "budget_exceeded" => {
            Some(GraphCode::InsufficientCredits)
        }
        (CallOutcome::Denied { reason }, _) if reason.as_str() == "too_many_calls" => Some(GraphCode::RateLimit),
        (CallOutcome::Denied { .. }, _) => Some(GraphCode::InvalidRequest),
        (_, Some(402)) => Some(GraphCode::InsufficientCredits),
        (_, Some(408)) => Some(GraphCode::Timeout),
        (_, Some(429)) => Some(GraphCode::RateLimit),
        (CallOutcome::Failed { code }, _) if code.as_str() == "provider_timeout" => Some(GraphCode::Timeout),
        (CallOutcome::Failed { .. }, _) | (_, Some(500..)) => Some(GraphCode::ProviderUnavailable),
        _ => None,
    }
}

// === impl GraphCode ===

impl GraphCode {
    /// Its text, which is stable.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::NotFound => "not_found",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::RateLimit => "rate_limit",
            Self::Internal => "internal",
            Self::InsufficientCredits => "insufficient_credits",
            Self::ProviderUnavailable => "provider_unavailable",
        }
    }
}
