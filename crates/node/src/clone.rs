//! A workspace that the host clones (`spec/2` invariant 6): the sandbox gets the files and their history, and nothing
//! that could get them.
//!
//! The host's git fetches into a clone of the host's own, with the host's credentials and at addresses that were looked at, and
//! what the sandbox gets is laid out from there (`node::git`).

mod origin;

pub use origin::{Origin, OriginError};

use crate::book::BookError;
use crate::git::{Base, BaseError, HostEnv, fetch, lay_out};
use belljar_contract::git::{FetchRecord, GitOutcome};
use belljar_contract::id::RunId;
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_egress::git::PinError;
use belljar_egress::upstream::names::NameSource;
use belljar_policy::git::GitRules;
use std::path::Path;
use std::time::Instant;

/// What is to be cloned, and where to.
pub struct Cloning<'c> {
    /// From where.
    pub origin: &'c Origin,
    /// Where git may go.
    pub rules: &'c GitRules,
    /// Where it stands what names lead to.
    pub names: NameSource,
    /// Where the host's own clone comes to be; nothing is there yet.
    pub folder: &'c Path,
    /// The empty directory in which it is laid out.
    pub directory: &'c Path,
    /// So many commits of its history; all if nothing is said.
    pub depth: Option<u32>,
    /// Whether what is laid out knows where it is from.
    pub tells_origin: bool,
    /// The branch that is on top of it.
    pub branch: &'c str,
    /// The run that it is for; nobody's where a person has asked.
    pub run_id: Option<&'c RunId>,
    /// What git is started from.
    pub env: &'c HostEnv,
    /// Where the audit is.
    pub state: &'c Path,
    /// Whether somebody wants it to stop.
    pub is_canceled: &'c dyn Fn() -> bool,
}

/// Why there is no clone.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// Git may not go there.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// There is none of the host's own, or it can't be laid out.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// It can't be recorded, and so git goes nowhere.
    #[error(transparent)]
    Book(#[from] BookError),
}

/// Clones, and lays out what was cloned.
///
/// # Errors
/// [`CloneError`]; what is in the directory then is of no use.
pub fn clone(cloning: &Cloning<'_>) -> Result<Base, CloneError> {
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
    lay_out(&mut base, (cloning.directory, cloning.branch, origin), cloning.env, cloning.is_canceled)?;
    Ok(base)
}

// === impl CloneError ===

impl CloneError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Pin(error) => error.code(),
            Self::Base(BaseError::Git(error)) => error.code(),
            Self::Base(_) => "clone_unusable",
            Self::Book(_) => "recording_unavailable",
        }
    }
}
