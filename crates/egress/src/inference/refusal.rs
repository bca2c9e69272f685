//! Refusals of calls, in the format of the client's API.

use super::models::{Model, ProviderKind};
use crate::client::RequestFault;
use crate::upstream::{AnswerError, ConnectError};
use belljar_contract::inference::{ApiDialect, Excerpt};
use serde_json::{Value, json};

/// Reason why a call isn't made or has no answer. The text is for programs in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("malformed request: {0}")]
    Malformed(crate::http1::MalformedHttp),
    #[error("the request's head is larger than {} bytes", crate::http1::limits::REQUEST_HEAD_BYTES)]
    HeadTooLarge,
    #[error("the request's body is larger than {most} bytes")]
    BodyTooLarge { most: usize },
    #[error("the request took too long to arrive")]
    TooSlow,
    #[error("there is no endpoint {} {}", method.as_str(), path.as_str())]
    NotFound { method: Excerpt, path: Excerpt },
    #[error("the body is not an acceptable JSON object: {}", why.as_str())]
    NotJson { why: Excerpt },
    #[error("`model` must be a string with the name of a model")]
    NoModel,
    #[error("the model {:?} is not allowed in this run; allowed are: {}", asked.as_str(), allowed.join(", "))]
    ModelNotAllowed { asked: Excerpt, allowed: Vec<String> },
    #[error("the model {:?} can't be called at {path}: its provider accepts calls at {instead}", model.as_str())]
    WrongSurface { model: Excerpt, path: &'static str, instead: &'static str },
    #[error("`{}` is not allowed: {why}", member.as_str())]
    Forbidden { member: Excerpt, why: &'static str },
    #[error("this run's budget of {what} is used up")]
    BudgetExceeded { what: &'static str },
    #[error(
        "{left} tokens are left of this run's budget, and this call may take {least}: send less, or ask for fewer choices"
    )]
    BudgetTooSmall { left: u64, least: u64 },
    #[error(
        "${} is left of this run's budget, and this call may cost ${}: send less, or ask for fewer choices",
        dollars(*left), dollars(*least)
    )]
    CostTooSmall { left: u64, least: u64 },
    #[error(
        "{most} calls of this run have ended without a reported cost, no price is stated for this model in the \
         configuration, and cost is limited: state its `price`, or have its provider report costs"
    )]
    CostUnknown { most: u64 },
    #[error(
        "what is left of this run's budget of {what} is reserved for calls under way: try again when they have ended"
    )]
    BudgetReserved { what: &'static str },
    #[error("this run has {most} calls under way already")]
    TooManyCalls { most: usize },
    #[error("the host has no credential for this model's provider")]
    NoCredential,
    #[error("this model's provider can't be reached")]
    Unreachable,
    #[error("the identity of this model's provider can't be verified")]
    Untrusted,
    #[error(
        "this model's provider is served by another user of the host, who isn't shown its credential: the host's \
         configuration can name that `user` beside the provider's `url`"
    )]
    OtherUser,
    #[error("the provider's hostname resolves to a forbidden address")]
    Misled,
    #[error("this model's provider did not answer in time")]
    OutOfTime,
    #[error("this model's provider sent a malformed answer")]
    BadAnswer,
    #[error("this model's provider answered with {status}, and its answer can't be forwarded")]
    Withheld { status: u16 },
    #[error("the audit records of this run have reached their quota, so no further call is made")]
    AuditQuota,
    #[error("calls can't be recorded at present, so none are made")]
    NotRecorded,
}

// === impl Refusal ===

impl From<ConnectError> for Refusal {
    /// Keeps only the kind of the error: its details reveal something about the host and the provider's address.
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Unreachable { .. } => Self::Unreachable,
            ConnectError::Forbidden => Self::Misled,
            ConnectError::OtherUser { .. } => Self::OtherUser,
            ConnectError::Untrusted { .. } | ConnectError::NoTrust { .. } => Self::Untrusted,
        }
    }
}

impl From<RequestFault> for Refusal {
    fn from(fault: RequestFault) -> Self {
        match fault {
            RequestFault::Malformed(malformed) => Self::Malformed(malformed),
            RequestFault::HeadTooLarge { .. } => Self::HeadTooLarge,
            RequestFault::BodyTooLarge { most } => Self::BodyTooLarge { most },
            RequestFault::TooSlow => Self::TooSlow,
        }
    }
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Ended(_) | AnswerError::Malformed(_) | AnswerError::TooLarge => Self::BadAnswer,
            AnswerError::Silent => Self::OutOfTime,
        }
    }
}

impl Refusal {
    /// Refusal of a path that the model's provider doesn't understand.
    pub(crate) fn wrong_surface(model: &Model, path: &'static str) -> Self {
        let instead = match model.provider.kind {
            ProviderKind::LiteLlm => "/v1/chat/completions and /v1/messages",
            ProviderKind::OpenAi => "/v1/chat/completions",
            ProviderKind::Anthropic => "/v1/messages",
            ProviderKind::Ollama => "/api/chat and /v1/chat/completions",
        };
        Self::WrongSurface { model: Excerpt::of(&model.name), path, instead }
    }

    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        Self::NotJson { why: Excerpt::of(&error.to_string()) }
    }

    /// Stable code for programs and records.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_request",
            Self::HeadTooLarge => "request_head_too_large",
            Self::BodyTooLarge { .. } => "request_body_too_large",
            Self::TooSlow => "request_timeout",
            Self::NotFound { .. } => "not_found",
            Self::NotJson { .. } => "invalid_body",
            Self::NoModel => "model_missing",
            Self::ModelNotAllowed { .. } => "model_not_allowed",
            Self::WrongSurface { .. } => "model_not_on_this_route",
            Self::Forbidden { .. } => "member_not_allowed",
            Self::BudgetExceeded { .. } | Self::BudgetTooSmall { .. } => "budget_exceeded",
            Self::CostTooSmall { .. } => "budget_exceeded",
            Self::CostUnknown { .. } => "cost_unknown",
            Self::BudgetReserved { .. } => "budget_reserved",
            Self::TooManyCalls { .. } => "too_many_calls",
            Self::NoCredential => "credential_unavailable",
            Self::Unreachable => "provider_unreachable",
            Self::Untrusted => "provider_untrusted",
            Self::OtherUser => "provider_of_other_user",
            Self::Misled => "provider_address_refused",
            Self::OutOfTime => "provider_timeout",
            Self::BadAnswer => "provider_answer_malformed",
            Self::Withheld { .. } => "provider_answer_withheld",
            Self::AuditQuota => "audit_quota",
            Self::NotRecorded => "audit_unavailable",
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Malformed(_) | Self::NotJson { .. } | Self::NoModel | Self::WrongSurface { .. } => 400,
            Self::Forbidden { .. } => 400,
            Self::ModelNotAllowed { .. } | Self::AuditQuota | Self::CostUnknown { .. } => 403,
            Self::NotFound { .. } => 404,
            Self::TooSlow => 408,
            Self::BodyTooLarge { .. } => 413,
            Self::BudgetExceeded { .. } | Self::BudgetTooSmall { .. } | Self::CostTooSmall { .. } => 429,
            Self::BudgetReserved { .. } | Self::TooManyCalls { .. } => 429,
            Self::HeadTooLarge => 431,
            Self::Unreachable | Self::Untrusted | Self::OtherUser | Self::Misled => 502,
            Self::NoCredential | Self::BadAnswer | Self::Withheld { .. } => 502,
            Self::NotRecorded => 503,
            Self::OutOfTime => 504,
        }
    }

    /// Returns true if the provider was asked or could have been: the call has failed then. Otherwise it was denied.
    pub(crate) fn is_providers(&self) -> bool {
        matches!(self.status(), 502 | 504)
    }

    /// Returns true if the connection can be used further, because the end of the request is known.
    pub(crate) fn keeps_alive(&self) -> bool {
        !matches!(self, Self::Malformed(_) | Self::HeadTooLarge | Self::BodyTooLarge { .. } | Self::TooSlow)
    }

    /// Returns the body in the format of that client's API.
    pub(crate) fn body(&self, surface: ApiDialect) -> String {
        let (message, code, kind) = (self.to_string(), self.code(), self.kind());
        let body: Value = match surface {
            ApiDialect::Openai => {
                json!({"error": {"message": message, "type": kind, "param": self.member(), "code": code}})
            }
            ApiDialect::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message, "code": code}})
            }
            ApiDialect::Ollama => json!({"error": message, "code": code}),
        };
        body.to_string()
    }

    /// Returns the error class. Both OpenAI's and Anthropic's clients distinguish these.
    fn kind(&self) -> &'static str {
        match self.status() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }

    fn member(&self) -> Option<&str> {
        match self {
            Self::NoModel | Self::ModelNotAllowed { .. } | Self::WrongSurface { .. } => Some("model"),
            Self::Forbidden { member, .. } => Some(member.as_str()),
            _ => None,
        }
    }
}

/// Formats millionths of a dollar as dollars.
fn dollars(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
