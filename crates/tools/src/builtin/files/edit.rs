//! `edit_file`: replaces a text in a file.

use super::{relative, strange};
use crate::answer::{Answer, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use crate::workbench::Workbench;
use belljar_contract::category::Category;
use belljar_contract::workbench::{self, EditFile, FileEditResult, Request};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Replaces a text in a file of the workspace. `old_text` must match \
    exactly, white space and line ends included, and must occur once. If it occurs several times, \
    the call fails with `conflict` and the line numbers, unless `all: true` replaces every \
    occurrence. If it does not occur, the call fails with `not_found`. Returns `path`, \
    `replacements` and `size_bytes`; if both texts are equal, the file is not changed. Limited to \
    files of 1 MiB; does not edit contents of a `.git` or follow symbolic links.";

/// The file and the replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Its path, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    path: String,
    /// The existing text.
    #[schemars(length(min = 1, max = 1_048_576))]
    old_text: String,
    /// The new text; empty to remove the old one.
    #[schemars(length(max = 1_048_576))]
    new_text: String,
    /// True to replace every occurrence.
    #[serde(default)]
    all: bool,
}

pub(super) struct EditFileTool(pub(super) Arc<dyn Workbench>);

impl TypedTool for EditFileTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { path: name, old_text, new_text, all } = arguments;
        let path = relative("path", &name)?;
        let request = Request::EditFile(EditFile { path, old_text, new_text, all });
        let answer = self.0.ask(caller, Category::FileSystem, request).await?;
        let workbench::Answer::Edited(edited) = answer else { return Err(strange()) };
        let FileEditResult { replacements, size_bytes } = edited;
        Ok(Success::of(json!({ "path": name, "replacements": replacements, "size_bytes": size_bytes })))
    }
}
