//! Error responses of a node (RFC 9457).

use crate::problem::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A problem, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDetails {
    /// The kind, as a URN.
    #[serde(rename = "type")]
    pub kind: ProblemKind,
    /// The kind, for a person.
    pub title: String,
    /// The status code of the answer.
    pub status: u16,
    /// Description of this occurrence.
    pub detail: String,
    /// Path of the request.
    pub instance: String,
    /// All problems of a rejected document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProblemKind {
    /// The request is malformed, or requests something that this node doesn't support.
    #[serde(rename = "urn:cynodeai:error:validation")]
    Validation,
    /// The bearer token is missing or wrong.
    #[serde(rename = "urn:cynodeai:error:authentication")]
    Authentication,
    /// The request is not allowed here.
    #[serde(rename = "urn:cynodeai:error:authorization")]
    Authorization,
    /// The object or the endpoint doesn't exist.
    #[serde(rename = "urn:cynodeai:error:not_found")]
    NotFound,
    /// The endpoint has no such method.
    #[serde(rename = "urn:cynodeai:error:method_not_allowed")]
    MethodNotAllowed,
    /// The request contradicts the present state: for example, another job has that id.
    #[serde(rename = "urn:cynodeai:error:conflict")]
    Conflict,
    /// The request's body is too large.
    #[serde(rename = "urn:cynodeai:error:too_large")]
    TooLarge,
    /// The content type of the request's body is not JSON.
    #[serde(rename = "urn:cynodeai:error:media_type")]
    MediaType,
    /// The node is at its limit; a later retry may succeed.
    #[serde(rename = "urn:cynodeai:error:rate_limit")]
    Overloaded,
    /// A limit on concurrent use is reached.
    #[serde(rename = "urn:cynodeai:error:limit")]
    Limit,
    /// The upstream did not answer, or its answer can't be passed on.
    #[serde(rename = "urn:cynodeai:error:upstream")]
    Upstream,
    /// A service that the node needs can't be reached; a later retry may succeed.
    #[serde(rename = "urn:cynodeai:error:unavailable")]
    Unavailable,
    /// A fault of the node.
    #[serde(rename = "urn:cynodeai:error:internal")]
    Internal,
}

// === impl ProblemKind ===

impl ProblemKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::Validation,
        Self::Authentication,
        Self::Authorization,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::Conflict,
        Self::TooLarge,
        Self::MediaType,
        Self::Overloaded,
        Self::Limit,
        Self::Upstream,
        Self::Unavailable,
        Self::Internal,
    ];

    /// Returns the HTTP status of the kind.
    pub const fn status(self) -> u16 {
        match self {
            Self::Validation => 400,
            Self::Authentication => 401,
            Self::Authorization => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::MediaType => 415,
            Self::Limit => 429,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Overloaded | Self::Unavailable => 503,
        }
    }

    /// Returns the name of the kind, for a person.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Validation => "Invalid request",
            Self::Authentication => "Authentication required",
            Self::Authorization => "Permission denied",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::Conflict => "Conflict",
            Self::TooLarge => "Request too large",
            Self::MediaType => "Unsupported media type",
            Self::Overloaded => "Node overloaded",
            Self::Limit => "Limit reached",
            Self::Upstream => "Upstream service did not respond",
            Self::Unavailable => "Temporarily unavailable",
            Self::Internal => "Internal error",
        }
    }
}

// === impl ProblemDetails ===

impl ProblemDetails {
    /// A problem of that kind.
    pub fn new(kind: ProblemKind, detail: impl Into<String>, instance: impl Into<String>) -> Self {
        Self {
            kind,
            title: kind.title().to_owned(),
            status: kind.status(),
            detail: detail.into(),
            instance: instance.into(),
            problems: Vec::new(),
        }
    }
}
