//! Transfer of a tree of files into a sandbox, or out of one: a line of JSON for each entry, followed by the content of
//! a file. Directories come before their entries.
//!
//! ```text
//! in:  {"directory": …}⏎ {"file": …}⏎ CONTENT {"end": {}}⏎          out: {"end": {}}⏎, or {"refused": …}⏎
//! ```

use super::{Bytes, RequestRefusal};
use serde::{Deserialize, Serialize};

/// Argument that makes `cynode-sba` create a tree from its stdin, in the directory that follows. That directory must
/// not exist or be empty. It gets the whole tree or nothing.
pub const PUT_TREE: &str = "put-tree";

/// Argument that makes it write the tree in the directory that follows to stdout, without the content of any `.git`.
pub const TAKE_TREE: &str = "take-tree";

/// Maximum length of a line with its end, in bytes: a path and the target of a link, in Base64.
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
        /// True if it is executable.
        is_executable: bool,
        /// Length of the content, in bytes.
        size_bytes: u64,
    },
    /// A symbolic link.
    Link {
        /// Its path.
        path: Bytes,
        /// Target of the link.
        target: Bytes,
    },
    /// An entry of any other type, which stays where it is.
    Other {
        /// Its path.
        path: Bytes,
    },
    /// End of the transfer.
    End {},
    /// The request was refused.
    Refused(RequestRefusal),
}
