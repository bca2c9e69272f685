//! `git_diff`: shows differences as a patch.

use super::repository::{Git, paths, word};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const DESCRIPTION: &str = "Shows differences as a patch: returns `output`, and whether it is \
    `truncated`. Default: unstaged changes; `staged: true` shows staged changes. `ref1` compares \
    with a commit, `ref1` and `ref2` compare two commits. `stat: true` shows line counts instead. \
    `paths` limits the files. Ignores changes inside submodules.";

/// The states to compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// True for staged changes.
    #[serde(default)]
    staged: bool,
    /// The commit, branch or tag to compare with.
    #[schemars(length(min = 1, max = 1024))]
    ref1: Option<String>,
    /// A second one, to compare with the first.
    #[schemars(length(min = 1, max = 1024))]
    ref2: Option<String>,
    /// True for statistics in place of a patch.
    #[serde(default)]
    stat: bool,
    /// Only these paths.
    #[serde(default)]
    #[schemars(length(max = 100))]
    paths: Vec<String>,
    /// The repository's directory.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
}

pub(super) struct GitDiffTool(pub(super) Git);

impl TypedTool for GitDiffTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { staged, ref1, ref2, stat, paths: of, directory } = arguments;
        if ref1.is_none() && ref2.is_some() {
            return Err(Failure::argument("/ref2: requires ref1"));
        }
        if staged && ref2.is_some() {
            return Err(Failure::argument("/ref2: not allowed with staged, which compares with one commit"));
        }
        let mut asked = vec![
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--ignore-submodules=all",
            "--submodule=short",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        asked.extend(staged.then_some("--staged"));
        asked.push(if stat { "--stat" } else { "--patch" });
        asked.push("--end-of-options");
        for (name, reference) in [("ref1", &ref1), ("ref2", &ref2)] {
            if let Some(reference) = reference {
                asked.push(word(name, reference)?);
            }
        }
        asked.push("--");
        let of = paths("paths", &of)?;
        asked.extend(of.iter().map(String::as_str));
        let repository = self.0.open(caller, directory.as_deref()).await?;
        let (output, truncated) = repository.shown(&asked).await?;
        let output = if output.is_empty() { "No changes\n".to_owned() } else { output };
        Ok(Success::of(json!({ "output": output, "truncated": truncated })))
    }
}
