//! `git_push`: what has become of a clone, read out of the workspace as files, and pushed as `belljar git push` pushes.

use super::super::carrying::{SkippedTreeEntries, TreeTransfer};
use super::super::desk::McpSessions;
use super::super::execution::CallerGoneSignal;
use super::{TransferFolder, failure, must_be_named, run_of};
use crate::git::author_of;
use crate::state;
use belljar_contract::category::Category;
use belljar_contract::path::{WORKSPACE, WorkspacePath};
use belljar_contract::text::escaped;
use belljar_contract::tool::DomainCode;
use belljar_egress::upstream::names::NameSource;
use belljar_files::directory::Directory;
use belljar_git::{
    Attribution, BaseError, HostClone, HostEnv, PreparedPush, PushError, PushParams, RefOrigin, TreeLimits,
};
use belljar_policy::git::{GitRules, Remote};
use belljar_sandbox::session::SessionClient;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::git::hatch::{MOST_TOLD, PushPlan, PushRequest, PushResult};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum length of the paths that an approver is shown, in bytes. The tree's id stands for all of them.
const MOST_SHOWN_BYTES: usize = 8 << 10;

/// So long it may take to read it out.
const READ_WITHIN: Duration = Duration::from_secs(180);

/// Limits of the tree that is read out of the workspace. They are generous, because ignored files are read but not pushed.
const READ: TreeLimits = TreeLimits { files: 500_000, bytes: 4 << 30, file_bytes: 1 << 30 };

/// Pushes it; what a person has approved, if it takes that, and nothing else.
pub(super) fn push(
    desk: &McpSessions,
    rules: &GitRules,
    (wanted, agent): (PushRequest, Option<String>),
    given_up: &CallerGoneSignal,
) -> Result<PushResult, Failure> {
    let approved = wanted.approved.clone();
    prepared(desk, rules, (wanted, agent), given_up, |prepared, plan, others| {
        if approved.is_some_and(|approved| approved != plan) {
            let message = "nothing was pushed: the files or the clone have changed since a person approved it; the same call asks again";
            return Err(Failure::new(DomainCode::Conflict, message));
        }
        let (files, file_count) = (prepared.files().take(MOST_TOLD), prepared.files().len());
        let files = files.map(|(path, change)| (path.to_owned(), change.to_owned())).collect();
        let (left_out, ignored) = (prepared.left_out(), &prepared.ignored().paths);
        let left_out_count = left_out.len() + ignored.len();
        let left_out = left_out.iter().chain(ignored).take(MOST_TOLD).cloned().collect();
        let pushed = prepared.push(&desk.offer.pushes).map_err(|error| failure::of_pushing(&error))?;
        let PushPlan { remote, base, .. } = plan;
        let was_there = pushed.standing == RefOrigin::AlreadyThere;
        let commit = pushed.commit;
        let pushed =
            PushResult { remote, commit, base, was_there, files, file_count, left_out, left_out_count };
        Ok(with(others, pushed))
    })
}

/// Says what a push would write. What would be refused in any case is refused here.
pub(super) fn plan(
    desk: &McpSessions,
    rules: &GitRules,
    (wanted, agent): (PushRequest, Option<String>),
    given_up: &CallerGoneSignal,
) -> Result<PushPlan, Failure> {
    prepared(desk, rules, (wanted, agent), given_up, |prepared, plan, _| {
        let findings = prepared.asks(&desk.offer.pushes);
        match findings.is_empty() {
            true => Ok(plan),
            false => Err(failure::of_pushing(&PushError::Handoff { findings })),
        }
    })
}

/// Reads the files out of the workspace and makes a commit of them, here; then does something with it.
fn prepared<T>(
    desk: &McpSessions,
    rules: &GitRules,
    (wanted, agent): (PushRequest, Option<String>),
    given_up: &CallerGoneSignal,
    does: impl FnOnce(PreparedPush<'_>, PushPlan, &SkippedTreeEntries) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let inside = wanted.directory.as_ref().map(|directory| directory.beneath(WORKSPACE)).transpose();
    let inside = inside.map_err(|error| Failure::new(DomainCode::PermissionDenied, error.to_string()))?;
    let client = desk.own_session(Category::VersionControl)?;
    let run_id = run_of(&client)?;
    let run = state::open().run_folder(&run_id);
    let inside = inside.map_or_else(root, Ok)?;
    let base = base_of(&client, &run, &inside)?;
    let remote = Remote::parse(&base.record().remote, false).map_err(|error| {
        Failure::new(DomainCode::PermissionDenied, format!("what that was cloned from {error}"))
    })?;
    must_be_named(rules, &remote)?;
    let passage = TransferFolder::make(&run)?;
    let top = Directory::open_host(&passage.0).map_err(|error| failure::of_carrying(&error.into()))?;
    let carrier = TreeTransfer { client: &client, given_up, until: Instant::now() + READ_WITHIN };
    let others = carrier.take(&inside, &top, READ).map_err(|error| failure::of_carrying(&error))?;
    let (state, env) = (state::open(), HostEnv::of_process());
    let author =
        author_of(None, &env).map_err(|error| Failure::new(DomainCode::ToolFailed, error.chain()))?;
    let (told, reference) = (remote.to_string(), wanted.branch.reference());
    let order = PushParams {
        base: &base,
        directory: &top,
        remote,
        rules,
        names: NameSource::of_system(),
        branch: wanted.branch,
        message: &wanted.message,
        attribution: Attribution { author, run_id: Some(run_id), agent, model: None },
        limits: TreeLimits::default(),
        includes_ignored: false,
        pull_request: None,
        env: &env,
        state: state.path(),
        is_canceled: &|| given_up.is_so(),
    };
    let prepared = order.prepare().map_err(|error| failure::of_pushing(&error))?;
    let plan = PushPlan {
        remote: told,
        reference,
        base: base.record().commit.clone(),
        tree: prepared.tree().to_owned(),
        files: first_files(&prepared),
        file_count: prepared.files().len(),
    };
    does(prepared, plan, &others)
}

/// The first paths that differ, as far as a person is shown them before they approve the push.
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

/// The host's own clone of what is there: of a workspace that is a copy of one that a person has cloned, that one.
fn base_of(client: &SessionClient, run: &Path, inside: &WorkspacePath) -> Result<HostClone, Failure> {
    let found = match (inside.is_root(), &client.session().copy_of) {
        (true, Some(source)) => HostClone::of_directory(state::open().path(), source),
        _ => HostClone::of_session(run, inside.as_str()),
    };
    found.map_err(|error: BaseError| {
        let place = if inside.is_root() { "the workspace" } else { inside.as_str() };
        let message = match error {
            BaseError::NotCloned { .. } => format!(
                "{place} is no clone of this session's: `git_clone` makes one, and what becomes of it can be pushed"
            ),
            error => return failure::of_base(&error),
        };
        Failure::new(DomainCode::NotFound, message)
    })
}

fn root() -> Result<WorkspacePath, Failure> {
    let root = belljar_contract::path::StepPath::parse(".");
    let root = root.map_err(|error| Failure::internal("name the workspace", &error))?;
    root.beneath(WORKSPACE).map_err(|error| Failure::internal("name the workspace", &error))
}

/// Adds the entries that were not taken out of the workspace to the result of a push.
fn with(others: &SkippedTreeEntries, pushed: PushResult) -> PushResult {
    let named = others.named.iter().map(|path| escaped(path.as_os_str().as_bytes()));
    let left_out_count = others.count + pushed.left_out_count;
    PushResult { left_out: named.chain(pushed.left_out).take(MOST_TOLD).collect(), left_out_count, ..pushed }
}
