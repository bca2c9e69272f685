//! `read_file`: reads a file's text, or some lines of it.

use super::{fits, relative, strange};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::typed::TypedTool;
use crate::workbench::Workbench;
use belljar_contract::category::Category;
use belljar_contract::workbench::{self, FileReadResult, ReadFile, Request};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

pub(super) const DESCRIPTION: &str = "Reads a file of the workspace as text: returns `content`, `path`, \
    `size_bytes`, `line_count` and whether it is `truncated`. `start_line` and `end_line` (from 1, \
    inclusive) select lines. Content that doesn't fit into the result (about 1 MiB) is truncated, \
    with a `notice`; lines of files larger than 1 MiB can't be selected. Files that are not UTF-8 \
    text fail with `not_supported`.";

/// The file and the range of lines.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Its path, relative to the workspace's root.
    #[schemars(length(min = 1, max = 4095))]
    path: String,
    /// The first line to return.
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// The last line to return.
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

pub(super) struct ReadFileTool(pub(super) Arc<dyn Workbench>);

impl TypedTool for ReadFileTool {
    type Arguments = Arguments;

    async fn call(&self, caller: &Caller, arguments: Arguments) -> Answer {
        let Arguments { path: name, start_line, end_line } = arguments;
        let path = relative("path", &name)?;
        if let (Some(start), Some(end)) = (start_line, end_line)
            && end < start
        {
            return Err(Failure::argument(format!("/end_line: {end} is before start_line ({start})")));
        }
        let request = Request::ReadFile(ReadFile { path, start_line, end_line });
        let answer = self.0.ask(caller, Category::FileSystem, request).await?;
        let workbench::Answer::FileRead(read) = answer else { return Err(strange()) };
        let read_bytes = read.content.len();
        let FileReadResult { mut content, size_bytes, line_count, truncated: is_cut } = read;
        content.truncate(fits(&content));
        let truncated = is_cut || content.len() < read_bytes;
        let mut told = json!({
            "path": name,
            "content": &content,
            "size_bytes": size_bytes,
            "line_count": line_count,
            "truncated": truncated,
        });
        if truncated {
            let then = if is_cut {
                "the file is too large for the rest to be read by lines"
            } else {
                "use \
    start_line and end_line for the rest"
            };
            told["notice"] = json!(format!(
                "only the first {} bytes of the requested text are returned; {then}",
                content.len()
            ));
        }
        Ok(Success::of(told))
    }
}
