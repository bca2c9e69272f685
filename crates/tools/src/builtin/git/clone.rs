//! `git_clone`: the host fetches a repository, and lays it out in the caller's workspace.

use super::hatch::{CloneRequest, GitHatch};
use crate::answer::{Answer, Failure, Success};
use crate::builtin::files::relative;
use crate::caller::Caller;
use crate::typed::TypedTool;
use belljar_policy::git::Remote;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Clones a repository into a directory of the workspace. The host \
    fetches it with its own credentials, from configured servers only; without submodules and LFS \
    objects. `directory` must be new or empty. Default: the repository's name. `branch` is a \
    branch, a tag or a commit. Default: the server's default branch. `depth` limits the number of \
    commits of the history. Returns `commit`, `branch` (which is checked out in the workspace), \
    `directory`, `files` and `size_bytes`. Use `git_push` to push changes.";

/// The repository and its destination.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// `https://…`, `ssh://…` or `user@host:path`, without a password.
    #[schemars(length(min = 1, max = 2048))]
    url: String,
    /// Destination, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
    /// The branch, tag or commit.
    #[schemars(length(min = 1, max = 256))]
    branch: Option<String>,
    /// Maximum number of commits of history.
    #[schemars(range(min = 1, max = 1_000_000))]
    depth: Option<u32>,
}

pub(super) struct GitCloneTool(pub(super) Arc<dyn GitHatch>);

impl TypedTool for GitCloneTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { url, directory, branch: reference, depth } = arguments;
        // The URL may contain a password, so it is not repeated.
        let remote =
            Remote::parse(&url, false).map_err(|error| Failure::argument(format!("/url: it {error}")))?;
        let directory = directory.unwrap_or_else(|| name_of(&remote).to_owned());
        let directory = relative("directory", &directory)?;
        let told = directory.as_str().to_owned();
        let wanted = CloneRequest { remote: remote.clone(), directory, reference, depth };
        let cloned = self.0.clone_in(caller, wanted).await?;
        Ok(Success::of(json!({
            "remote": remote.to_string(),
            "commit": cloned.commit,
            "branch": cloned.branch,
            "directory": told,
            "files": cloned.files,
            "size_bytes": cloned.size_bytes,
        })))
    }
}

/// Returns the name of a repository: the last part of its path.
fn name_of(remote: &Remote) -> &str {
    let name = remote.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".git").filter(|name| !name.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_directory_is_named_after_its_repository() {
        for (url, name) in [
            ("https://git.example/team/app.git", "app"),
            ("https://git.example/team/app/", "app"),
            ("git@git.example:app.git", "app"),
            ("https://git.example/.git", ".git"),
        ] {
            assert_eq!(name_of(&Remote::parse(url, false).unwrap()), name);
        }
    }
}
