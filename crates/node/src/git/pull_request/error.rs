//! Why there is no pull request. The branch is there all the same.

use crate::book::BookError;
use belljar_egress::api::ApiError;
use std::io;

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum PullRequestError {
    /// The forge can't be asked, or gives no answer.
    #[error("the forge can't be asked")]
    Api(#[from] ApiError),
    /// It says no.
    #[error("the forge says no, with status {status}: {said}")]
    Refused {
        /// The status.
        status: u16,
        /// What it says of that, without what can't be printed.
        said: String,
    },
    /// It has no such project, or none that the credential may see.
    #[error("the forge has no project {project} that the connection's credential may see")]
    NoProject {
        /// The project.
        project: String,
    },
    /// Its answer is none to what was asked.
    #[error("the forge's answer can't be read")]
    Unreadable,
    /// Nothing can be called.
    #[error("can't call the forge")]
    Start {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It can't be recorded.
    #[error(transparent)]
    Book(#[from] BookError),
    /// It is there, and that can't be noted.
    #[error("can't note which pull request there is")]
    Note {
        /// Why.
        #[source]
        source: io::Error,
    },
}

// === impl PullRequestError ===

impl PullRequestError {
    /// The stable code.
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
