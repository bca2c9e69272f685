//! What is asked.

use super::Bytes;
use crate::path::StepPath;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// To run a program, and to leave nothing of it behind.
    Run(Run),
    /// For a file's text.
    ReadFile(ReadFile),
    /// To give a file its content.
    WriteFile(WriteFile),
    /// To replace a text in a file.
    EditFile(EditFile),
    /// For what a directory holds.
    ListDirectory(ListDirectory),
    /// To remove a file.
    DeleteFile(DeleteFile),
}

/// The variable that has the workspace's path, as programs see it.
pub const VARIABLE_OF_WORKSPACE: &str = "CYNODE_WORKSPACE_DIR";

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables beside those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Where, in the workspace; its root if nothing is said.
    pub directory: Option<StepPath>,
    /// What it reads.
    pub input: Bytes,
    /// So long it may run.
    pub within_ms: u64,
    /// As much is kept of each of its outputs, half of it from the beginning and half from the end.
    pub most_bytes: usize,
}

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Which.
    pub path: StepPath,
    /// The first line that is wanted, counted from 1.
    pub start_line: Option<u64>,
    /// The last one.
    pub end_line: Option<u64>,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFile {
    /// Which.
    pub path: StepPath,
    /// All that it is to hold.
    pub content: Bytes,
    /// Whether the directories that it lies in are made.
    pub create_directories: bool,
}

/// A text to replace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// In which file.
    pub path: StepPath,
    /// What is there.
    pub old_text: String,
    /// What is to be there instead.
    pub new_text: String,
    /// Whether it is replaced wherever it stands.
    pub all: bool,
}

/// A directory to list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListDirectory {
    /// Which.
    pub path: StepPath,
    /// What entries must match.
    pub pattern: Option<String>,
    /// Whether directories in it are listed, too.
    pub recursive: bool,
}

/// A file to remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// Which.
    pub path: StepPath,
}
