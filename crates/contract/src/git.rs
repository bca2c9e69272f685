//! What is recorded of the host's git: where it went for a run or a person, what it fetched, what it pushed, and which
//! pull requests came of it; never a secret, and nothing of what was in it.

use crate::id::RunId;
use crate::inference::{Excerpt, ReasonCode};
use core::net::IpAddr;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The kind under which it stands in the audit that something is about to be fetched.
pub const FETCH_BEGUN: &str = "git_fetch_begun";

/// The kind under which it stands there what has become of it, refusals included.
pub const FETCH: &str = "git_fetch";

/// The kind under which it stands there that something is about to be pushed.
pub const PUSH_BEGUN: &str = "git_push_begun";

/// The kind under which it stands there what has become of it, refusals included.
pub const PUSH: &str = "git_push";

/// The kind under which it stands there that a pull request is about to be looked for, and opened if there is none.
pub const PULL_REQUEST_BEGUN: &str = "git_pull_request_begun";

/// The kind under which it stands there what has become of it, refusals included.
pub const PULL_REQUEST: &str = "git_pull_request";

/// Git is about to fetch: on the disk before anything goes out but the question where the name leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchBegun {
    /// The run that it is for; null where it is for a person.
    pub run_id: Option<RunId>,
    /// From where, in its one form.
    pub remote: Excerpt,
    /// The branch, tag or commit that is wanted.
    pub reference: Excerpt,
    /// The addresses that git may connect to; none for a directory of the host.
    pub addresses: Vec<IpAddr>,
}

/// What has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchRecord {
    /// The run that it was for; null where it was for a person.
    pub run_id: Option<RunId>,
    /// From where, in its one form.
    pub remote: Excerpt,
    /// How it ended.
    pub outcome: GitOutcome,
    /// The commit that was fetched; null where none was.
    pub commit: Option<Excerpt>,
    /// How long it took, in milliseconds.
    pub total_ms: u64,
}

/// Git is about to push: on the disk before anything goes out but the question where the name leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushBegun {
    /// The run whose work it is; null where that isn't known.
    pub run_id: Option<RunId>,
    /// Where to, in its one form.
    pub remote: Excerpt,
    /// The branch, which must not be there yet.
    pub branch: Excerpt,
    /// What it is to be.
    pub commit: Excerpt,
    /// The commit that the work began with.
    pub base: Excerpt,
    /// The addresses that git may connect to; none for a directory of the host.
    pub addresses: Vec<IpAddr>,
    /// How many files differ.
    pub files: u64,
    /// Paths that gained trust by somebody's yes; no more than a hundred of them.
    pub trusted: Vec<Excerpt>,
    /// When (UTC).
    pub started_at: Timestamp,
}

/// What has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushRecord {
    /// The run whose work it is; null where that isn't known.
    pub run_id: Option<RunId>,
    /// Where to, in its one form.
    pub remote: Excerpt,
    /// The branch.
    pub branch: Excerpt,
    /// The commit; null where it didn't come to one.
    pub commit: Option<Excerpt>,
    /// How it ended.
    pub outcome: GitOutcome,
    /// How long it took, in milliseconds.
    pub total_ms: u64,
}

/// A forge is about to be asked for a pull request: on the disk before it is asked anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequestBegun {
    /// The run whose work it is; null where that isn't known.
    pub run_id: Option<RunId>,
    /// Under which the calls of the forge stand in the audit: that run, or one that is made up for them.
    pub calls_run_id: RunId,
    /// The repository, in its one form.
    pub remote: Excerpt,
    /// The branch that was pushed.
    pub branch: Excerpt,
    /// What that is.
    pub commit: Excerpt,
    /// The branch that it is to get into.
    pub base: Excerpt,
    /// The connection by which the forge is called.
    pub connection: Excerpt,
    /// When (UTC).
    pub started_at: Timestamp,
}

/// What has become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequestRecord {
    /// The run whose work it is; null where that isn't known.
    pub run_id: Option<RunId>,
    /// The repository, in its one form.
    pub remote: Excerpt,
    /// The branch that was pushed.
    pub branch: Excerpt,
    /// The branch that it is to get into.
    pub base: Excerpt,
    /// Where people see it; null where there is none.
    pub url: Option<Excerpt>,
    /// How it ended.
    pub outcome: GitOutcome,
    /// How long it took, in milliseconds.
    pub total_ms: u64,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GitOutcome {
    /// It is there.
    Completed,
    /// It was there already, by an earlier attempt.
    AlreadyThere,
    /// It was refused here: nothing was sent.
    Denied {
        /// Why.
        reason: ReasonCode,
    },
    /// It was let go, and ended otherwise. Whether it is there is told by the next attempt.
    Failed {
        /// How.
        code: ReasonCode,
    },
}
