//! `write_file`: writes a file's complete content.

use super::{relative, strange};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use crate::workbench::Workbench;
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::{self, Bytes, FileWriteResult, MOST_WRITTEN_BYTES, Request, WriteFile};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Writes a file of the workspace; existing content is replaced. \
    Returns `path`, `bytes_written` and whether the file was `created`. `create_directories: true` \
    creates missing parent directories. The write is atomic: readers see the old or the new \
    content, never a part. Does not write into a `.git` or through a symbolic link. At most 10 MiB.";

/// The file and its new content.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Its path, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    path: String,
    /// The complete content.
    content: String,
    /// True to create missing parent directories.
    #[serde(default)]
    create_directories: bool,
}

pub(super) struct WriteFileTool(pub(super) Arc<dyn Workbench>);

impl TypedTool for WriteFileTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { path: name, content, create_directories } = arguments;
        let path = relative("path", &name)?;
        let bytes_written = content.len();
        if bytes_written > MOST_WRITTEN_BYTES {
            let said = format!("the content is longer than {MOST_WRITTEN_BYTES} bytes");
            return Err(Failure::new(DomainCode::LimitExceeded, said));
        }
        let content = Bytes(content.into_bytes());
        let request = Request::WriteFile(WriteFile { path, content, create_directories });
        let answer = self.0.ask(caller, Category::FileSystem, request).await?;
        let workbench::Answer::Written(FileWriteResult { created }) = answer else { return Err(strange()) };
        Ok(Success::of(json!({ "path": name, "bytes_written": bytes_written, "created": created })))
    }
}
