//! What tools have done in a sandbox: what is asked of the program of ours that does it there, and what it answers.
//!
//! One JSON document goes in, one comes out. The host bounds what it reads and believes no more of an answer than that
//! somebody inside has said it.

mod answer;
mod bytes;
mod request;
mod tree;

pub use answer::{
    Answer, Deleted, Edited, Ending, Entry, FileRead, Kept, Listed, Ran, Refusal, Refused, Written,
};
pub use bytes::Bytes;
pub use request::{
    DeleteFile, EditFile, ListDirectory, ReadFile, Request, Run, VARIABLE_OF_WORKSPACE, WriteFile,
};
pub use tree::{LONGEST_TREE_LINE_BYTES, PUT_TREE, TAKE_TREE, TreeLine};

/// The argument that has `cynode-sba` do what is asked.
pub const SUBCOMMAND: &str = "workbench";

/// As much of a file is read, in bytes.
pub const MOST_READ_BYTES: usize = 1 << 20;

/// The largest content that is written, in bytes.
pub const MOST_WRITTEN_BYTES: usize = 10 << 20;

/// The largest file that is edited, in bytes.
pub const MOST_EDITED_BYTES: usize = 1 << 20;

/// So many entries of a directory are listed.
pub const MOST_ENTRIES: usize = 1_000;

/// No request is longer, in bytes: content in Base64, or two texts in which every character is escaped.
pub const LONGEST_REQUEST_BYTES: usize = 16 << 20;

/// No answer is longer, in bytes.
pub const LONGEST_ANSWER_BYTES: usize = 8 << 20;

#[cfg(test)]
mod tests;
