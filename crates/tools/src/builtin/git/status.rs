//! `git_status`: shows changed and new files.

use super::repository::Git;
use crate::answer::{Answer, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

pub(super) const DESCRIPTION: &str = "Shows the status of the working tree: returns `output`, and \
    whether it is `truncated`. `short` shows one line per file, `porcelain` the same in a stable \
    format for programs. Ignores changes inside submodules.";

/// Format of the output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// True for one line per file.
    #[serde(default)]
    short: bool,
    /// True for a machine-readable format.
    #[serde(default)]
    porcelain: bool,
    /// The repository's directory.
    #[schemars(length(min = 1, max = 4095))]
    directory: Option<String>,
}

pub(super) struct GitStatusTool(pub(super) Git);

impl TypedTool for GitStatusTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { short, porcelain, directory } = arguments;
        let repository = self.0.open(caller, directory.as_deref()).await?;
        let form = match (porcelain, short) {
            (true, _) => "--porcelain",
            (false, true) => "--short",
            (false, false) => "--long",
        };
        let asked = ["status", "--ignore-submodules=all", "--no-column", "--no-ahead-behind", form];
        let (output, truncated) = repository.shown(&asked).await?;
        let output = if output.is_empty() { "nothing has changed\n".to_owned() } else { output };
        Ok(Success::of(json!({ "output": output, "truncated": truncated })))
    }
}
