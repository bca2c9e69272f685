//! Protocol between the host and our program that performs tool actions in a sandbox.
//!
//! One JSON document goes in, one comes out. The host limits how much it reads. It treats an answer only as a claim
//! from inside the sandbox.

mod answer;
mod bytes;
mod request;
mod tree;

pub use answer::{
    Answer, DirectoryContents, DirectoryEntry, FileDeleteResult, FileEditResult, FileReadResult,
    FileWriteResult, OutputExcerpt, ProgramExit, ProgramResult, RefusalReason, RequestRefusal,
};
pub use bytes::Bytes;
pub use request::{
    DeleteFile, EditFile, ListDirectory, ReadFile, Request, RunProgram, VARIABLE_OF_WORKSPACE, WriteFile,
};
pub use tree::{LONGEST_TREE_LINE_BYTES, PUT_TREE, TAKE_TREE, TreeLine};

/// Argument that makes `cynode-sba` perform a request.
pub const SUBCOMMAND: &str = "workbench";

/// Maximum number of bytes of a file that are read.
pub const MOST_READ_BYTES: usize = 1 << 20;

/// The largest content that is written, in bytes.
pub const MOST_WRITTEN_BYTES: usize = 10 << 20;

/// The largest file that is edited, in bytes.
pub const MOST_EDITED_BYTES: usize = 1 << 20;

/// Maximum number of entries of a directory that are listed.
pub const MOST_ENTRIES: usize = 1_000;

/// Maximum length of a request, in bytes: content in Base64, or two texts in which every character is escaped.
pub const LONGEST_REQUEST_BYTES: usize = 16 << 20;

/// Maximum length of an answer, in bytes.
pub const LONGEST_ANSWER_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests;
