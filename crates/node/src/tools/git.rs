//! Workspaces of jobs, for the host's git: agents at work on a job have `git_clone` and `git_push`.

use belljar_confine::as_user::AsUser;
use belljar_contract::id::RunId;
use belljar_contract::path::WorkspacePath;
use belljar_contract::tool::DomainCode;
use belljar_files::tree::HostTree;
use belljar_policy::handoff::ApprovedPaths;
use belljar_sandbox::run::RunWorkspace;
use belljar_sandbox::state::StateDirectory;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::git::host::{CallBounds, GitWorkspace, GitWorkspaces, ReadTree, of_tree};
use belljar_tools::caller::Caller;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Workspaces of the jobs that run.
#[derive(Debug)]
pub(super) struct JobWorkspaces {
    state: StateDirectory,
    runs: Mutex<HashMap<RunId, Arc<RunWorkspace>>>,
    /// Agents of a node can't have paths approved that are executed or trusted elsewhere.
    approved: ApprovedPaths,
}

/// Entry of a running job. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct JobWorkspaceEntry {
    workspaces: Arc<JobWorkspaces>,
    run_id: RunId,
}

/// Workspace of one call.
struct JobWorkspace {
    run_id: RunId,
    folder: PathBuf,
    workspace: Arc<RunWorkspace>,
}

// === impl JobWorkspaces ===

impl JobWorkspaces {
    pub(super) fn new(state: StateDirectory) -> Arc<Self> {
        Arc::new(Self { state, runs: Mutex::default(), approved: ApprovedPaths::default() })
    }

    /// Adds the workspace of a run, until the entry is dropped.
    pub(super) fn add(self: &Arc<Self>, run_id: &RunId, workspace: RunWorkspace) -> JobWorkspaceEntry {
        self.runs().insert(run_id.clone(), Arc::new(workspace));
        JobWorkspaceEntry { workspaces: Arc::clone(self), run_id: run_id.clone() }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunWorkspace>>> {
        // Each change is complete, so poisoning is ignored.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GitWorkspaces for JobWorkspaces {
    fn of(&self, caller: &Caller) -> Result<Box<dyn GitWorkspace>, Failure> {
        let found = caller.run_id.as_ref().and_then(|run_id| {
            let workspace = self.runs().get(run_id).map(Arc::clone)?;
            let (run_id, folder) = (run_id.clone(), self.state.run_folder(run_id));
            Some(JobWorkspace { run_id, folder, workspace })
        });
        let message = "the caller has no workspace here: only an agent at work on a job has one";
        found
            .map(|workspace| -> Box<dyn GitWorkspace> { Box::new(workspace) })
            .ok_or_else(|| Failure::new(DomainCode::NotSupported, message))
    }

    fn approved(&self) -> &ApprovedPaths {
        &self.approved
    }

    fn approval_hint(&self) -> &'static str {
        ""
    }
}

impl GitWorkspace for JobWorkspace {
    fn run_id(&self) -> &RunId {
        &self.run_id
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn source(&self) -> Option<&Path> {
        None
    }

    fn put(&self, tree: &HostTree<'_>, inside: &WorkspacePath, bounds: &CallBounds) -> Result<(), Failure> {
        let RunWorkspace { root, owner } = &*self.workspace;
        let user = AsUser::become_user(owner.host_uid, owner.host_gid);
        // The tree that is copied belongs to the host.
        let user = user.and_then(|user| user.keep_access().map(|()| user));
        let _user = user.map_err(|errno| Failure::internal("write as the sandbox's user", &errno))?;
        tree.copy_to(root, Path::new(inside.as_str()), &|| bounds.is_over()).map_err(|error| of_tree(&error))
    }

    fn read(&self, inside: &WorkspacePath, _: &Path, _: &CallBounds) -> Result<ReadTree, Failure> {
        let path = if inside.is_root() { "." } else { inside.as_str() };
        let top = self.workspace.root.open(Path::new(path)).map_err(|error| of_tree(&error.into()))?;
        // Entries that are neither file, directory nor link are reported by the push itself.
        Ok(ReadTree { top, skipped: Vec::new(), skipped_count: 0 })
    }
}

impl Drop for JobWorkspaceEntry {
    fn drop(&mut self) {
        self.workspaces.runs().remove(&self.run_id);
    }
}
