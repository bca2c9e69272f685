//! `git_clone`: fetched and kept by the host, and copied into the workspace.

use super::bounds::{CallBounds, TreeSizeWatch};
use super::{GitHost, GitWorkspace, TransferFolder, check_place, failure};
use crate::answer::Failure;
use crate::builtin::git::hatch::{CloneRequest, CloneResult};
use crate::caller::Caller;
use belljar_contract::git::CLONES_OF_RUN;
use belljar_contract::path::WORKSPACE;
use belljar_contract::tool::DomainCode;
use belljar_egress::upstream::names::NameSource;
use belljar_files::directory::Directory;
use belljar_files::tree::{HostTree, TreeLimits};
use belljar_git::clone::{CloneParams, Origin, clone as clone_by_host};
use belljar_git::{HostClone, HostEnv};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Branch that is checked out in the workspace.
const BRANCH: &str = "sandbox/work";

/// Limits of a clone, including its history.
const LIMITS: TreeLimits = TreeLimits { files: 200_000, bytes: 1 << 30, file_bytes: 1 << 30 };

/// Limits of all clones of a run together. They are on the host's disk, where no quota of the sandbox counts them.
const LIMITS_OF_RUN: TreeLimits = TreeLimits { files: 400_000, bytes: 2 << 30, file_bytes: 1 << 30 };

/// Time limit of a clone, which is shorter than the call's.
const WITHIN: Duration = Duration::from_secs(115);

/// Destination of a fetch.
struct FetchTarget<'t> {
    workspace: &'t dyn GitWorkspace,
    /// Folder of the host's own clone.
    folder: &'t Path,
    /// Folder in which the files are laid out.
    directory: &'t Path,
}

// === impl GitHost ===

impl GitHost {
    /// Clones into the caller's workspace.
    pub(super) fn clone(
        &self,
        caller: &Caller,
        wanted: &CloneRequest,
        stop: &CancellationToken,
    ) -> Result<CloneResult, Failure> {
        self.check_remote(&wanted.remote)?;
        let inside = wanted.directory.beneath(WORKSPACE);
        let inside = inside.map_err(|error| Failure::new(DomainCode::PermissionDenied, error.to_string()))?;
        check_place(&inside)?;
        if inside.is_root() {
            let message = "/directory: a repository cannot be cloned into the workspace root: specify a directory below it";
            return Err(Failure::argument(message));
        }
        let workspace = self.workspaces.of(caller)?;
        let run = workspace.folder();
        HostClone::room_in_workspace(run, inside.as_str()).map_err(|error| failure::of_base(&error))?;
        let (transfer, folder) = (TransferFolder::make(run)?, HostClone::folder_for_workspace(run));
        let bounds = CallBounds::within(WITHIN, stop);
        let clones = run.join(CLONES_OF_RUN);
        let watch = TreeSizeWatch::new(
            &bounds,
            &[(&folder, LIMITS), (transfer.path(), LIMITS), (&clones, LIMITS_OF_RUN)],
        );
        if watch.measure() {
            return Err(failure::of_full_run());
        }
        let target = FetchTarget { workspace: &*workspace, folder: &folder, directory: transfer.path() };
        let kept = self.fetch(&target, wanted, &watch).and_then(|mut base| {
            let top = Directory::open_host(transfer.path());
            let top = top.map_err(|error| failure::of_tree(&error.into()))?;
            let laid = HostTree::below(&top, LIMITS).map_err(|error| failure::of_tree(&error))?;
            if watch.measure() {
                return Err(failure::of_full_run());
            }
            workspace.put(&laid, &inside, &bounds)?;
            base.settled_in_workspace(run, inside.as_str())
                .map_err(|error| failure::of_cloning(&error.into(), &watch))?;
            let commit = base.record().commit.clone();
            Ok(CloneResult {
                commit,
                branch: BRANCH.to_owned(),
                files: laid.files,
                size_bytes: laid.size_bytes,
            })
        });
        kept.inspect_err(|_| {
            // Nothing is pushed from a clone that isn't in the workspace.
            let _ = std::fs::remove_dir_all(&folder);
        })
    }

    fn fetch(
        &self,
        target: &FetchTarget<'_>,
        wanted: &CloneRequest,
        watch: &TreeSizeWatch<'_>,
    ) -> Result<HostClone, Failure> {
        let reference = wanted.reference.as_deref().unwrap_or("HEAD");
        let origin = Origin::parse(&format!("{}#{reference}", wanted.remote), false)
            .map_err(|error| Failure::argument(format!("/branch: {error}")))?;
        let cloned = clone_by_host(&CloneParams {
            origin: &origin,
            rules: &self.rules,
            names: NameSource::of_system(),
            folder: target.folder,
            directory: target.directory,
            depth: wanted.depth,
            tells_origin: true,
            branch: BRANCH,
            run_id: Some(target.workspace.run_id()),
            env: &HostEnv::of_process(),
            state: &self.state,
            is_canceled: &|| watch.is_over(),
        });
        cloned.map_err(|error| failure::of_cloning(&error, watch))
    }
}
