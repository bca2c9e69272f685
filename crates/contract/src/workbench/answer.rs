//! What is answered.

use super::Bytes;
use crate::result::output::EntryKind;
use serde::{Deserialize, Serialize};

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "each is what its content says")]
pub enum Answer {
    Ran(Ran),
    FileRead(FileRead),
    Written(Written),
    Edited(Edited),
    Listed(Listed),
    Deleted(Deleted),
    Refused(Refused),
}

/// A program that has been run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// How it ended.
    pub ending: Ending,
    /// What it has printed.
    pub stdout: Kept,
    /// What it has complained of.
    pub stderr: Kept,
    /// How long it ran.
    pub duration_ms: u64,
    /// Whether something of it may still run. Who says so waits to be killed, and what came of it with it.
    pub left_behind: bool,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By itself, with that code.
    Exited(i32),
    /// By that signal.
    Killed(i32),
    /// Its time was over.
    OutOfTime,
}

/// An output of a program: all of it, or its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The first of it.
    pub head: Bytes,
    /// The last of it, which follows on the first unless something was left out.
    pub tail: Bytes,
    /// So many bytes were between them.
    pub left_out_bytes: u64,
}

/// A file that has been read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRead {
    /// Its text, or the lines of it that were wanted.
    pub content: String,
    /// How large it is.
    pub size_bytes: u64,
    /// How many lines were looked at: all of the file's unless `truncated`.
    pub line_count: u64,
    /// Whether there is more.
    pub truncated: bool,
}

/// A file that has been written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Whether it was not there before.
    pub created: bool,
}

/// A file that has been edited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edited {
    /// At how many places.
    pub replacements: u64,
    /// How large it is now.
    pub size_bytes: u64,
}

/// A directory that has been listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// What it holds.
    pub entries: Vec<Entry>,
    /// Whether there is more.
    pub truncated: bool,
    /// How many directories in it could not be read.
    pub unreadable_directories: u64,
}

/// Something that a directory holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its path below the directory that was listed. What is no text, and what would mislead a reader, is escaped.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// How large, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Where it points, if it is a symbolic link; escaped like the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether it points out of the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leads_out: bool,
}

/// A file that has been removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deleted {
    /// How large it was.
    pub size_bytes: u64,
}

/// Something that was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// Its class.
    pub why: Refusal,
    /// What was wrong.
    pub message: String,
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// What was asked can't be meant.
    Invalid,
    /// Nothing of that name, or no such text.
    NotFound,
    /// It leads out of the workspace, through a link that is not followed, or to what is git's own.
    Forbidden,
    /// It is something else than it would have to be.
    WrongKind,
    /// It is no text.
    NotText,
    /// It is more than may be.
    TooLarge,
    /// There is more than one of what there should be one of.
    Ambiguous,
    /// Something is there already.
    Exists,
    /// There is no such program.
    NoProgram,
    /// It did not work.
    Failed,
}

// === impl Refused ===

impl Refused {
    /// That, of that class.
    pub fn new(why: Refusal, message: impl Into<String>) -> Self {
        Self { why, message: message.into() }
    }
}
