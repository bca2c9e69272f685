//! `git_commit`: stages files, and makes a commit.
//!
//! Files are staged only by `update-index`: `git add` and `git commit --all` read nested repositories, with their settings.

use super::repository::{Git, Repository, paths};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::typed::{NOT_BLANK, TypedTool};
use belljar_contract::tool::DomainCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const DESCRIPTION: &str = "Commits staged changes. `paths` are staged first, new files \
    included; `all: true` stages all changes of tracked files. Fails with `conflict` if there is \
    nothing to commit. Returns `commit`, `summary` and `files_changed`. Runs no hooks and does not \
    sign.";

/// The message and the files to stage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The commit message.
    #[schemars(length(min = 1, max = 65_536), regex(pattern = r"\S"), extend("x-belljar-expected" = NOT_BLANK))]
    message: String,
    /// Files to stage first.
    #[serde(default)]
    #[schemars(length(max = 100))]
    paths: Vec<String>,
    /// True to stage every change of tracked files first.
    #[serde(default)]
    all: bool,
    /// The repository's directory.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
}

pub(super) struct GitCommitTool(pub(super) Git);

impl TypedTool for GitCommitTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { message, paths: named, all, directory } = arguments;
        if message.contains('\0') {
            return Err(Failure::argument("/message: contains the character U+0000"));
        }
        let named = paths("paths", &named)?;
        let repository = self.0.open(caller, directory.as_deref()).await?;
        if all {
            let changed = [
                "diff-files",
                "--name-only",
                "-z",
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=all",
            ];
            let changed = repository.read(&changed, &[]).await?;
            stage(&repository, &changed).await?;
        }
        for path in &named {
            // By name, not by pattern; a deleted file is listed as a cached one.
            let listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", path];
            let listed = repository.read(&listed, &[]).await?;
            if listed.is_empty() {
                let said = format!("{path} does not exist or is ignored");
                return Err(Failure::new(DomainCode::NotFound, said));
            }
            stage(&repository, &listed).await?;
        }
        let has_head = repository.is(&["rev-parse", "--verify", "--quiet", "HEAD"]).await?;
        let is_merge = repository.is(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).await?;
        let is_empty = match has_head {
            true => {
                repository
                    .is(&[
                        "diff-index",
                        "--cached",
                        "--quiet",
                        "--no-ext-diff",
                        "--no-textconv",
                        "HEAD",
                        "--",
                    ])
                    .await?
            }
            false => repository.read(&["ls-files", "-z", "--cached"], &[]).await?.is_empty(),
        };
        if is_empty && !is_merge {
            return Err(Failure::new(DomainCode::Conflict, "nothing to commit: no changes are staged"));
        }
        let commit = [
            "commit",
            "--quiet",
            "--no-verify",
            "--no-gpg-sign",
            "--no-edit",
            "--cleanup=whitespace",
            "--file=-",
        ];
        repository.read(&commit, message.as_bytes()).await?;
        told(&repository).await
    }
}

/// Updates the index with the current state of these paths.
async fn stage(repository: &Repository<'_>, paths: &[u8]) -> Result<(), Failure> {
    if paths.is_empty() {
        return Ok(());
    }
    repository.read(&["update-index", "--add", "--remove", "-z", "--stdin"], paths).await.map(drop)
}

async fn told(repository: &Repository<'_>) -> Answer {
    let shown =
        ["log", "--max-count=1", "--no-show-signature", "--no-patch", "--format=%H%x00%s", "HEAD", "--"];
    let shown = repository.read(&shown, &[]).await?;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let (commit, summary) = shown.trim_end().split_once('\0').unwrap_or((shown.trim_end(), ""));
    let changed =
        ["diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", "--no-ext-diff", "HEAD", "--"];
    let changed = repository.read(&changed, &[]).await?;
    let files_changed = changed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).count();
    Ok(Success::of(json!({ "commit": commit, "summary": summary, "files_changed": files_changed })))
}
