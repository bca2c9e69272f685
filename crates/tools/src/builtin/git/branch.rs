//! `git_branch`: lists, creates, switches to and deletes branches.

use super::repository::{Git, word};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use belljar_policy::git::is_branch_name;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const DESCRIPTION: &str = "Manages branches: `action` is `list`, `create` (at `start_point`, \
    by default HEAD; does not switch to the branch), `switch`, or `delete` (only merged branches, \
    unless `force: true`). All actions but `list` require a `name`. With `force: true`, `create` \
    moves an existing branch, and `switch` discards local changes. Returns `output`.";

/// The action and the branch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The action.
    action: Action,
    /// The branch.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// Commit or branch that a new branch starts at.
    #[schemars(length(min = 1, max = 1024))]
    start_point: Option<String>,
    /// True to proceed even if work is lost.
    #[serde(default)]
    force: bool,
    /// The repository's directory.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Create,
    Switch,
    Delete,
}

pub(super) struct GitBranchTool(pub(super) Git);

impl TypedTool for GitBranchTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { action, name, start_point, force, directory } = arguments;
        let name = match (action, &name) {
            (Action::List, _) => "",
            (_, None) => return Err(Failure::argument("/name: a branch name is required")),
            (_, Some(name)) if !is_branch_name(name) => {
                return Err(Failure::argument("/name: not a valid branch name"));
            }
            (_, Some(name)) => name,
        };
        let start = start_point.as_deref().map(|start| word("start_point", start)).transpose()?;
        if start.is_some() && action != Action::Create {
            return Err(Failure::argument("/start_point: only allowed with the action create"));
        }
        let (asked, done): (Vec<&str>, _) = match action {
            Action::List => {
                (vec!["branch", "--list", "--all", "--no-column", "--no-color", "--verbose"], String::new())
            }
            Action::Create => {
                let mut asked = vec!["branch", "--no-track", "--no-recurse-submodules"];
                asked.extend(force.then_some("--force"));
                asked.extend(["--end-of-options", name]);
                asked.extend(start);
                (asked, format!("created branch {name}\n"))
            }
            Action::Switch => {
                let mut asked = vec!["switch", "--quiet", "--no-guess", "--no-recurse-submodules"];
                asked.extend(force.then_some("--discard-changes"));
                asked.extend(["--end-of-options", name]);
                (asked, format!("switched to branch {name}\n"))
            }
            Action::Delete => {
                let mut asked = vec!["branch", "--delete"];
                asked.extend(force.then_some("--force"));
                asked.extend(["--end-of-options", name]);
                (asked, format!("deleted branch {name}\n"))
            }
        };
        let repository = self.0.open(caller, directory.as_deref()).await?;
        let (output, truncated) = repository.shown(&asked).await?;
        let output = match (action, output.is_empty()) {
            (Action::List, true) => "there are no branches yet\n".to_owned(),
            (Action::List, false) => output,
            _ => done,
        };
        Ok(Success::of(json!({ "output": output, "truncated": truncated })))
    }
}
