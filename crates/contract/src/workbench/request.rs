//! Requests.

use super::Bytes;
use crate::path::StepPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Run a program, and leave nothing of it behind.
    Run(RunProgram),
    /// Read a file's text.
    ReadFile(ReadFile),
    /// Write a file's content.
    WriteFile(WriteFile),
    /// Replace a text in a file.
    EditFile(EditFile),
    /// List a directory.
    ListDirectory(ListDirectory),
    /// Remove a file.
    DeleteFile(DeleteFile),
}

/// Variable with the workspace's path, as programs see it.
pub const VARIABLE_OF_WORKSPACE: &str = "CYNODE_WORKSPACE_DIR";

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunProgram {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables beside those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Working directory in the workspace; its root if `None`.
    pub directory: Option<StepPath>,
    /// Standard input.
    pub input: Bytes,
    /// Time limit, in milliseconds.
    pub within_ms: u64,
    /// Maximum number of bytes kept of each output, half of it from the beginning and half from the end.
    pub most_bytes: usize,
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// The file.
    pub path: StepPath,
    /// First requested line, counted from 1.
    pub start_line: Option<u64>,
    /// The last one.
    pub end_line: Option<u64>,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// The file.
    pub path: StepPath,
    /// Whole new content.
    pub content: Bytes,
    /// True if missing parent directories are created.
    pub create_directories: bool,
}

/// A text to replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// The file.
    pub path: StepPath,
    /// Text that is to be replaced.
    pub old_text: String,
    /// New text.
    pub new_text: String,
    /// True if all occurrences are replaced.
    pub all: bool,
}

/// A directory to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListDirectory {
    /// The directory.
    pub path: StepPath,
    /// Glob pattern that entries must match.
    pub pattern: Option<String>,
    /// True if directories in it are listed, too.
    pub recursive: bool,
}

/// A file to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// The file.
    pub path: StepPath,
}
