//! `git_push`: the files of a clone, read from the workspace, and pushed as `belljar git push` pushes them.

use super::bounds::CallBounds;
use super::{GitHost, GitWorkspace, ReadTree, TransferFolder, agent_of, failure};
use crate::answer::Failure;
use crate::builtin::git::hatch::{MOST_TOLD, PushPlan, PushRequest, PushResult};
use crate::caller::Caller;
use belljar_contract::path::{StepPath, WORKSPACE, WorkspacePath};
use belljar_contract::text::escaped;
use belljar_contract::tool::DomainCode;
use belljar_egress::upstream::names::NameSource;
use belljar_files::tree::TreeLimits;
use belljar_git::{
    Attribution, BaseError, HostClone, HostEnv, PreparedPush, PushError, PushParams, RefOrigin,
    author_or_default,
};
use belljar_policy::git::Remote;
use belljar_sandbox::backend::with_causes;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum length of the paths that an approver is shown, in bytes. The tree's id stands for all of them.
const MOST_SHOWN_BYTES: usize = 8 << 10;

/// Time limit for reading the files of a workspace that can't be opened in place.
const READ_WITHIN: Duration = Duration::from_secs(180);

/// Time limit of a push, which is shorter than the call's.
const WITHIN: Duration = Duration::from_secs(290);

/// A push that is prepared, and what was left out of it.
struct PlannedPush<'p> {
    prepared: PreparedPush<'p>,
    plan: PushPlan,
    /// Entries of the workspace that were not read.
    read: &'p ReadTree,
}

// === impl GitHost ===

impl GitHost {
    /// Pushes the files of a clone; if a plan was approved, exactly that plan.
    pub(super) fn push(
        &self,
        caller: &Caller,
        wanted: PushRequest,
        stop: &CancellationToken,
    ) -> Result<PushResult, Failure> {
        let approved = wanted.approved.clone();
        self.prepare(caller, wanted, stop, |PlannedPush { prepared, plan, read }| {
            if approved.is_some_and(|approved| approved != plan) {
                let message = "nothing was pushed: the files or the clone have changed since a person approved it; the same call asks again";
                return Err(Failure::new(DomainCode::Conflict, message));
            }
            let (files, file_count) = (prepared.files().take(MOST_TOLD), prepared.files().len());
            let files = files.map(|(path, change)| (path.to_owned(), change.to_owned())).collect();
            let (left_out, ignored) = (prepared.left_out(), &prepared.ignored().paths);
            let left_out_count = read.skipped_count + left_out.len() + ignored.len();
            let skipped = read.skipped.iter().map(|path| escaped(path.as_os_str().as_bytes()));
            let left_out = left_out.iter().chain(ignored).cloned();
            let left_out = skipped.chain(left_out).take(MOST_TOLD).collect();
            let pushed = prepared.push(self.workspaces.approved());
            let pushed = pushed.map_err(|error| self.of_pushing(&error))?;
            let was_there = pushed.standing == RefOrigin::AlreadyThere;
            let (PushPlan { remote, base, .. }, commit) = (plan, pushed.commit);
            Ok(PushResult { remote, commit, base, was_there, files, file_count, left_out, left_out_count })
        })
    }

    /// Returns what a push would write. A push that would be refused in any case is refused here.
    pub(super) fn plan(
        &self,
        caller: &Caller,
        wanted: PushRequest,
        stop: &CancellationToken,
    ) -> Result<PushPlan, Failure> {
        self.prepare(caller, wanted, stop, |PlannedPush { prepared, plan, .. }| {
            let findings = prepared.asks(self.workspaces.approved());
            match findings.is_empty() {
                true => Ok(plan),
                false => Err(self.of_pushing(&PushError::Handoff { findings })),
            }
        })
    }

    /// Reads the files from the workspace, makes a local commit of them, and calls `act` with it.
    fn prepare<T>(
        &self,
        caller: &Caller,
        wanted: PushRequest,
        stop: &CancellationToken,
        act: impl FnOnce(PlannedPush<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let inside = wanted.directory.as_ref().map(|directory| directory.beneath(WORKSPACE)).transpose();
        let inside = inside.map_err(|error| Failure::new(DomainCode::PermissionDenied, error.to_string()))?;
        let inside = inside.map_or_else(root, Ok)?;
        let workspace = self.workspaces.of(caller)?;
        let base = self.base_of(&*workspace, &inside)?;
        let remote = Remote::parse(&base.record().remote, false).map_err(|error| {
            Failure::new(DomainCode::PermissionDenied, format!("the origin of the clone {error}"))
        })?;
        self.check_remote(&remote)?;
        let transfer = TransferFolder::make(workspace.folder())?;
        let bounds = CallBounds::within(WITHIN, stop);
        let read = workspace.read(&inside, transfer.path(), &CallBounds::within(READ_WITHIN, stop))?;
        let env = HostEnv::of_process();
        let author = author_or_default(&env)
            .map_err(|error| Failure::new(DomainCode::ToolFailed, with_causes(&error)))?;
        let (told, reference) = (remote.to_string(), wanted.branch.reference());
        let run_id = Some(workspace.run_id().clone());
        let order = PushParams {
            base: &base,
            directory: &read.top,
            remote,
            rules: &self.rules,
            names: NameSource::of_system(),
            branch: wanted.branch,
            message: &wanted.message,
            attribution: Attribution { author, run_id, agent: agent_of(caller), model: None },
            limits: TreeLimits::default(),
            includes_ignored: false,
            pull_request: None,
            env: &env,
            state: &self.state,
            is_canceled: &|| bounds.is_over(),
        };
        let prepared = order.prepare().map_err(|error| self.of_pushing(&error))?;
        let plan = PushPlan {
            remote: told,
            reference,
            base: base.record().commit.clone(),
            tree: prepared.tree().to_owned(),
            files: first_files(&prepared),
            file_count: prepared.files().len(),
        };
        act(PlannedPush { prepared, plan, read: &read })
    }

    /// Returns the host's own clone of a path. The root of a workspace that is a copy of an operator's clone has that one.
    fn base_of(&self, workspace: &dyn GitWorkspace, inside: &WorkspacePath) -> Result<HostClone, Failure> {
        let found = match (inside.is_root(), workspace.source()) {
            (true, Some(source)) => HostClone::of_directory(&self.state, source),
            _ => HostClone::of_workspace(workspace.folder(), inside.as_str()),
        };
        found.map_err(|error: BaseError| {
            let place = if inside.is_root() { "the workspace" } else { inside.as_str() };
            let message = match error {
                BaseError::NotCloned { .. } => format!(
                    "{place} was not cloned by `git_clone`: only the files of such a clone can be pushed"
                ),
                error => return failure::of_base(&error),
            };
            Failure::new(DomainCode::NotFound, message)
        })
    }

    fn of_pushing(&self, error: &PushError) -> Failure {
        failure::of_pushing(error, self.workspaces.approval_hint())
    }
}

/// Returns the first paths that differ, as far as a person is shown them before they approve the push.
fn first_files(prepared: &PreparedPush<'_>) -> Vec<String> {
    let mut left = MOST_SHOWN_BYTES;
    let lines = prepared.files().map(|(path, change)| format!("{change} {}", escaped(path.as_bytes())));
    lines
        .take_while(|line| {
            let is_room = line.len() <= left;
            left = left.saturating_sub(line.len());
            is_room
        })
        .collect()
}

fn root() -> Result<WorkspacePath, Failure> {
    let root = StepPath::parse(".").map_err(|error| Failure::internal("name the workspace", &error))?;
    root.beneath(WORKSPACE).map_err(|error| Failure::internal("name the workspace", &error))
}
