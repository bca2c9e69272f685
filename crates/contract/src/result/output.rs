//! Outputs of each type of step.
//!
//! Bytes that are not UTF-8 are encoded in base64, and a member beside them names the encoding ([`ContentEncoding`]).
//! Nothing is replaced. Truncated outputs are flagged.

pub use crate::job::step::write_file::ContentEncoding;

use crate::result::{Change, ResourceUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Output of a step, by its type.
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

/// Result of running a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandOutput {
    /// Its exit code; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it; null if it exited.
    pub signal: Option<i32>,
    /// Standard output, up to the limit.
    pub stdout: String,
    /// Standard error, up to the limit.
    pub stderr: String,
    /// Encoding of `stdout`.
    pub stdout_encoding: ContentEncoding,
    /// Encoding of `stderr`.
    pub stderr_encoding: ContentEncoding,
    /// Outputs that were truncated at the limit.
    pub truncated: OutputTruncation,
    /// Duration, in milliseconds.
    pub duration_ms: u64,
    /// Resource usage of the program and the children it waited for.
    pub resource_usage: ResourceUsage,
}

/// Outputs that were truncated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputTruncation {
    /// True if stdout was truncated.
    pub stdout: bool,
    /// True if stderr was truncated.
    pub stderr: bool,
}

/// Result of writing a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenFile {
    /// The path in the workspace.
    pub path: String,
    /// The size of the file now.
    pub size_bytes: u64,
    /// True if the file is new.
    pub created: bool,
    /// Its permission bits in octal, such as `0644`.
    pub mode: String,
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileContent {
    /// The path in the workspace.
    pub path: String,
    /// The content, or the lines asked for.
    pub content: String,
    /// Encoding of `content`.
    pub encoding: ContentEncoding,
    /// The size of the whole file.
    pub size_bytes: u64,
    /// True if `content` was truncated at the limit.
    pub truncated: bool,
}

/// Result of applying a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppliedDiff {
    /// The files, in the order of the patch.
    pub files: Vec<PatchedFile>,
}

/// Effect of a patch on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchedFile {
    /// The path in the workspace, after the patch (of a deleted file: before).
    pub path: String,
    /// Kind of change.
    pub change: Change,
    /// The path it was renamed or copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Content of a directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The directory that was listed, in the workspace; `.` for its root.
    pub path: String,
    /// Entries below it: a directory before its entries, siblings sorted by the bytes of their names.
    pub entries: Vec<TreeEntry>,
    /// True if entries were left out because there were too many.
    pub truncated: bool,
    /// Number of directories that could not be read, and so are shown without their entries.
    pub unreadable_directories: u64,
}

/// Entry of a directory tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeEntry {
    /// The path in the workspace.
    pub path: String,
    /// Type of the entry.
    #[serde(rename = "type")]
    pub kind: EntryKind,
    /// The size of a file, if sizes were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Target of a symbolic link, as written in the link; links are never followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// `base64` if `path` and `target` are written so, because they are not UTF-8; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<ContentEncoding>,
}

/// Type of an entry.
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

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchMatches {
    /// The matching lines, by file and line.
    pub matches: Vec<SearchMatch>,
    /// Number of files that were searched.
    pub files_searched: u64,
    /// Number of files that were skipped: they are not text, too large, or could not be read.
    pub files_skipped: u64,
    /// Number of directories that could not be read.
    pub unreadable_directories: u64,
    /// True if matches were left out because there were too many.
    pub truncated: bool,
}

/// A matching line.
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
