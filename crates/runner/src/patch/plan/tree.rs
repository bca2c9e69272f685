//! The files that a patch is planned on.

use std::io;

use crate::patch::mode::FileMode;
use crate::patch::name::RelativeName;

/// A workspace to look up files in. Nothing is ever written through it.
///
/// No look-up may follow a symlink: a path that is one, or has one among its parents, is a symlink. A path
/// below something that isn't a directory doesn't exist.
pub trait FileTree {
    /// Returns the file at `path` with its bytes, or another entry there; `None` if nothing is there.
    ///
    /// The tree limits how much is read: a file it finds too large is an error.
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>>;

    /// Returns the kind of entry at `path`, without reading it; `None` if nothing is there.
    fn kind(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntryKind>> {
        Ok(self.read(path)?.map(|entry| entry.kind()))
    }

    /// Names of the entries in a directory. Asked only where a patch puts a file in a directory's place.
    fn children(&mut self, directory: &RelativeName) -> io::Result<Vec<Vec<u8>>>;
}

/// Entry at a path, with a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileTreeEntry {
    /// A plain file.
    File {
        /// Its mode, of which only the owner's execute bit counts.
        mode: FileMode,
        /// Its content.
        bytes: Vec<u8>,
    },
    /// A directory.
    Directory,
    /// A symlink, here or further up.
    Symlink,
    /// Anything else.
    Special,
}

/// Kind of entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTreeEntryKind {
    /// A plain file of this mode.
    File(FileMode),
    /// A directory.
    Directory,
    /// A symlink, here or further up.
    Symlink,
    /// Anything else.
    Special,
}

// === impl FileTreeEntry ===

impl FileTreeEntry {
    /// Returns the kind of the entry.
    pub fn kind(&self) -> FileTreeEntryKind {
        match self {
            Self::File { mode, .. } => FileTreeEntryKind::File(*mode),
            Self::Directory => FileTreeEntryKind::Directory,
            Self::Symlink => FileTreeEntryKind::Symlink,
            Self::Special => FileTreeEntryKind::Special,
        }
    }
}
