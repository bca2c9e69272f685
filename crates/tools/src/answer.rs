//! Results of calls.

use crate::Arguments;
use belljar_contract::tool::{DomainCode, Envelope, Pagination, RedactionReport};
use belljar_store::database::{DatabaseError, FailureKind};
use serde_json::Value;
use std::borrow::Cow;

/// Result of a call.
pub type Answer = Result<Success, Failure>;

/// A successful result.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    /// The data.
    pub data: Value,
    /// Position of the data in a list, if it is a page.
    pub pagination: Option<Pagination>,
    /// Attachments that JSON can't contain.
    pub attachments: Vec<Attachment>,
    /// Secrets that the gateway redacted in `data`. Tools never set it.
    pub redacted: Option<RedactionReport>,
}

/// An image, a sound, or a file with an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its media type, as `image/png`.
    pub mime_type: String,
    /// Its URI, if it is a file with one.
    pub uri: Option<String>,
    /// Its bytes, in Base64.
    pub base64: String,
}

/// A failed result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Class of the error.
    pub code: DomainCode,
    /// Name of the error's kind, for people.
    pub error_type: Cow<'static, str>,
    /// The cause, and what would be accepted.
    pub message: String,
}

/// A page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    offset: usize,
    limit: usize,
}

/// Default number of entries of a page.
pub const DEFAULT_LIMIT: usize = 50;

/// Maximum number of entries of a page.
pub const LARGEST_LIMIT: usize = 200;

// === impl Success ===

impl Success {
    /// Returns a result with this data only.
    pub fn of(data: Value) -> Self {
        Self { data, pagination: None, attachments: Vec::new(), redacted: None }
    }

    /// Returns a page of that list.
    pub fn page(items: Vec<Value>, page: Page) -> Self {
        let total = items.len();
        Self::part(items.into_iter().skip(page.offset).take(page.limit).collect(), total, page)
    }

    /// Returns a page that was fetched as such, with the total number of entries.
    pub fn part(items: Vec<Value>, total: usize, page: Page) -> Self {
        let pagination = Pagination { total, offset: page.offset, limit: page.limit };
        Self { pagination: Some(pagination), ..Self::of(Value::Array(items)) }
    }
}

// === impl Failure ===

impl Failure {
    /// Returns a failure of that class.
    pub fn new(code: DomainCode, message: impl Into<String>) -> Self {
        Self { code, error_type: Cow::Borrowed(kind_of(code)), message: message.into() }
    }

    /// Returns a failure because of an invalid argument.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(DomainCode::InvalidArgument, message)
    }

    /// Returns a failure because the database can't be used.
    pub fn unreachable(error: &DatabaseError) -> Self {
        tracing::warn!(%error, kind = ?error.kind, "a tool can't reach the database");
        match error.kind {
            FailureKind::Refused => Self::new(DomainCode::Internal, "the database query of the host failed"),
            FailureKind::Unavailable => {
                Self::new(DomainCode::Unavailable, "the host's database is unavailable; try again")
            }
            FailureKind::InDoubt => Self::new(
                DomainCode::Unavailable,
                "the outcome of the change is unknown; check the current state before you try again",
            ),
        }
    }

    /// Returns an internal failure. The cause is logged for the operator, and not disclosed to the caller.
    pub fn internal(doing: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error, doing, "a tool has failed");
        Self::new(DomainCode::Internal, format!("internal error: the host could not {doing}"))
    }
}

/// Returns the name of an error class.
fn kind_of(code: DomainCode) -> &'static str {
    match code {
        DomainCode::InvalidArgument => "ArgumentValidationError",
        DomainCode::GuardrailViolated => "GuardrailViolationError",
        DomainCode::NotSupported => "NotSupportedError",
        DomainCode::NotFound => "NotFoundError",
        DomainCode::Conflict => "ConflictError",
        DomainCode::PermissionDenied => "PermissionDeniedError",
        DomainCode::ApprovalRequired => "ApprovalRequiredError",
        DomainCode::LimitExceeded => "LimitExceededError",
        DomainCode::Unavailable => "UnavailableError",
        DomainCode::ToolFailed => "ToolFailedError",
        DomainCode::Internal => "InternalError",
    }
}

/// Returns the answer in its form on the wire.
pub fn envelope(answer: Answer) -> Envelope {
    match answer {
        Ok(Success { data, pagination, redacted, .. }) => Envelope::Ok { data, pagination, redacted },
        Err(Failure { code, error_type, message }) => {
            Envelope::Error { error_type, message, domain_code: code }
        }
    }
}

// === impl Page ===

impl Page {
    /// Returns the page that skips `offset` entries and has at most `limit`.
    pub fn new(offset: Option<usize>, limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, LARGEST_LIMIT);
        Self { offset: offset.unwrap_or_default(), limit }
    }

    /// Returns the page that the arguments `offset` and `limit` request.
    pub fn asked(arguments: &Arguments) -> Self {
        let number = |name| arguments.get(name).and_then(Value::as_u64).and_then(|it| it.try_into().ok());
        Self::new(number("offset"), number("limit"))
    }

    /// Returns the number of skipped entries.
    pub fn offset(self) -> usize {
        self.offset
    }

    /// Returns the maximum number of entries.
    pub fn limit(self) -> usize {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn page_reports_total_offset_and_limit() {
        let items: Vec<_> = (0..7).map(|number| json!(number)).collect();
        let page = |offset, limit| Success::page(items.clone(), Page::new(offset, limit));
        let middle = page(Some(5), Some(4));
        assert_eq!(middle.data, json!([5, 6]));
        assert_eq!(middle.pagination, Some(Pagination { total: 7, offset: 5, limit: 4 }));
        assert_eq!(page(Some(99), None).data, json!([]));
        assert_eq!(page(None, Some(100_000)).pagination.map(|page| page.limit), Some(LARGEST_LIMIT));
    }
}
