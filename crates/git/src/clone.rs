//! A workspace that the host clones (`docs/contracts/agents.md#a1.6`): the sandbox gets the files and their history, but no
//! credentials to fetch them.
//!
//! The host's git fetches into a clone of the host's own, with the host's credentials and from vetted addresses. The
//! sandbox's workspace is laid out from that clone ([`crate`]).

mod origin;

pub use origin::{Origin, OriginError};

use crate::{BaseError, HostClone, HostEnv, WorkspaceLayout, fetch, lay_out};
use belljar_contract::git::{FetchRecord, GitOutcome};
use belljar_contract::id::RunId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_egress::git::PinError;
use belljar_egress::upstream::names::NameSource;
use belljar_journal::RunJournalError;
use belljar_policy::git::GitRules;
use std::path::Path;
use std::time::Instant;

/// Parameters of a clone.
pub struct CloneParams<'c> {
    /// The remote to clone from.
    pub origin: &'c Origin,
    /// The destinations that git may connect to.
    pub rules: &'c GitRules,
    /// Resolves hostnames.
    pub names: NameSource,
    /// Directory of the host's own clone; it doesn't exist yet.
    pub folder: &'c Path,
    /// The empty directory in which the workspace is laid out.
    pub directory: &'c Path,
    /// Maximum number of commits of history; `None` for all.
    pub depth: Option<u32>,
    /// If true, the workspace has the origin as a remote.
    pub tells_origin: bool,
    /// The branch that is checked out.
    pub branch: &'c str,
    /// The run that the clone is for; `None` if an operator asked for it.
    pub run_id: Option<&'c RunId>,
    /// The environment that git is started with.
    pub env: &'c HostEnv,
    /// The state directory, which has the audit log.
    pub state: &'c Path,
    /// Returns true once the clone is canceled.
    pub is_canceled: &'c dyn Fn() -> bool,
}

/// Reasons why a clone failed.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// Git may not connect to the remote.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The host's own clone failed, or the workspace can't be laid out.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// The fetch can't be recorded. If that is known before it, git is not started.
    #[error(transparent)]
    Book(#[from] RunJournalError),
}

/// Clones, and lays out the workspace.
///
/// # Errors
/// [`CloneError`]; the directory's content is then unusable.
pub fn clone(cloning: &CloneParams<'_>) -> Result<HostClone, CloneError> {
    let begun = Instant::now();
    let cloned = fetch(cloning);
    let outcome = match &cloned {
        Ok(_) => GitOutcome::Completed,
        Err(CloneError::Pin(PinError::Denied(denied))) => {
            GitOutcome::Denied { reason: ReasonCode::of(denied.reason.code()) }
        }
        Err(error) => GitOutcome::Failed { code: ReasonCode::of(error.code()) },
    };
    let commit = cloned.as_ref().ok().map(|base| Excerpt::of(&base.record().commit));
    let recorded = cloning.journal().fetched(&FetchRecord {
        run_id: cloning.run_id.cloned(),
        remote: Excerpt::of(&cloning.origin.remote().to_string()),
        outcome,
        commit,
        total_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    let mut base = cloned?;
    recorded?;
    let origin = cloning.tells_origin.then(|| cloning.origin.remote());
    let layout = WorkspaceLayout { directory: cloning.directory, branch: cloning.branch, origin };
    lay_out(&mut base, &layout, cloning.env, cloning.is_canceled)?;
    Ok(base)
}

// === impl CloneError ===

impl CloneError {
    /// The stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Pin(error) => error.code(),
            Self::Base(BaseError::Git(error)) => error.code(),
            Self::Base(_) => "clone_unusable",
            Self::Book(_) => "recording_unavailable",
        }
    }
}
