//! The durable note of a push, written before it begins: a repeated push takes its time from the note, and finds the first
//! one's result.

use super::PushError;
use crate::base::{HostClone, write_durably};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;

/// The note of a push, for a branch of a remote.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PushNote {
    remote: String,
    branch: String,
    /// The commit's time.
    pub(crate) at: Timestamp,
    /// The commit, once it is made.
    pub(crate) commit: Option<String>,
    /// True if the branch is known to exist.
    pub(crate) is_there: bool,
    /// Its pull request, once known.
    #[serde(default)]
    pub(crate) pull_request: Option<PullRequestNote>,
}

/// A pull request that exists or existed: if it was closed, no other one is opened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PullRequestNote {
    pub(crate) base: String,
    /// The commit that it was opened for; another commit gets another pull request.
    #[serde(default)]
    pub(crate) commit: String,
    pub(crate) url: String,
}

// === impl PushNote ===

impl PushNote {
    /// Returns the noted pull request of that commit into that branch.
    pub(crate) fn request_for(&self, base: &str, commit: &str) -> Option<&PullRequestNote> {
        self.pull_request.as_ref().filter(|noted| noted.base == base && noted.commit == commit)
    }

    /// Returns the note of an earlier attempt, or a new one.
    pub(crate) fn of(base: &HostClone, remote: String, branch: String) -> Result<Self, PushError> {
        if let Ok(bytes) = std::fs::read(base.folder().join(name(&remote, &branch)))
            && let Ok(note) = serde_json::from_slice(&bytes)
        {
            return Ok(note);
        }
        let at = Timestamp::now();
        let note = Self { remote, branch, at, commit: None, is_there: false, pull_request: None };
        belljar_failpoint::before("git_note");
        note.keep(base).map_err(|source| PushError::Note { source })?;
        belljar_failpoint::after("git_note");
        Ok(note)
    }

    /// Writes the note durably.
    pub(crate) fn keep(&self, base: &HostClone) -> io::Result<()> {
        write_durably(base.folder(), &name(&self.remote, &self.branch), self)
    }
}

fn name(remote: &str, branch: &str) -> String {
    let hash = Sha256::digest(format!("{remote}\n{branch}").as_bytes());
    let hex: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("push-{hex}.json")
}
