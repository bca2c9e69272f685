//! Errors of pushing a sandbox's work.

use crate::base::BaseError;
use crate::commit::CommitError;
use crate::ignored::IgnoredFiles;
use crate::runner::GitError;
use crate::tree::TreeError;
use belljar_egress::git::PinError;
use belljar_journal::RunJournalError;
use belljar_policy::git::{BranchName, Remote};
use belljar_policy::handoff::Finding;
use std::io;

/// Reasons why the work is not pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The directory can't be read as a tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The commit can't be made.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// All differing files were left out.
    #[error("there is nothing to push: nothing differs but what is ignored, or is no file of the repository")]
    OnlyLeftOut {
        /// Skipped paths.
        left_out: Vec<String>,
        /// Ignored files.
        ignored: IgnoredFiles,
    },
    /// Git may not connect to the remote.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// Some findings need an approval.
    #[error("{} of the paths gain trust at the destination and have no approval", findings.len())]
    Handoff {
        /// The findings.
        findings: Vec<Finding>,
    },
    /// The branch is the remote's default branch, which is never pushed to.
    #[error("{branch} is the default branch of {remote}; nothing of a sandbox is pushed there")]
    Default {
        /// The branch.
        branch: BranchName,
        /// The remote.
        remote: Remote,
    },
    /// The pull request's target branch doesn't exist.
    #[error("there is no branch {base} that a pull request could get into; nothing was pushed")]
    NoBase {
        /// The requested branch, or the one that was cloned.
        base: String,
    },
    /// The branch exists with another commit.
    #[error("there is a branch {branch} already, at {found}; nothing was pushed")]
    Taken {
        /// The branch.
        branch: BranchName,
        /// Its commit.
        found: String,
    },
    /// Git has failed.
    #[error("can't push")]
    Git(#[from] GitError),
    /// The clone can't be used.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// The push can't be recorded, so it is not sent.
    #[error(transparent)]
    Book(#[from] RunJournalError),
    /// The progress of the push can't be noted.
    #[error("cannot record the commit in progress")]
    Note {
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Another push from the same clone is under way.
    #[error("another push from the same clone is in progress")]
    Busy,
}

// === impl PushError ===

impl PushError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Tree(TreeError::Name { .. }) => "name_not_allowed",
            Self::Tree(TreeError::Link { .. }) => "link_not_allowed",
            Self::Tree(TreeError::TooMuch { .. }) => "too_much",
            Self::Tree(TreeError::Canceled) => "canceled",
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

    /// Returns true if the push was denied here, by a rule.
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
