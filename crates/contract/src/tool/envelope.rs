//! The answer of a tool (`docs/contracts/tools.md#t12.4`, `docs/contracts/tools.md#t12.5`).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// Answer of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum Envelope {
    /// The call has succeeded.
    Ok {
        /// Result; always present.
        data: Value,
        /// Position of this part in a list.
        #[serde(skip_serializing_if = "Option::is_none")]
        pagination: Option<Pagination>,
        /// Secrets that were removed from `data`, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<RedactionReport>,
    },
    /// The call has failed.
    Error {
        /// Type of the error, for people who search for it.
        error_type: Cow<'static, str>,
        /// Error message, without anything that looks like a secret.
        message: String,
        /// Class of the error, for programs.
        domain_code: DomainCode,
    },
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pagination {
    /// Total number of entries.
    pub total: usize,
    /// Number of entries before this part.
    pub offset: usize,
    /// Maximum number of entries in this part.
    pub limit: usize,
}

/// Secrets that were removed from an answer. `***` stands in place of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedactionReport {
    /// Number of texts that contained a secret.
    pub texts: u64,
    /// JSON pointers to the first of them, within `data`.
    pub at: Vec<String>,
    /// Explanation for the caller.
    pub notice: Cow<'static, str>,
}

/// The class of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DomainCode {
    /// An argument is not what the tool takes.
    InvalidArgument,
    /// An irreversible action lacks a required confirmation.
    GuardrailViolated,
    /// No backend supports the call.
    NotSupported,
    /// The named object doesn't exist, or not for this caller.
    NotFound,
    /// The object's state is not the one that the caller expects.
    Conflict,
    /// The caller lacks the permission.
    PermissionDenied,
    /// The call needs a person's approval.
    ApprovalRequired,
    /// A limit of size, number or time is exceeded.
    LimitExceeded,
    /// A required service can't be reached now.
    Unavailable,
    /// A tool that others have made has failed.
    ToolFailed,
    /// The host has failed.
    Internal,
}

// === impl DomainCode ===

impl DomainCode {
    /// All codes.
    pub const ALL: [Self; 11] = [
        Self::InvalidArgument,
        Self::GuardrailViolated,
        Self::NotSupported,
        Self::NotFound,
        Self::Conflict,
        Self::PermissionDenied,
        Self::ApprovalRequired,
        Self::LimitExceeded,
        Self::Unavailable,
        Self::ToolFailed,
        Self::Internal,
    ];

    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::GuardrailViolated => "guardrail_violated",
            Self::NotSupported => "not_supported",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::PermissionDenied => "permission_denied",
            Self::ApprovalRequired => "approval_required",
            Self::LimitExceeded => "limit_exceeded",
            Self::Unavailable => "unavailable",
            Self::ToolFailed => "tool_failed",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for DomainCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, to_value};

    #[test]
    fn envelope_always_has_data_and_pagination_only_for_lists() {
        let none = Envelope::Ok { data: Value::Null, pagination: None, redacted: None };
        assert_eq!(to_value(none).unwrap(), json!({ "status": "ok", "data": null }));
        let pagination = Some(Pagination { total: 9, offset: 3, limit: 1 });
        let page = Envelope::Ok { data: json!([1]), pagination, redacted: None };
        assert_eq!(
            to_value(page).unwrap(),
            json!({ "status": "ok", "data": [1], "pagination": { "total": 9, "offset": 3, "limit": 1 } })
        );
    }

    #[test]
    fn envelope_reports_redactions_beside_data() {
        let redacted = RedactionReport { texts: 1, at: vec!["/text".to_owned()], notice: "gone".into() };
        let envelope =
            Envelope::Ok { data: json!({ "text": "***" }), pagination: None, redacted: Some(redacted) };
        let written = to_value(&envelope).unwrap();
        assert_eq!(written["redacted"], json!({ "texts": 1, "at": ["/text"], "notice": "gone" }));
        assert_eq!(serde_json::from_value::<Envelope>(written).unwrap(), envelope);
    }

    #[test]
    fn error_envelope_has_type_message_and_domain_code() {
        let error = Envelope::Error {
            error_type: "ArgumentValidationError".into(),
            message: "no".to_owned(),
            domain_code: DomainCode::InvalidArgument,
        };
        let written = to_value(&error).unwrap();
        let expected = json!({
            "status": "error", "error_type": "ArgumentValidationError", "message": "no", "domain_code": "invalid_argument"
        });
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<Envelope>(written).unwrap(), error);
        for code in DomainCode::ALL {
            assert_eq!(to_value(code).unwrap(), code.as_str());
        }
    }
}
