//! What comes of a call.

use crate::Arguments;
use belljar_contract::tool::{DomainCode, Envelope, Pagination, Redacted};
use belljar_store::database::{DatabaseError, Failing};
use serde_json::Value;
use std::borrow::Cow;

/// What comes of a call.
pub type Answer = Result<Success, Failure>;

/// It has been done.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    /// What came of it.
    pub data: Value,
    /// Which part of a list that is.
    pub pagination: Option<Pagination>,
    /// What can't be said as JSON.
    pub attachments: Vec<Attachment>,
    /// What the gateway took out of `data`. No tool sets it.
    pub redacted: Option<Redacted>,
}

/// An image, a sound, or a file that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Its type, as `image/png`.
    pub mime_type: String,
    /// Its address, if it is a file that has one.
    pub uri: Option<String>,
    /// Its bytes, in Base64.
    pub base64: String,
}

/// It has not been done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The class of the error.
    pub code: DomainCode,
    /// Its kind, for people.
    pub error_type: Cow<'static, str>,
    /// What was wrong, and what would be right.
    pub message: String,
}

/// A part of a list that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    offset: usize,
    limit: usize,
}

/// So many are in a part of a list, unless another number is asked for.
pub const DEFAULT_LIMIT: usize = 50;

/// And so many at most.
pub const LARGEST_LIMIT: usize = 200;

// === impl Success ===

impl Success {
    /// That and nothing else.
    pub fn of(data: Value) -> Self {
        Self { data, pagination: None, attachments: Vec::new(), redacted: None }
    }

    /// One part of that list.
    pub fn page(items: Vec<Value>, page: Page) -> Self {
        let total = items.len();
        Self::part(items.into_iter().skip(page.offset).take(page.limit).collect(), total, page)
    }

    /// That part of a list, which was fetched as that part. There are so many in all.
    pub fn part(items: Vec<Value>, total: usize, page: Page) -> Self {
        let pagination = Pagination { total, offset: page.offset, limit: page.limit };
        Self { pagination: Some(pagination), ..Self::of(Value::Array(items)) }
    }
}

// === impl Failure ===

impl Failure {
    /// An error of that class.
    pub fn new(code: DomainCode, message: impl Into<String>) -> Self {
        Self { code, error_type: Cow::Borrowed(kind_of(code)), message: message.into() }
    }

    /// An argument is not what the tool takes.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(DomainCode::InvalidArgument, message)
    }

    /// What is kept can't be reached.
    pub fn unreachable(error: &DatabaseError) -> Self {
        tracing::warn!(%error, kind = ?error.kind, "a tool can't reach the database");
        match error.kind {
            Failing::Refused => Self::new(DomainCode::Internal, "the host could not look it up"),
            Failing::Unavailable => {
                Self::new(DomainCode::Unavailable, "the host can't reach its database; try again")
            }
            Failing::InDoubt => Self::new(
                DomainCode::Unavailable,
                "it is not known whether that was done; look before trying again",
            ),
        }
    }

    /// The host has failed; what has is told to whoever runs it, and not to whoever calls.
    pub fn internal(doing: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error, doing, "a tool has failed");
        Self::new(DomainCode::Internal, format!("the host could not {doing}"))
    }
}

/// What an error of that class is called.
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

/// The answer on the wire.
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
    /// The part that was asked for: `offset` entries are passed over, `limit` follow.
    pub fn new(offset: Option<usize>, limit: Option<usize>) -> Self {
        let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, LARGEST_LIMIT);
        Self { offset: offset.unwrap_or_default(), limit }
    }

    /// The part that the arguments `offset` and `limit` ask for.
    pub fn asked(arguments: &Arguments) -> Self {
        let number = |name| arguments.get(name).and_then(Value::as_u64).and_then(|it| it.try_into().ok());
        Self::new(number("offset"), number("limit"))
    }

    /// How many entries are passed over.
    pub fn offset(self) -> usize {
        self.offset
    }

    /// How many follow at most.
    pub fn limit(self) -> usize {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_page_says_where_in_the_whole_it_lies() {
        let items: Vec<_> = (0..7).map(|number| json!(number)).collect();
        let page = |offset, limit| Success::page(items.clone(), Page::new(offset, limit));
        let middle = page(Some(5), Some(4));
        assert_eq!(middle.data, json!([5, 6]));
        assert_eq!(middle.pagination, Some(Pagination { total: 7, offset: 5, limit: 4 }));
        assert_eq!(page(Some(99), None).data, json!([]));
        assert_eq!(page(None, Some(100_000)).pagination.map(|page| page.limit), Some(LARGEST_LIMIT));
    }
}
