//! Why a sandbox's work isn't a branch somewhere else.

use crate::book::BookError;
use crate::git::base::BaseError;
use crate::git::commit::CommitError;
use crate::git::ignored::Ignored;
use crate::git::runner::GitError;
use crate::git::tree::TreeError;
use belljar_egress::git::PinError;
use belljar_policy::git::{BranchName, Remote};
use belljar_policy::handoff::Finding;
use std::io;

/// Why it isn't there.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// What was left can't be read as a tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// There is no commit.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// Nothing is left of what differs.
    #[error("there is nothing to push: nothing differs but what is ignored, or is no file of the repository")]
    OnlyLeftOut {
        /// What was passed over.
        left_out: Vec<String>,
        /// What is ignored.
        ignored: Ignored,
    },
    /// It may not go there.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// Somebody has to say yes first.
    #[error("{} of the paths gain trust where they go, and nobody has said yes to that", findings.len())]
    Handoff {
        /// Which, and why.
        findings: Vec<Finding>,
    },
    /// Others build on that branch.
    #[error("{branch} is the default branch of {remote}; nothing of a sandbox is pushed there")]
    Default {
        /// The branch.
        branch: BranchName,
        /// Where.
        remote: Remote,
    },
    /// What it is to get into isn't a branch there.
    #[error("there is no branch {base} that a pull request could get into; nothing was pushed")]
    NoBase {
        /// What was named, or what the clone is of.
        base: String,
    },
    /// There is such a branch, and it is something else.
    #[error("there is a branch {branch} already, at {found}; nothing was pushed")]
    Taken {
        /// The branch.
        branch: BranchName,
        /// What it is.
        found: String,
    },
    /// Git can't do its part.
    #[error("can't push")]
    Git(#[from] GitError),
    /// The clone can't be used.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// It can't be recorded, and so it doesn't go out.
    #[error(transparent)]
    Book(#[from] BookError),
    /// What is under way can't be noted.
    #[error("can't note what is under way")]
    Note {
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else pushes from the same clone.
    #[error("somebody else is pushing from the same clone")]
    Busy,
}

// === impl PushError ===

impl PushError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tree(TreeError::Name { .. }) => "name_not_allowed",
            Self::Tree(TreeError::Link { .. }) => "link_not_allowed",
            Self::Tree(TreeError::TooMuch { .. }) => "too_much",
            Self::Tree(TreeError::Changed { .. } | TreeError::Directory(_)) => "files_unreadable",
            Self::Commit(CommitError::Unchanged) | Self::OnlyLeftOut { .. } => "nothing_to_push",
            Self::Commit(CommitError::Git(error)) | Self::Git(error) => error.code(),
            Self::Pin(error) => error.code(),
            Self::Handoff { .. } => "handoff_not_trusted",
            Self::Default { .. } => "default_branch",
            Self::NoBase { .. } => "base_unknown",
            Self::Taken { .. } => "branch_taken",
            Self::Base(_) => "not_cloned",
            Self::Book(_) => "recording_unavailable",
            Self::Note { .. } => "note_unavailable",
            Self::Busy => "busy",
        }
    }

    /// Whether it was refused here, by what is allowed.
    pub fn is_denial(&self) -> bool {
        matches!(
            self,
            Self::Tree(TreeError::Name { .. } | TreeError::Link { .. } | TreeError::TooMuch { .. })
                | Self::Pin(PinError::Denied(_))
                | Self::Handoff { .. }
                | Self::Default { .. }
                | Self::NoBase { .. }
        )
    }
}
