//! `git_status`, `git_log`, `git_diff`, `git_branch`, `git_commit`: the repository of a caller's workspace
//! (`docs/contracts/tools.md#t1.4`).
//!
//! Git runs only in the caller's sandbox. Even there it runs no program that the repository names: permission to read a
//! repository must not imply permission to run programs.
//!
//! `git_clone` and `git_push` are carried out by the host, which fetches and pushes; the sandbox needs no network ([`hatch`]).

mod branch;
mod clone;
mod commit;
mod diff;
mod hardening;
pub mod hatch;
pub mod host;
mod log;
mod push;
mod repository;
mod status;

use super::Tools;
use crate::answer::Failure;
use crate::caller::Caller;
use crate::definition::{Definition, Effect};
use crate::typed::{schema_of, tool};
use crate::workbench::{Workbench, has_program};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, ToolScope};
use hatch::GitHatch;
use repository::Git;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Author of commits. Git settings of the repository are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Name.
    pub name: String,
    /// Email address.
    pub email: String,
}

/// Time limit of a call; git has 30 seconds for each of its steps.
const WITHIN: Duration = Duration::from_secs(240);

/// Description that all of these tools share.
const OF_ALL: &str = " `directory` is the root of the repository, relative to the workspace. Default: \
    the workspace's root.";

/// Returns true if the caller's sandboxes have git.
///
/// # Errors
/// [`Failure`] when there is no sandbox to look in.
pub async fn is_there(workbench: &dyn Workbench, caller: &Caller) -> Result<bool, Failure> {
    has_program(workbench, caller, (Category::VersionControl, &["git", "--version"])).await
}

/// Returns the tools; commits have this author.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(workbench: &Arc<dyn Workbench>, signature: &Signature) -> Tools {
    let define = |name, summary, input: Value, (leaf, effect): (BuiltInAction, Effect), description: &str| {
        let definition = Definition::named(name, Category::VersionControl, summary, input)?;
        let (action, description) = (ActionType::from(leaf), [description, OF_ALL].concat());
        let (cost, within) = (CostTier::Moderate, WITHIN);
        Ok(Definition { action, effect, description, cost, within, ..definition })
    };
    let git = || Git::new(Arc::clone(workbench), signature.clone());
    let reads = (BuiltInAction::VcsRead, Effect::ReadOnly);
    let status = define(
        "git_status",
        "Shows the status of the working tree.",
        schema_of::<status::Arguments>(),
        reads,
        status::DESCRIPTION,
    )?;
    let log = define("git_log", "Lists commits.", schema_of::<log::Arguments>(), reads, log::DESCRIPTION)?;
    let diff = define(
        "git_diff",
        "Shows differences as a patch.",
        schema_of::<diff::Arguments>(),
        reads,
        diff::DESCRIPTION,
    )?;
    let branches = (BuiltInAction::VcsBranch, Effect::Destructive);
    let input = schema_of::<branch::Arguments>();
    let branch = define(
        "git_branch",
        "Lists, creates, switches or deletes branches.",
        input,
        branches,
        branch::DESCRIPTION,
    )?;
    let commits = (BuiltInAction::VcsCommit, Effect::Additive);
    let input = schema_of::<commit::Arguments>();
    let commit = define("git_commit", "Commits staged changes.", input, commits, commit::DESCRIPTION)?;
    Ok(vec![
        tool(status, status::GitStatusTool(git())),
        tool(log, log::GitLogTool(git())),
        tool(diff, diff::GitDiffTool(git())),
        tool(branch, branch::GitBranchTool(git())),
        tool(commit, commit::GitCommitTool(git())),
    ])
}

/// Time limit of a clone.
const CLONE_WITHIN: Duration = Duration::from_secs(120);

/// Time limit of a push, which may have to read many files first.
const PUSH_WITHIN: Duration = Duration::from_secs(300);

/// Returns the tools that use the host's git at servers, for callers in this scope.
///
/// # Errors
/// Never: the names are valid.
pub fn hatch_tools(hatch: &Arc<dyn GitHatch>, scope: ToolScope) -> Tools {
    let clones = "Clones a repository into the workspace.";
    let clone = Definition {
        description: clone::DESCRIPTION.to_owned(),
        action: BuiltInAction::VcsRead.into(),
        cost: CostTier::Expensive,
        effect: Effect::Additive,
        reaches_out: true,
        scope,
        within: CLONE_WITHIN,
        ..Definition::named("git_clone", Category::VersionControl, clones, schema_of::<clone::Arguments>())?
    };
    let pushes = "Pushes the files of a clone to a new branch.";
    let push = Definition {
        description: push::DESCRIPTION.to_owned(),
        action: BuiltInAction::VcsPush.into(),
        cost: CostTier::Expensive,
        effect: Effect::Additive,
        reaches_out: true,
        scope,
        within: PUSH_WITHIN,
        ..Definition::named("git_push", Category::VersionControl, pushes, schema_of::<push::Arguments>())?
    };
    Ok(vec![
        tool(clone, clone::GitCloneTool(Arc::clone(hatch))),
        tool(push, push::GitPushTool(Arc::clone(hatch))),
    ])
}
