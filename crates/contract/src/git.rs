//! Audit records of the host's git: remotes that it contacted for a run or a person, commits that it fetched or pushed,
//! and pull requests that it opened; never a secret or a file's content.

use crate::id::RunId;
use crate::inference::{Excerpt, ReasonCode};
use core::net::IpAddr;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Folder, in a run's folder, with the host's own clones of repositories in the run's workspace.
pub const CLONES_OF_RUN: &str = "clones";

/// Kind of the audit record that precedes a fetch.
pub const FETCH_BEGUN: &str = "git_fetch_begun";

/// Kind of the audit record with the outcome of a fetch, denials included.
pub const FETCH: &str = "git_fetch";

/// Kind of the audit record that precedes a push.
pub const PUSH_BEGUN: &str = "git_push_begun";

/// Kind of the audit record with the outcome of a push, denials included.
pub const PUSH: &str = "git_push";

/// Kind of the audit record that precedes looking for a pull request, and opening one if there is none.
pub const PULL_REQUEST_BEGUN: &str = "git_pull_request_begun";

/// Kind of the audit record with the outcome of a pull request, denials included.
pub const PULL_REQUEST: &str = "git_pull_request";

/// A fetch that is about to start. This record is on disk before anything but a DNS query is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchStartRecord {
    /// Run that it is for; null if it is for a person.
    pub run_id: Option<RunId>,
    /// Remote repository, in its canonical form.
    pub remote: Excerpt,
    /// Requested branch, tag or commit.
    pub reference: Excerpt,
    /// The addresses that git may connect to; none for a directory of the host.
    pub addresses: Vec<IpAddr>,
}

/// Outcome of a fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchRecord {
    /// Run that it was for; null if it was for a person.
    pub run_id: Option<RunId>,
    /// Remote repository, in its canonical form.
    pub remote: Excerpt,
    /// Outcome of the fetch.
    pub outcome: GitOutcome,
    /// The commit that was fetched; null where none was.
    pub commit: Option<Excerpt>,
    /// Duration, in milliseconds.
    pub total_ms: u64,
}

/// A push that is about to start. This record is on disk before anything but a DNS query is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushStartRecord {
    /// Run that made the changes; null if it is unknown.
    pub run_id: Option<RunId>,
    /// Remote repository, in its canonical form.
    pub remote: Excerpt,
    /// Branch, which must not exist yet.
    pub branch: Excerpt,
    /// Commit that is pushed.
    pub commit: Excerpt,
    /// Commit that the work is based on.
    pub base: Excerpt,
    /// The addresses that git may connect to; none for a directory of the host.
    pub addresses: Vec<IpAddr>,
    /// Number of changed files.
    pub files: u64,
    /// Paths whose trust was raised by a user's approval; at most a hundred.
    pub trusted: Vec<Excerpt>,
    /// Time of the start (UTC).
    pub started_at: Timestamp,
}

/// Outcome of a push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushRecord {
    /// Run that made the changes; null if it is unknown.
    pub run_id: Option<RunId>,
    /// Remote repository, in its canonical form.
    pub remote: Excerpt,
    /// The branch.
    pub branch: Excerpt,
    /// The commit; null if none was made.
    pub commit: Option<Excerpt>,
    /// Outcome of the push.
    pub outcome: GitOutcome,
    /// Duration, in milliseconds.
    pub total_ms: u64,
}

/// A request for a pull request that is about to be made. This record is on disk before the forge is contacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequestStartRecord {
    /// Run that made the changes; null if it is unknown.
    pub run_id: Option<RunId>,
    /// Run id of the forge's calls in the audit log: that run, or one that is made for them.
    pub calls_run_id: RunId,
    /// Repository, in its canonical form.
    pub remote: Excerpt,
    /// The branch that was pushed.
    pub branch: Excerpt,
    /// Commit of that branch.
    pub commit: Excerpt,
    /// Target branch.
    pub base: Excerpt,
    /// Connection that the forge is called with.
    pub connection: Excerpt,
    /// Time of the start (UTC).
    pub started_at: Timestamp,
}

/// Outcome of a request for a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequestRecord {
    /// Run that made the changes; null if it is unknown.
    pub run_id: Option<RunId>,
    /// Repository, in its canonical form.
    pub remote: Excerpt,
    /// The branch that was pushed.
    pub branch: Excerpt,
    /// Target branch.
    pub base: Excerpt,
    /// URL of its web page; null if there is none.
    pub url: Option<Excerpt>,
    /// Outcome of the request.
    pub outcome: GitOutcome,
    /// Duration, in milliseconds.
    pub total_ms: u64,
}

/// Outcome of a git operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GitOutcome {
    /// The operation succeeded.
    Completed,
    /// An earlier attempt had already succeeded.
    AlreadyThere,
    /// The operation was denied; nothing was sent.
    Denied {
        /// Code of the reason.
        reason: ReasonCode,
    },
    /// The operation was started and failed. The next attempt finds out whether it took effect.
    Failed {
        /// Cause of the failure.
        code: ReasonCode,
    },
}
