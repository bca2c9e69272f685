//! What is known of a push before it begins, and stays: whoever does it again takes its time from there, and finds what the first
//! has done.

use super::PushError;
use crate::git::base::{Base, write_durably};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;

/// One, for a branch of a remote.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::git) struct Note {
    remote: String,
    branch: String,
    /// The time in the commit.
    pub(in crate::git) at: Timestamp,
    /// The commit, once it is made.
    pub(in crate::git) commit: Option<String>,
    /// Whether it is known to be there.
    pub(in crate::git) is_there: bool,
    /// The pull request that it has, once that is known.
    #[serde(default)]
    pub(in crate::git) pull_request: Option<NotedRequest>,
}

/// A pull request that there is, or was: whoever has closed it doesn't want another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::git) struct NotedRequest {
    pub(in crate::git) base: String,
    /// What was asked for with it; another commit is another request.
    #[serde(default)]
    pub(in crate::git) commit: String,
    pub(in crate::git) url: String,
}

// === impl Note ===

impl Note {
    /// The pull request of that commit into that branch, if there is or was one.
    pub(in crate::git) fn request_for(&self, base: &str, commit: &str) -> Option<&NotedRequest> {
        self.pull_request.as_ref().filter(|noted| noted.base == base && noted.commit == commit)
    }

    /// That of an earlier attempt, or a new one.
    pub(in crate::git) fn of(base: &Base, remote: String, branch: String) -> Result<Self, PushError> {
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

    /// Has it survive whatever comes.
    pub(in crate::git) fn keep(&self, base: &Base) -> io::Result<()> {
        write_durably(base.folder(), &name(&self.remote, &self.branch), self)
    }
}

fn name(remote: &str, branch: &str) -> String {
    let hash = Sha256::digest(format!("{remote}\n{branch}").as_bytes());
    let hex: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("push-{hex}.json")
}
