//! What each type of step returns.
//!
//! Bytes that are not UTF-8 are given in base64, and the member beside them says so ([`ContentEncoding`]): nothing is
//! replaced, nothing is lost but what was cut and flagged as cut.

pub use crate::job::step::write_file::ContentEncoding;

use crate::result::{Change, ResourceUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a step returned, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StepOutput {
    /// Of `run_command`.
    RunCommand(CommandOutput),
    /// Of `write_file`.
    WriteFile(WrittenFile),
    /// Of `read_file`.
    ReadFile(FileContent),
    /// Of `apply_unified_diff`.
    ApplyUnifiedDiff(AppliedDiff),
    /// Of `list_tree`.
    ListTree(Listing),
    /// Of `search_files`.
    SearchFiles(SearchMatches),
}

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandOutput {
    /// Its exit code; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it; null if it exited.
    pub signal: Option<i32>,
    /// What it wrote to stdout, up to the cap.
    pub stdout: String,
    /// What it wrote to stderr, up to the cap.
    pub stderr: String,
    /// How `stdout` is written.
    pub stdout_encoding: ContentEncoding,
    /// How `stderr` is written.
    pub stderr_encoding: ContentEncoding,
    /// Which of the two were cut at the cap.
    pub truncated: Truncated,
    /// How long it ran, in milliseconds.
    pub duration_ms: u64,
    /// What it and the children it waited for used.
    pub resource_usage: ResourceUsage,
}

/// Which outputs were cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Truncated {
    /// Whether stdout was.
    pub stdout: bool,
    /// Whether stderr was.
    pub stderr: bool,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenFile {
    /// The path in the workspace.
    pub path: String,
    /// The size of the file now.
    pub size_bytes: u64,
    /// Whether the file is new.
    pub created: bool,
    /// Its permission bits in octal, such as `0644`.
    pub mode: String,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileContent {
    /// The path in the workspace.
    pub path: String,
    /// The content, or the lines asked for.
    pub content: String,
    /// How `content` is written.
    pub encoding: ContentEncoding,
    /// The size of the whole file.
    pub size_bytes: u64,
    /// Whether `content` was cut at the cap.
    pub truncated: bool,
}

/// What a patch did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppliedDiff {
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
}

/// What a patch did to one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchedFile {
    /// The path in the workspace, after the patch (of a deleted file: before).
    pub path: String,
    /// What happened to it.
    pub change: Change,
    /// The path it was renamed or copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// What a directory tree holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The directory that was listed, in the workspace; `.` for its root.
    pub path: String,
    /// What is below it: a directory before its entries, siblings sorted by the bytes of their names.
    pub entries: Vec<TreeEntry>,
    /// Whether entries were left out because there were too many.
    pub truncated: bool,
    /// How many directories could not be read, and so are shown without what they hold.
    pub unreadable_directories: u64,
}

/// One thing in a directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeEntry {
    /// The path in the workspace.
    pub path: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: EntryKind,
    /// The size of a file, if sizes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Where a symbolic link points, as it is written in the link; links are never followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `base64` if `path` and `target` are written so, because they are not UTF-8; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe, a socket or a device.
    Other,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchMatches {
    /// The matching lines, by file and line.
    pub matches: Vec<SearchMatch>,
    /// How many files were searched.
    pub files_searched: u64,
    /// How many files were not: they are no text, too large, or could not be read.
    pub files_skipped: u64,
    /// How many directories could not be read.
    pub unreadable_directories: u64,
    /// Whether matches were left out because there were too many.
    pub truncated: bool,
}

/// One matching line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchMatch {
    /// The path in the workspace.
    pub path: String,
    /// The line's number, from 1.
    pub line: u64,
    /// The line without its end; a very long one is cut.
    pub text: String,
    /// The lines before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// The lines after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// `base64` if `path` and all lines are written so, because one of them is not UTF-8; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
}
