//! Git on the host for the agents' workspaces: clones are put into a workspace, and the files of a clone are pushed as
//! `belljar git push` pushes them.
//!
//! ```text
//! git_clone ─► among `git.remotes`? ─► fetched, kept in the run's folder ─► laid out ─► copied into the workspace
//! git_push  ─► which clone is that? ─► files read from the workspace ─► one commit on the clone ─► pushed, by its journal
//! ```

mod bounds;
mod clone;
mod failure;
mod push;

pub use bounds::{CallBounds, TreeSizeWatch};
pub use failure::of_tree;

use super::hatch::{CloneRequest, CloneResult, GitHatch, PushPlan, PushRequest, PushResult};
use crate::answer::Failure;
use crate::caller::{Caller, Identity};
use crate::turn_queue::TurnQueue;
use belljar_contract::id::RunId;
use belljar_contract::path::WorkspacePath;
use belljar_contract::tool::DomainCode;
use belljar_files::directory::Directory;
use belljar_files::tree::HostTree;
use belljar_policy::git::{GitRules, Remote, is_dot_git};
use belljar_policy::handoff::ApprovedPaths;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Git hatch: runs the host's git for the workspaces of callers.
pub struct HostGitHatch {
    host: Arc<GitHost>,
    /// Fair to runs; limits the host's git processes.
    queue: TurnQueue,
}

/// The host's git, and the workspaces that it works for.
struct GitHost {
    workspaces: Arc<dyn GitWorkspaces>,
    rules: GitRules,
    /// State directory, which has the audit log.
    state: PathBuf,
}

/// Settings of a git hatch.
pub struct GitHostSettings {
    /// Remotes that agents may use, and hosts that git may connect to.
    pub rules: GitRules,
    /// State directory, which has the audit log.
    pub state: PathBuf,
    /// Maximum number of concurrent calls. Calls of one run wait for each other in any case.
    pub at_once: usize,
}

/// Finds the workspace of a caller. Its methods block.
pub trait GitWorkspaces: Send + Sync {
    /// Returns the workspace in which the caller works.
    ///
    /// # Errors
    /// [`Failure`] when it has none.
    fn of(&self, caller: &Caller) -> Result<Box<dyn GitWorkspace>, Failure>;

    /// Returns the paths whose changes are pushed without a person's approval, though files there are executed or trusted at their
    /// destination.
    fn approved(&self) -> &ApprovedPaths;

    /// Returns the hint on how a person approves such paths; empty if there is no way.
    fn approval_hint(&self) -> &'static str;
}

/// Workspace of a caller. Its methods block.
pub trait GitWorkspace {
    /// The run that it belongs to.
    fn run_id(&self) -> &RunId;

    /// The run's folder, which is removed with it.
    fn folder(&self) -> &Path;

    /// The directory that the workspace is a copy of, if it is one.
    fn source(&self) -> Option<&Path>;

    /// Copies a tree to a path that doesn't exist or is an empty directory: completely, or not at all.
    ///
    /// # Errors
    /// [`Failure`] when the path is in use, there is no room, or the workspace is gone.
    fn put(&self, tree: &HostTree<'_>, inside: &WorkspacePath, bounds: &CallBounds) -> Result<(), Failure>;

    /// Returns the tree at a path. An implementation that can't open it copies it into `scratch`, which is empty.
    ///
    /// # Errors
    /// [`Failure`] when there is no directory, or its tree exceeds the limits.
    fn read(&self, inside: &WorkspacePath, scratch: &Path, bounds: &CallBounds) -> Result<ReadTree, Failure>;
}

/// Tree that was read from a workspace.
pub struct ReadTree {
    /// Its top.
    pub top: Directory,
    /// The first paths that were not read: pipes and the like.
    pub skipped: Vec<PathBuf>,
    /// Number of paths that were not read.
    pub skipped_count: usize,
}

/// Temporary folder for files on their way into or out of a workspace. It is removed when this is dropped.
struct TransferFolder(PathBuf);

/// Name of the folder, in a run's folder, that holds the temporary folders.
const TRANSFERS: &str = "transfers";

/// Maximum number of waiting and running calls of one run.
const MOST_OF_RUN: usize = 16;

impl GitHatch for HostGitHatch {
    fn clone_in<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: CloneRequest,
    ) -> BoxFuture<'a, Result<CloneResult, Failure>> {
        self.run(caller, move |host, caller, stop| host.clone(caller, &wanted, stop)).boxed()
    }

    fn push_out<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PushResult, Failure>> {
        self.run(caller, move |host, caller, stop| host.push(caller, wanted, stop)).boxed()
    }

    fn planned_push<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PushPlan, Failure>> {
        self.run(caller, move |host, caller, stop| host.plan(caller, wanted, stop)).boxed()
    }
}

// === impl HostGitHatch ===

impl HostGitHatch {
    /// Creates the hatch of these workspaces.
    pub fn new(workspaces: Arc<dyn GitWorkspaces>, settings: GitHostSettings) -> Self {
        let GitHostSettings { rules, state, at_once } = settings;
        let host = Arc::new(GitHost { workspaces, rules, state });
        Self { host, queue: TurnQueue::new(at_once, MOST_OF_RUN) }
    }

    /// Runs `act` on a blocking thread at the caller's turn. The token is canceled when the caller stops waiting.
    async fn run<T: Send + 'static>(
        &self,
        caller: &Caller,
        act: impl FnOnce(&GitHost, &Caller, &CancellationToken) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self.queue.enter(&caller.queue()).await;
        let turn = turn.map_err(|error| Failure::new(DomainCode::LimitExceeded, error.to_string()))?;
        let stop = CancellationToken::new();
        // Dropped with this call, whether it has ended or its caller stopped waiting.
        let _waiting = stop.clone().drop_guard();
        let (host, caller) = (Arc::clone(&self.host), caller.clone());
        let done = turn.work(move || act(&host, &caller, &stop)).await;
        done.unwrap_or_else(|error| Err(Failure::internal("run git", &error)))
    }
}

// === impl GitHost ===

impl GitHost {
    /// Checks that the git rules allow agents to use this remote.
    fn check_remote(&self, remote: &Remote) -> Result<(), Failure> {
        if self.rules.is_for_agents(remote) {
            return Ok(());
        }
        let named: Vec<_> = self.rules.remotes.iter().map(ToString::to_string).collect();
        let message = format!(
            "{remote} is not among the repositories that this host's configuration names for agents (`git.remotes`): {}",
            named.join(", ")
        );
        Err(Failure::new(DomainCode::PermissionDenied, message))
    }
}

/// The name of the agent that calls, if it has one.
fn agent_of(caller: &Caller) -> Option<String> {
    match caller.identity.as_ref()? {
        Identity::Agent(agent) => Some(agent.to_string()),
        Identity::Level(_) => None,
    }
}

/// Refuses paths that are in a git directory.
fn check_place(inside: &WorkspacePath) -> Result<(), Failure> {
    if inside.as_str().split('/').any(is_dot_git) {
        let message = format!("{inside} is in a git directory, where changes could make git run programs");
        return Err(Failure::new(DomainCode::PermissionDenied, message));
    }
    Ok(())
}

// === impl TransferFolder ===

impl TransferFolder {
    fn make(run: &Path) -> Result<Self, Failure> {
        let folder = run.join(TRANSFERS);
        // Not recursively: the folder of a run that has ended must not come into being again.
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Failure::internal("make a folder", &error));
            }
            _ => {}
        }
        let path = folder.join(uuid::Uuid::now_v7().to_string());
        std::fs::create_dir(&path).map_err(|error| Failure::internal("make a folder", &error))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TransferFolder {
    fn drop(&mut self) {
        // Leftovers are removed with the run's folder. The tree is untrusted and may be as deep as paths go.
        let _ = Directory::open_host(&self.0).and_then(|top| top.clear());
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    #[test]
    fn tree_deeper_than_the_descriptor_limit_is_removed_with_its_folder() {
        let run = tempfile::tempdir().unwrap();
        let most = Rlimit { current: Some(512), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, most).unwrap();
        for depth in [2, 1_500] {
            let transfer = TransferFolder::make(run.path()).unwrap();
            std::fs::create_dir_all(transfer.path().join("d/".repeat(depth))).unwrap();
            std::fs::write(transfer.path().join("d/file"), "x").unwrap();
            drop(transfer);
            assert_eq!(std::fs::read_dir(run.path().join(TRANSFERS)).unwrap().count(), 0, "{depth}");
        }
    }
}
