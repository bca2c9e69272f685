//! A tree of files on its way into a sandbox, or out of one: a line of JSON for each thing in it, and behind that of a file its
//! content. Directories come before what is in them.
//!
//! ```text
//! in:  {"directory": …}⏎ {"file": …}⏎ CONTENT {"end": {}}⏎          out: {"end": {}}⏎, or {"refused": …}⏎
//! ```

use super::{Bytes, Refused};
use serde::{Deserialize, Serialize};

/// The argument that has `cynode-sba` make a tree of what stands on its stdin, in the directory that follows. It isn't there yet,
/// or is empty, and has all of it or nothing.
pub const PUT_TREE: &str = "put-tree";

/// The argument that has it tell the tree in the directory that follows, without what is in any `.git`.
pub const TAKE_TREE: &str = "take-tree";

/// No line is longer, its end included, in bytes: a path and what a link says, in Base64.
pub const LONGEST_TREE_LINE_BYTES: usize = 16 << 10;

/// A line. Paths are relative to the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TreeLine {
    /// A directory.
    Directory {
        /// Its path.
        path: Bytes,
    },
    /// A file, whose content follows.
    File {
        /// Its path.
        path: Bytes,
        /// Whether it can be run.
        is_executable: bool,
        /// How long its content is.
        size_bytes: u64,
    },
    /// A symbolic link.
    Link {
        /// Its path.
        path: Bytes,
        /// What it says.
        target: Bytes,
    },
    /// What is none of these, and stays where it is.
    Other {
        /// Its path.
        path: Bytes,
    },
    /// That was all.
    End {},
    /// It was not done.
    Refused(Refused),
}
