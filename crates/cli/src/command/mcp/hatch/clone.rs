//! `git_clone`: fetched and kept by the host, and laid out in the workspace.

use super::super::carrying::{HostTree, TreeTransfer};
use super::super::desk::McpSessions;
use super::super::execution::CallerGoneSignal;
use super::watch::GitCallLimits;
use super::{TransferFolder, failure, must_be_named, run_of};
use crate::state;
use belljar_contract::category::Category;
use belljar_contract::path::WORKSPACE;
use belljar_contract::tool::DomainCode;
use belljar_egress::upstream::names::NameSource;
use belljar_files::directory::Directory;
use belljar_git::clone::{CloneParams, Origin, clone as clone_by_host};
use belljar_git::{HostClone, HostEnv, TreeLimits};
use belljar_policy::git::GitRules;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::git::hatch::{CloneRequest, CloneResult};
use std::path::Path;
use std::time::Duration;

/// The branch on which it stands in the workspace.
const BRANCH: &str = "sandbox/work";

/// Limits of a clone, including its history.
const LIMITS: TreeLimits = TreeLimits { files: 200_000, bytes: 1 << 30, file_bytes: 1 << 30 };

/// So long it may take: no longer than the call.
const WITHIN: Duration = Duration::from_secs(115);

pub(super) fn clone(
    desk: &McpSessions,
    rules: &GitRules,
    wanted: &CloneRequest,
    given_up: &CallerGoneSignal,
) -> Result<CloneResult, Failure> {
    must_be_named(rules, &wanted.remote)?;
    let inside = wanted.directory.beneath(WORKSPACE);
    let inside = inside.map_err(|error| Failure::new(DomainCode::PermissionDenied, error.to_string()))?;
    let client = desk.own_session(Category::VersionControl)?;
    let run = state::open().run_folder(&run_of(&client)?);
    HostClone::room_in_session(&run, inside.as_str()).map_err(|error| failure::of_base(&error))?;
    let (passage, folder) = (TransferFolder::make(&run)?, HostClone::folder_in_session(&run));
    let watch = GitCallLimits::over(&[&folder, &passage.0], (LIMITS, WITHIN), given_up);
    let kept = fetched(&passage.0, (&folder, &client), (rules, wanted), &watch).and_then(|mut base| {
        let top = Directory::open_host(&passage.0).map_err(|error| failure::of_carrying(&error.into()))?;
        let laid = HostTree::below(&top, LIMITS).map_err(|error| failure::of_carrying(&error))?;
        let carrier = TreeTransfer { client: &client, given_up, until: watch.until };
        carrier.put(&laid, &inside).map_err(|error| failure::of_carrying(&error))?;
        base.settled_in_session(&run, inside.as_str())
            .map_err(|error| failure::of_cloning(&error.into(), &watch))?;
        let commit = base.record().commit.clone();
        Ok(CloneResult { commit, branch: BRANCH.to_owned(), files: laid.files, size_bytes: laid.size_bytes })
    });
    kept.inspect_err(|_| {
        // Of what isn't in the workspace nothing is pushed.
        let _ = std::fs::remove_dir_all(&folder);
    })
}

fn fetched(
    directory: &Path,
    (folder, client): (&Path, &belljar_sandbox::session::SessionClient),
    (rules, wanted): (&GitRules, &CloneRequest),
    watch: &GitCallLimits<'_>,
) -> Result<HostClone, Failure> {
    let reference = wanted.reference.as_deref().unwrap_or("HEAD");
    let origin = Origin::parse(&format!("{}#{reference}", wanted.remote), false)
        .map_err(|error| Failure::argument(format!("/branch: {error}")))?;
    let (state, env, run_id) = (state::open(), HostEnv::of_process(), run_of(client)?);
    let cloned = clone_by_host(&CloneParams {
        origin: &origin,
        rules,
        names: NameSource::of_system(),
        folder,
        directory,
        depth: wanted.depth,
        tells_origin: true,
        branch: BRANCH,
        run_id: Some(&run_id),
        env: &env,
        state: state.path(),
        is_canceled: &|| watch.is_over(),
    });
    cloned.map_err(|error| failure::of_cloning(&error, watch))
}
