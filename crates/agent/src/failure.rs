//! Maps failures of an agent's run to graph codes (`docs/contracts/agents.md#a5.4`).

use super::envelope::AgentError;
use belljar_contract::agent::{AgentFailure, GraphErrorCode};
use belljar_contract::inference::{CallOutcome, CallRecord};
use belljar_execution::run_once::OnceCode;

/// Returns the failure of a run whose error code is set.
pub fn of_run(code: OnceCode, message: &str) -> AgentFailure {
    let graph_code = match code {
        OnceCode::Timeout => GraphErrorCode::Timeout,
        OnceCode::OomKilled | OnceCode::DiskFull | OnceCode::Canceled => GraphErrorCode::Aborted,
        OnceCode::Internal | OnceCode::ContainerFailed | OnceCode::OutputTruncated => {
            GraphErrorCode::Internal
        }
    };
    AgentFailure::new(graph_code, code.as_str(), message)
}

/// Returns the failure that an agent reports. An `llm_error` is checked against the recorded calls.
pub fn of_agent(error: &AgentError, calls: &[CallRecord]) -> AgentFailure {
    let graph_code = match error.code.as_str() {
        "config_error" | "input_error" => GraphErrorCode::InvalidRequest,
        "llm_error" => of_last_call(calls).unwrap_or(GraphErrorCode::ProviderUnavailable),
        _ => GraphErrorCode::Internal,
    };
    AgentFailure::new(graph_code, &error.code, &error.message)
}

/// Returns the failure of an agent that exited with a code and without a reason. Its last call may have the reason.
pub fn of_exit_code(exit_code: i32, calls: &[CallRecord]) -> AgentFailure {
    let graph_code = of_last_call(calls).unwrap_or(GraphErrorCode::Internal);
    AgentFailure::new(graph_code, "agent_failed", &format!("the agent ended with exit code {exit_code}"))
}

/// Returns the meaning of the last call's failure; `None` if it hasn't failed.
fn of_last_call(calls: &[CallRecord]) -> Option<GraphErrorCode> {
    let last = calls.last()?;
    match (&last.outcome, last.upstream_status.or(last.status)) {
        (CallOutcome::Denied { reason }, _)
            if ["budget_exceeded", "cost_unknown"].contains(&reason.as_str()) =>
        {
            Some(GraphErrorCode::InsufficientCredits)
        }
        (CallOutcome::Denied { reason }, _) if reason.as_str() == "too_many_calls" => {
            Some(GraphErrorCode::RateLimit)
        }
        (CallOutcome::Denied { .. }, _) => Some(GraphErrorCode::InvalidRequest),
        (_, Some(402)) => Some(GraphErrorCode::InsufficientCredits),
        (_, Some(408)) => Some(GraphErrorCode::Timeout),
        (_, Some(429)) => Some(GraphErrorCode::RateLimit),
        (CallOutcome::Failed { code }, _) if code.as_str() == "provider_timeout" => {
            Some(GraphErrorCode::Timeout)
        }
        (CallOutcome::Failed { .. }, _) | (_, Some(500..)) => Some(GraphErrorCode::ProviderUnavailable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::id::{CallId, RunId};
    use belljar_contract::inference::{ApiDialect, Excerpt, ProviderKind, ReasonCode, Route};

    fn call(outcome: CallOutcome, status: u16) -> CallRecord {
        let id = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
        CallRecord {
            call_id: CallId::parse(id).unwrap(),
            run_id: RunId::parse(id).unwrap(),
            attempt: 0,
            billing_account_id: Excerpt::of("local"),
            graph_id: Excerpt::of("sandbox:codex"),
            started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            route: Route { method: Excerpt::of("POST"), path: Excerpt::of("/v1/responses") },
            surface: ApiDialect::Openai,
            model_asked: None,
            model_used: None,
            provider: Some(Excerpt::of("house")),
            provider_kind: Some(ProviderKind::LiteLlm),
            status: Some(status),
            upstream_status: matches!(outcome, CallOutcome::Completed).then_some(status),
            outcome,
            request_bytes: 0,
            response_bytes: 0,
            first_byte_ms: None,
            total_ms: 0,
            usage: None,
            upstream_request_id: None,
            is_streamed: false,
        }
    }

    #[test]
    fn failed_model_call_determines_the_agent_failure() {
        let reason = |code: &str| ReasonCode::parse(code).unwrap();
        let denied = |code: &str| CallOutcome::Denied { reason: reason(code) };
        let failed = |code: &str| CallOutcome::Failed { code: reason(code) };
        let cases = [
            (call(CallOutcome::Completed, 200), "internal", "provider_unavailable"),
            (call(CallOutcome::Completed, 429), "rate_limit", "rate_limit"),
            (call(CallOutcome::Completed, 402), "insufficient_credits", "insufficient_credits"),
            (call(CallOutcome::Completed, 408), "timeout", "timeout"),
            (call(CallOutcome::Completed, 503), "provider_unavailable", "provider_unavailable"),
            (call(denied("budget_exceeded"), 429), "insufficient_credits", "insufficient_credits"),
            (call(denied("cost_unknown"), 403), "insufficient_credits", "insufficient_credits"),
            (call(denied("too_many_calls"), 429), "rate_limit", "rate_limit"),
            (call(denied("model_not_allowed"), 403), "invalid_request", "invalid_request"),
            (call(failed("provider_timeout"), 504), "timeout", "timeout"),
            (call(failed("provider_unreachable"), 502), "provider_unavailable", "provider_unavailable"),
        ];
        let said = AgentError { code: "llm_error".to_owned(), message: String::new() };
        let text = |failure: AgentFailure| serde_json::to_value(failure.error).unwrap();
        for (last, of_exit, of_error) in cases {
            let calls = [call(CallOutcome::Completed, 500), last];
            assert_eq!(text(of_exit_code(1, &calls)), of_exit, "{calls:?}");
            assert_eq!(text(of_agent(&said, &calls)), of_error, "{calls:?}");
        }
    }
}
