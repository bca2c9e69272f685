//! Walking a directory tree in a stable order.
//!
//! A directory comes before its entries; siblings are sorted by the bytes of their names. Symbolic links are reported
//! and not followed. Each directory is opened from the root of the walk by its path and closed when it is read. So
//! depth costs no descriptors, and a directory that is swapped meanwhile leads nowhere else.
//!
//! In a large tree a second thread may read directories ahead. The result doesn't depend on its progress: directories
//! that it could not read completely, the walk reads itself.

mod level;
mod read_ahead;
mod reader;

use crate::deadline::{Deadline, Interruption};
use crate::directory::{Directory, PathError};
use belljar_contract::result::output::EntryKind;
use level::DirectoryListing;
use read_ahead::ReadAhead;
use reader::Reader;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::{self, Scope};

/// Entry that a walk has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkEntry<'w> {
    /// Its path below the root of the walk.
    pub(crate) path: &'w [u8],
    /// Type of the entry.
    pub(crate) kind: EntryKind,
    /// Target, if it is a symbolic link and targets were requested.
    pub(crate) target: Option<&'w [u8]>,
    /// Size in bytes, if it is a file and sizes were requested.
    pub(crate) size_bytes: Option<u64>,
}

/// Options of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WalkOptions {
    /// Maximum depth; 1 is the root's own entries.
    pub(crate) max_depth: usize,
    /// Read the targets of symbolic links.
    pub(crate) targets: bool,
    /// Look up the sizes of files.
    pub(crate) sizes: bool,
    /// Number of directories after which a second thread reads ahead; `None` for never.
    pub(crate) read_ahead_after: Option<usize>,
}

/// Entries that a walk could not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SkippedEntries {
    /// True if a limit was exceeded: names in one directory, or depth.
    pub(crate) too_much: bool,
    /// Number of directories that could not be read.
    pub(crate) unreadable: u64,
}

/// Reason why a walk ended early, or did not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Interrupted(#[from] Interruption),
}

/// Memory for the names of all directories on the current path, in bytes. A directory that needs more is cut off at the
/// end of its order.
const NAMES_BYTES: usize = 24 << 20;

/// Minimum number of bytes for the names of a directory, however little is left.
const LEAST_NAMES_BYTES: usize = 64 << 10;

/// Number of directories from which on a second thread is used.
pub(crate) const WORTH_A_THREAD: usize = 32;

struct Walk<'scope, 'env> {
    route: WalkOptions,
    reader: Reader<'env>,
    levels: Vec<DirectoryListing>,
    path: Vec<u8>,
    missed: SkippedEntries,
    /// Number of entered directories.
    entered: usize,
    ahead: &'env ReadAhead,
    scope: &'scope Scope<'scope, 'env>,
}

/// Walks through everything beneath `root`, until all was reported or `visit` ends it.
pub(crate) fn walk(
    root: &Directory,
    route: WalkOptions,
    deadline: &Deadline<'_>,
    mut visit: impl FnMut(&WalkEntry<'_>) -> ControlFlow<()>,
) -> Result<SkippedEntries, WalkError> {
    let ahead = ReadAhead::new(route.max_depth);
    thread::scope(|scope| {
        let _ends_with_the_walk = ahead.end_when_dropped();
        let mut walk = Walk {
            route,
            reader: Reader::new(root, route, deadline),
            levels: Vec::new(),
            path: Vec::new(),
            missed: SkippedEntries::default(),
            entered: 0,
            ahead: &ahead,
            scope,
        };
        let first = walk.read_directory()?;
        walk.levels.push(first);
        walk.run(&mut visit)?;
        Ok(walk.missed)
    })
}

// === impl Walk ===

impl Walk<'_, '_> {
    fn run(&mut self, visit: &mut impl FnMut(&WalkEntry<'_>) -> ControlFlow<()>) -> Result<(), WalkError> {
        while let Some(level) = self.levels.last_mut() {
            self.path.truncate(level.path_length);
            let Some(entry) = level.next() else {
                self.levels.pop();
                continue;
            };
            if !self.path.is_empty() {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(entry.name);
            let kind = entry.kind;
            let met =
                WalkEntry { path: &self.path, kind, target: entry.target, size_bytes: entry.size_bytes };
            if visit(&met).is_break() {
                return Ok(());
            }
            if kind == EntryKind::Directory && self.levels.len() < self.route.max_depth {
                self.enter()?;
            }
        }
        Ok(())
    }

    /// Enters the directory at the current path, or counts it as unreadable.
    fn enter(&mut self) -> Result<(), WalkError> {
        if self.route.read_ahead_after == Some(self.entered) {
            self.ahead.start(self.scope, self.reader.another());
        }
        self.entered += 1;
        match self.read_directory() {
            Ok(level) => self.levels.push(level),
            Err(WalkError::Path(error)) if error.is_too_long() => self.missed.too_much = true,
            Err(WalkError::Path(_)) => self.missed.unreadable += 1,
            Err(interrupted) => return Err(interrupted),
        }
        Ok(())
    }

    fn read_directory(&mut self) -> Result<DirectoryListing, WalkError> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        let held: usize = self.levels.iter().map(DirectoryListing::bytes).sum();
        let room = NAMES_BYTES.saturating_sub(held).max(LEAST_NAMES_BYTES);
        if let Some(siblings) = self.levels.last_mut()
            && let Some(level) = self.ahead.take(path, siblings, &mut self.reader)?
            && level.bytes() <= room
        {
            return Ok(level);
        }
        let level = self.reader.read(path, room)?;
        self.missed.too_much |= level.is_cut();
        Ok(level)
    }
}

#[cfg(test)]
mod tests;
