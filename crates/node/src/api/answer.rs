//! Responses: JSON documents, or problems (RFC 9457).

use crate::denials::DenialReason;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use belljar_contract::problem::Problems;
use belljar_contract::worker::operation::{Method, Operation};
use belljar_contract::worker::problem::{ProblemDetails, ProblemKind};
use belljar_store::database::{DatabaseError, FailureKind};
use belljar_store::jobs::{ChangeError, SubmitError};
use serde::Serialize;

/// A failed request, to be answered with a problem document.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    problem: Box<ProblemDetails>,
    retry_after_seconds: Option<u32>,
}

/// Seconds after which a client may retry a request that the node was too busy or unable to serve.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A response with a document and that status.
pub(super) fn json(status: StatusCode, document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => of_bytes(status, "application/json", bytes),
        Err(error) => Refusal::new(ProblemKind::Internal, error.to_string()).into_response(),
    }
}

fn of_bytes(status: StatusCode, kind: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        let problem = Box::new(ProblemDetails::new(kind, detail, ""));
        let retry_after_seconds =
            matches!(kind, ProblemKind::Overloaded | ProblemKind::Unavailable).then_some(RETRY_AFTER_SECONDS);
        Self { problem, retry_after_seconds }
    }

    fn of_database(error: &DatabaseError) -> Self {
        tracing::warn!(error = crate::chain(error), "the database failed");
        // The database's error names the database, so it goes only to the node's log.
        match error.kind {
            FailureKind::Unavailable => {
                Self::new(ProblemKind::Unavailable, "the node can't reach its database")
            }
            FailureKind::InDoubt => Self::new(
                ProblemKind::Unavailable,
                "the node doesn't know whether its database has kept this; to ask once more is safe",
            ),
            FailureKind::Refused => Self::new(ProblemKind::Internal, "the node's database has failed"),
        }
    }
}

impl IntoResponse for Refusal {
    /// Attaches the refusal only: [`told`] writes the response, as it knows the request's path.
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes a refusal as the response to that request.
pub(super) async fn told(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let mut response = next.run(request).await;
    let refusal = response.extensions_mut().remove().or_else(|| of_framework(&response));
    let Some(Refusal { mut problem, retry_after_seconds }) = refusal else {
        return response;
    };
    let allow = (problem.kind == ProblemKind::MethodNotAllowed).then(|| methods_at(&path));
    problem.instance = path;
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let bytes = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = of_bytes(status, "application/problem+json", bytes);
    if DenialReason::is_denial(problem.kind) {
        response.extensions_mut().insert(DenialReason { kind: problem.kind, detail: problem.detail });
    }
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after_seconds {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if let Some(allow) = allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A refusal in place of axum's plain-text error, such as for a path that isn't UTF-8 after decoding.
fn of_framework(response: &Response) -> Option<Refusal> {
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_plain = kind.is_some_and(|kind| kind.starts_with(b"text/plain"));
    (response.status() == StatusCode::BAD_REQUEST && is_plain).then(|| {
        Refusal::new(ProblemKind::Validation, "the path or the query can't be read: it is not UTF-8")
    })
}

fn methods_at(path: &str) -> &'static str {
    let (mut gets, mut posts) = (false, false);
    for operation in Operation::at(path) {
        match operation.route().0 {
            Method::Get => gets = true,
            Method::Post => posts = true,
        }
    }
    match (gets, posts) {
        (true, true) => "GET, HEAD, POST",
        (false, true) => "POST",
        _ => "GET, HEAD",
    }
}

impl From<Problems> for Refusal {
    fn from(problems: Problems) -> Self {
        let mut refusal = Self::new(ProblemKind::Validation, problems.to_string());
        refusal.problem.problems = problems.into_vec();
        refusal
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        Self::of_database(&error)
    }
}

impl From<SubmitError> for Refusal {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::OtherJob { .. } | SubmitError::OtherRequest => {
                Self::new(ProblemKind::Conflict, error.to_string())
            }
            SubmitError::Full { .. } => Self::new(ProblemKind::Overloaded, error.to_string()),
            SubmitError::Database(error) => Self::of_database(&error),
        }
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Unknown { .. } => Self::new(ProblemKind::NotFound, error.to_string()),
            ChangeError::Refused(_) | ChangeError::OtherOutcome | ChangeError::NotOver { .. } => {
                Self::new(ProblemKind::Conflict, error.to_string())
            }
            ChangeError::Database(error) => Self::of_database(&error),
        }
    }
}
