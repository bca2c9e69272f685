//! Answers.

use super::Bytes;
use crate::result::output::EntryKind;
use serde::{Deserialize, Serialize};

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "each is what its content says")]
pub enum Answer {
    Ran(ProgramResult),
    FileRead(FileReadResult),
    Written(FileWriteResult),
    Edited(FileEditResult),
    Listed(DirectoryContents),
    Deleted(FileDeleteResult),
    Refused(RequestRefusal),
}

/// A program that has been run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramResult {
    /// Outcome of the program.
    pub ending: ProgramExit,
    /// Standard output.
    pub stdout: OutputExcerpt,
    /// Standard error.
    pub stderr: OutputExcerpt,
    /// Duration, in milliseconds.
    pub duration_ms: u64,
    /// True if processes of the program may still run. The program that reports this waits to be killed, so that they
    /// are killed with it.
    pub left_behind: bool,
}

/// Outcome of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramExit {
    /// The program exited with that code.
    Exited(i32),
    /// The program was ended by that signal.
    Killed(i32),
    /// The program exceeded its time limit.
    OutOfTime,
}

/// An output of a program: all of it, or its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputExcerpt {
    /// Beginning of the output.
    pub head: Bytes,
    /// End of the output, which directly follows the beginning unless something was left out.
    pub tail: Bytes,
    /// Number of bytes that were left out between them.
    pub left_out_bytes: u64,
}

/// A file that has been read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileReadResult {
    /// Text of the file, or the requested lines.
    pub content: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Number of lines that were examined: all of the file's unless `truncated`.
    pub line_count: u64,
    /// True if there is more.
    pub truncated: bool,
}

/// A file that has been written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWriteResult {
    /// True if the file is new.
    pub created: bool,
}

/// A file that has been edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEditResult {
    /// Number of replaced places.
    pub replacements: u64,
    /// New size of the file, in bytes.
    pub size_bytes: u64,
}

/// A directory that has been listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryContents {
    /// Entries of the directory.
    pub entries: Vec<DirectoryEntry>,
    /// True if there are more.
    pub truncated: bool,
    /// Number of directories in it that could not be read.
    pub unreadable_directories: u64,
}

/// Entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryEntry {
    /// Path below the listed directory. Bytes that are not text and characters that mislead readers are escaped.
    pub path: String,
    /// Type of the entry.
    pub kind: EntryKind,
    /// Size in bytes, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Target, if it is a symbolic link; escaped like the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// True if the link points out of the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leads_out: bool,
}

/// A file that has been removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDeleteResult {
    /// Size of the file, in bytes.
    pub size_bytes: u64,
}

/// Refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestRefusal {
    /// Its class.
    pub why: RefusalReason,
    /// Error message.
    pub message: String,
}

/// Reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// The request is invalid.
    Invalid,
    /// There is no file of that name, or no such text in it.
    NotFound,
    /// The path leads out of the workspace, through a link that is not followed, or into git's own directory.
    Forbidden,
    /// The path is of another type than the request needs.
    WrongKind,
    /// The file is not text.
    NotText,
    /// The amount exceeds a limit.
    TooLarge,
    /// The text occurs more than once.
    Ambiguous,
    /// The path exists already.
    Exists,
    /// There is no such program.
    NoProgram,
    /// The operation failed.
    Failed,
}

// === impl RequestRefusal ===

impl RequestRefusal {
    /// Creates a refusal of that class.
    pub fn new(why: RefusalReason, message: impl Into<String>) -> Self {
        Self { why, message: message.into() }
    }
}
