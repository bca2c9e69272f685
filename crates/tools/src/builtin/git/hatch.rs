//! The host's git, as tools have it: it alone goes to servers, and has credentials. The sandbox has neither.

use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::path::StepPath;
use belljar_policy::git::{BranchName, Remote};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

/// What the host's git does for callers.
pub trait GitHatch: Send + Sync {
    /// Clones into the caller's workspace.
    fn clone_in<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: CloneRequest,
    ) -> BoxFuture<'a, Result<Cloned, Failure>>;

    /// Pushes what is in such a clone: as one commit on top of what was cloned, to a branch that isn't there yet.
    fn push_out<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<Pushed, Failure>>;

    /// Says what a push would write, and writes nothing.
    fn planned_push<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PlannedPush, Failure>>;
}

/// So many paths of a push are told one by one.
pub const MOST_TOLD: usize = 500;

/// A clone that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneRequest {
    /// Of what.
    pub remote: Remote,
    /// Where to, in the workspace. It isn't there yet, or is empty.
    pub directory: StepPath,
    /// The branch, tag or commit; the server's default if nothing is said.
    pub reference: Option<String>,
    /// So many commits of its history; all if nothing is said.
    pub depth: Option<u32>,
}

/// A clone that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cloned {
    /// The commit that was wanted.
    pub commit: String,
    /// The branch on which it stands in the workspace.
    pub branch: String,
    /// How many files it has, those of git among them.
    pub files: u64,
    /// How large they are together.
    pub size_bytes: u64,
}

/// A push that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushRequest {
    /// Where the clone is, in the workspace; its root if nothing is said.
    pub directory: Option<StepPath>,
    /// The branch.
    pub branch: BranchName,
    /// What the commit says.
    pub message: String,
    /// What a person has approved: nothing else is pushed.
    pub approved: Option<PlannedPush>,
}

/// What a push would write. Two pushes with equal plans write equal files to one branch of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPush {
    /// The URL of the server's repository, without credentials.
    pub remote: String,
    /// The ref.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit below it, which was cloned.
    pub base: String,
    /// The id of the tree, which all files follow from.
    pub tree: String,
    /// The first paths that differ from what was cloned, each behind what has become of it.
    pub files: Vec<String>,
    /// How many differ.
    pub file_count: usize,
}

/// What is at the server now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// At which.
    pub remote: String,
    /// The branch's commit.
    pub commit: String,
    /// The commit below it, which was cloned.
    pub base: String,
    /// Whether it was there already.
    pub was_there: bool,
    /// The first [`MOST_TOLD`] of the paths that differ, each with what has become of it.
    pub files: Vec<(String, String)>,
    /// How many differ.
    pub file_count: usize,
    /// The first [`MOST_TOLD`] of what was passed over: repositories, pipes and the like, and what is ignored.
    pub left_out: Vec<String>,
    /// How many that are.
    pub left_out_count: usize,
}
