//! What an answer that is none means for who is asked next.

use crate::http_client::{Answer, NoAnswer};
use serde_json::Value;

/// Why a model's answer is of no use.
#[derive(Debug, thiserror::Error)]
pub(in crate::agent) enum Unusable {
    #[error("{status}{}", with_colon(.said))]
    Refused { status: u16, code: String, said: String },
    #[error("an answer that can't be read")]
    Malformed {
        #[source]
        source: serde_json::Error,
    },
    #[error("an answer without a choice")]
    Empty,
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Nobody is asked any more: all that may be spent is spent.
    Spent,
    /// The same can be asked with less.
    Shorter,
    /// This one will never answer.
    Never,
    /// This one may answer later.
    Later,
}

/// So much of what a refusal says is passed on.
const EXCERPT: usize = 300;

// === impl Unusable ===

impl Unusable {
    /// Of a status that is no success.
    pub(super) fn of(answer: &Answer) -> Self {
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

    /// Whether it is refused for something of that name.
    pub(super) fn speaks_of(&self, name: &str) -> bool {
        matches!(self, Self::Refused { said, .. } if said.contains(name))
    }

    /// Returns true if the host refused because other calls of this run use what the run may use at once.
    pub(super) fn is_held_by_run(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if ["budget_reserved", "too_many_calls"].contains(&code.as_str()))
    }

    /// Whether the host has the model, and its provider doesn't take calls by this way.
    pub(super) fn is_of_other_route(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "model_not_on_this_route")
    }

    pub(super) fn next(&self) -> Next {
        let Self::Refused { status, code, said } = self else { return Next::Later };
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
            ("budget_exceeded" | "cost_unknown" | "audit_quota", _) => Next::Spent,
            // That is one provider's account, and another may have some left.
            ("insufficient_quota", _) => Next::Never,
            _ if is_too_long => Next::Shorter,
            (_, 408 | 409 | 425 | 429 | 500..) => Next::Later,
            _ => Next::Never,
        }
    }
}

fn with_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(status: u16, body: &str) -> Next {
        let body = body.as_bytes().to_vec();
        Unusable::of(&Answer { status, retry_after: None, is_stream: false, session_id: None, body }).next()
    }

    #[test]
    fn who_may_answer_later_is_told_from_who_never_will() {
        assert_eq!(next(429, r#"{"error": {"code": "too_many_calls"}}"#), Next::Later);
        assert_eq!(next(503, "busy"), Next::Later);
        assert_eq!(next(404, r#"{"error": {"code": "model_not_found"}}"#), Next::Never);
        assert_eq!(next(403, r#"{"error": "not allowed", "code": "model_not_allowed"}"#), Next::Never);
        assert_eq!(next(429, r#"{"error": {"code": "budget_exceeded"}}"#), Next::Spent);
        assert_eq!(next(403, r#"{"error": {"code": "cost_unknown"}}"#), Next::Spent);
        assert_eq!(next(403, r#"{"error": {"code": "audit_quota"}}"#), Next::Spent);
        assert_eq!(next(400, r#"{"error": {"code": "context_length_exceeded"}}"#), Next::Shorter);
    }
}
