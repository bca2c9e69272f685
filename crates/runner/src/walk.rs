//! Going through a directory tree in a stable order.
//!
//! A directory comes before what it holds, siblings in the order of the bytes of their names. Symbolic links are
//! shown and not followed. Each directory is opened from the root of the walk by its path and closed when it is read,
//! so that depth costs no descriptors, and what was swapped meanwhile leads nowhere else.
//!
//! Of a large tree a second thread may read directories ahead. What is shown doesn't depend on how far it gets: what
//! it could not read, or not whole, the walk reads itself.

mod level;
mod read_ahead;
mod reader;

use crate::deadline::{Deadline, Interrupted};
use crate::directory::{Directory, PathError};
use belljar_contract::result::output::EntryKind;
use level::Level;
use read_ahead::ReadAhead;
use reader::Reader;
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::{self, Scope};

/// One thing that was met on the way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Met<'w> {
    /// Its path below the root of the walk.
    pub(crate) path: &'w [u8],
    /// What it is.
    pub(crate) kind: EntryKind,
    /// Where it points, if it is a symbolic link and targets were wanted.
    pub(crate) target: Option<&'w [u8]>,
    /// How large it is, if it is a file and sizes were wanted.
    pub(crate) size_bytes: Option<u64>,
}

/// How to walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    /// How deep to go; 1 is the root's own entries.
    pub(crate) max_depth: usize,
    /// Whether the targets of symbolic links are read.
    pub(crate) targets: bool,
    /// Whether the sizes of files are looked up.
    pub(crate) sizes: bool,
    /// After how many directories a second thread reads ahead, if one ever does.
    pub(crate) read_ahead_after: Option<usize>,
}

/// What a walk could not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Missed {
    /// Whether something was left out because it was too much: names in one directory, or depth.
    pub(crate) too_much: bool,
    /// How many directories could not be read.
    pub(crate) unreadable: u64,
}

/// Why a walk ended early, or did not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Room for the names of all directories that are being gone through, in bytes. A directory that needs more is cut
/// off at the end of its order.
const NAMES_BYTES: usize = 24 << 20;

/// However little is left, a directory gets this much.
const LEAST_NAMES_BYTES: usize = 64 << 10;

/// So many directories make a tree worth a second thread.
pub(crate) const WORTH_A_THREAD: usize = 32;

struct Walk<'scope, 'env> {
    route: Route,
    reader: Reader<'env>,
    levels: Vec<Level>,
    path: Vec<u8>,
    missed: Missed,
    /// How many directories were entered.
    entered: usize,
    ahead: &'env ReadAhead,
    scope: &'scope Scope<'scope, 'env>,
}

/// Walks through what is beneath `root`, until everything was shown or `visit` has seen enough.
pub(crate) fn walk(
    root: &Directory,
    route: Route,
    deadline: &Deadline<'_>,
    mut visit: impl FnMut(&Met<'_>) -> ControlFlow<()>,
) -> Result<Missed, WalkError> {
    let ahead = ReadAhead::new(route.max_depth);
    thread::scope(|scope| {
        let _ends_with_the_walk = ahead.end_when_dropped();
        let mut walk = Walk {
            route,
            reader: Reader::new(root, route, deadline),
            levels: Vec::new(),
            path: Vec::new(),
            missed: Missed::default(),
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
    fn run(&mut self, visit: &mut impl FnMut(&Met<'_>) -> ControlFlow<()>) -> Result<(), WalkError> {
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
            let met = Met { path: &self.path, kind, target: entry.target, size_bytes: entry.size_bytes };
            if visit(&met).is_break() {
                return Ok(());
            }
            if kind == EntryKind::Directory && self.levels.len() < self.route.max_depth {
                self.enter()?;
            }
        }
        Ok(())
    }

    /// Goes on in the directory at the current path, or notes that it can't be read.
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

    fn read_directory(&mut self) -> Result<Level, WalkError> {
        let path = Path::new(OsStr::from_bytes(&self.path));
        let held: usize = self.levels.iter().map(Level::bytes).sum();
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
