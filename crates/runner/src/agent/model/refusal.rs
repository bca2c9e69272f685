//! Refusals of models, and how they affect the choice of the next candidate.

use crate::http_client::{HttpError, HttpResponse};
use serde_json::Value;

/// Reason why a model's answer can't be used.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum UnusableReply {
    #[error("{status}{}", with_colon(.said))]
    Refused { status: u16, code: String, said: String },
    #[error("malformed answer")]
    Malformed {
        #[source]
        source: serde_json::Error,
    },
    #[error("an answer without a choice")]
    Empty,
    #[error(transparent)]
    NoAnswer(#[from] HttpError),
}

/// Reaction to a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// No model is asked any more: the budget is used up.
    Spent,
    /// A shorter request may succeed.
    Shorter,
    /// This candidate will never answer.
    Never,
    /// This candidate may answer later.
    Later,
}

/// Maximum number of characters of a refusal's message that are kept.
const EXCERPT: usize = 300;

// === impl UnusableReply ===

impl UnusableReply {
    /// Reads the refusal from an answer with an error status.
    pub(super) fn of(answer: &HttpResponse) -> Self {
        let body: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let texts = |pointers: &[&str]| {
            let found =
                body.as_ref().and_then(|body| pointers.iter().find_map(|at| body.pointer(at)?.as_str()));
            found.unwrap_or_default().chars().take(EXCERPT).collect::<String>()
        };
        Self::Refused {
            status: answer.status,
            code: texts(&["/error/code", "/code", "/error/type"]),
            said: texts(&["/error/message", "/message", "/error"]),
        }
    }

    /// Returns true if the refusal's message mentions that name.
    pub(super) fn speaks_of(&self, name: &str) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains(name))
    }

    /// Returns true if the host refused because concurrent calls of this run use up its allowance.
    pub(super) fn is_held_by_run(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if ["budget_reserved", "too_many_calls"].contains(&code.as_str()))
    }

    /// Returns true if the host has the model, but its provider doesn't accept calls by this route.
    pub(super) fn is_of_other_route(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "model_not_on_this_route")
    }

    pub(super) fn next(&self) -> RetryDecision {
        let Self::Refused { status, code, said } = self else { return RetryDecision::Later };
        const TOO_LONG: [&str; 4] = [
            "maximum context length",
            "prompt is too long",
            "exceeds the available context",
            "context window",
        ];
        let is_too_long = matches!(code.as_str(), "context_length_exceeded" | "exceed_context_size_error")
            || *status == 413
            || TOO_LONG.iter().any(|text| said.contains(text));
        match (code.as_str(), *status) {
            ("budget_exceeded" | "cost_unknown" | "audit_quota", _) => RetryDecision::Spent,
            // Only that provider's account is exhausted; another one may have credit left.
            ("insufficient_quota", _) => RetryDecision::Never,
            _ if is_too_long => RetryDecision::Shorter,
            (_, 408 | 409 | 425 | 429 | 500..) => RetryDecision::Later,
            _ => RetryDecision::Never,
        }
    }
}

fn with_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(status: u16, body: &str) -> RetryDecision {
        let body = body.as_bytes().to_vec();
        UnusableReply::of(&HttpResponse {
            status,
            retry_after: None,
            is_stream: false,
            session_id: None,
            body,
        })
        .next()
    }

    #[test]
    fn provider_refusals_are_classified_as_temporary_permanent_or_over_budget() {
        assert_eq!(next(429, r#"{"error": {"code": "too_many_calls"}}"#), RetryDecision::Later);
        assert_eq!(next(503, "busy"), RetryDecision::Later);
        assert_eq!(next(404, r#"{"error": {"code": "model_not_found"}}"#), RetryDecision::Never);
        assert_eq!(
            next(403, r#"{"error": "not allowed", "code": "model_not_allowed"}"#),
            RetryDecision::Never
        );
        assert_eq!(next(429, r#"{"error": {"code": "budget_exceeded"}}"#), RetryDecision::Spent);
        assert_eq!(next(403, r#"{"error": {"code": "cost_unknown"}}"#), RetryDecision::Spent);
        assert_eq!(next(403, r#"{"error": {"code": "audit_quota"}}"#), RetryDecision::Spent);
        assert_eq!(next(400, r#"{"error": {"code": "context_length_exceeded"}}"#), RetryDecision::Shorter);
    }
}
