//! Errors of opening a pull request. The branch is pushed nevertheless.

use belljar_egress::api::ApiError;
use belljar_journal::RunJournalError;
use std::io;

/// Reasons why there is no pull request.
#[derive(Debug, thiserror::Error)]
pub enum PullRequestError {
    /// The forge can't be called, or doesn't respond.
    #[error("the forge can't be asked")]
    Api(#[from] ApiError),
    /// The forge has refused.
    #[error("the forge says no, with status {status}: {said}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The forge's message, without control characters.
        said: String,
    },
    /// The project doesn't exist, or is not visible with the credential.
    #[error("the forge has no project {project} that the connection's credential may see")]
    NoProject {
        /// The project.
        project: String,
    },
    /// The forge's response can't be parsed.
    #[error("the forge's answer can't be read")]
    Unreadable,
    /// The API client can't be started.
    #[error("can't call the forge")]
    Start {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The call can't be recorded.
    #[error(transparent)]
    Book(#[from] RunJournalError),
    /// The pull request exists, but that can't be noted.
    #[error("can't note which pull request there is")]
    Note {
        /// The cause.
        #[source]
        source: io::Error,
    },
}

// === impl PullRequestError ===

impl PullRequestError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Api(error) => error.code(),
            Self::Refused { status: 401 | 403, .. } => "forge_forbidden",
            Self::Refused { status: 404, .. } | Self::NoProject { .. } => "forge_not_found",
            Self::Refused { .. } => "forge_refused",
            Self::Unreadable => "forge_unreadable",
            Self::Start { .. } => "forge_unavailable",
            Self::Book(_) => "recording_unavailable",
            Self::Note { .. } => "note_unavailable",
        }
    }
}
