//! `delete_file`: removes a file.

use super::{relative, strange};
use crate::answer::{Answer, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use crate::workbench::Workbench;
use belljar_contract::category::Category;
use belljar_contract::workbench::{self, DeleteFile, FileDeleteResult, Request};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Removes a file of the workspace; for a symbolic link, the link \
    itself and not its target. Returns `path` and `size_bytes`. Does not remove directories or \
    contents of a `.git`, and does not follow symbolic links in the path.";

/// The file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Its path, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    path: String,
}

pub(super) struct DeleteFileTool(pub(super) Arc<dyn Workbench>);

impl TypedTool for DeleteFileTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { path: name } = arguments;
        let request = Request::DeleteFile(DeleteFile { path: relative("path", &name)? });
        let answer = self.0.ask(caller, Category::FileSystem, request).await?;
        let workbench::Answer::Deleted(FileDeleteResult { size_bytes }) = answer else {
            return Err(strange());
        };
        Ok(Success::of(json!({ "path": name, "size_bytes": size_bytes })))
    }
}
