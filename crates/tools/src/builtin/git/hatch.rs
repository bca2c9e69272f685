//! The interface to the host's git: only it connects to servers and has credentials; the sandbox has neither.

use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::path::StepPath;
use belljar_policy::git::{BranchName, Remote};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// Operations of the host's git for callers.
pub trait GitHatch: Send + Sync {
    /// Clones into the caller's workspace.
    fn clone_in<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: CloneRequest,
    ) -> BoxFuture<'a, Result<CloneResult, Failure>>;

    /// Pushes the files of such a clone: as one commit on top of the cloned one, to a new branch.
    fn push_out<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PushResult, Failure>>;

    /// Returns what a push would write, without writing.
    fn planned_push<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PushPlan, Failure>>;
}

/// Maximum number of paths of a push that are listed.
pub const MOST_TOLD: usize = 500;

/// A request to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneRequest {
    /// The repository.
    pub remote: Remote,
    /// Destination in the workspace: a new or empty directory.
    pub directory: StepPath,
    /// The branch, tag or commit; `None` for the server's default.
    pub reference: Option<String>,
    /// Maximum number of commits of history; `None` for all.
    pub depth: Option<u32>,
}

/// A completed clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneResult {
    /// The requested commit.
    pub commit: String,
    /// The branch that is checked out in the workspace.
    pub branch: String,
    /// Number of files, including git's own.
    pub files: u64,
    /// Total size of the files, in bytes.
    pub size_bytes: u64,
}

/// A request to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRequest {
    /// Directory of the clone in the workspace; `None` for the workspace's root.
    pub directory: Option<StepPath>,
    /// The branch.
    pub branch: BranchName,
    /// The commit message.
    pub message: String,
    /// The approved plan: nothing else is pushed.
    pub approved: Option<PushPlan>,
}

/// Plan of a push. Pushes with equal plans write equal files to the same branch of the same server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushPlan {
    /// URL of the server's repository, without credentials.
    pub remote: String,
    /// The reference.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The parent commit, which was cloned.
    pub base: String,
    /// Id of the tree, which determines all files.
    pub tree: String,
    /// The first paths that differ from the cloned commit, each behind its kind of change.
    pub files: Vec<String>,
    /// Number of paths that differ.
    pub file_count: usize,
}

/// Result of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushResult {
    /// The server's repository.
    pub remote: String,
    /// The branch's commit.
    pub commit: String,
    /// The parent commit, which was cloned.
    pub base: String,
    /// True if the branch existed already with that commit.
    pub was_there: bool,
    /// The first [`MOST_TOLD`] of the paths that differ, each with its kind of change.
    pub files: Vec<(String, String)>,
    /// Number of paths that differ.
    pub file_count: usize,
    /// The first [`MOST_TOLD`] of the skipped paths: repositories, pipes and the like, and ignored files.
    pub left_out: Vec<String>,
    /// Number of skipped paths.
    pub left_out_count: usize,
}
