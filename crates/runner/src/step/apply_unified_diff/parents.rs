//! Cache of open parent directories. Consecutive paths mostly lie in the same one, which is then opened once.

use crate::directory::{Directory, PathError};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Opens the directories that paths lie in, and keeps the last.
pub(super) struct Parents<'d> {
    root: &'d Directory,
    last: Option<(PathBuf, OwnedFd)>,
}

// === impl Parents ===

impl<'d> Parents<'d> {
    pub(super) fn new(root: &'d Directory) -> Self {
        Self { root, last: None }
    }

    /// Returns an empty cache for the same root, for another user of it.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.root)
    }

    /// The directory that holds `path`, and what `path` is called there.
    pub(super) fn of<'p>(&mut self, path: &'p str) -> Result<(&OwnedFd, &'p Path), PathError> {
        let path = Path::new(path);
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().map_or(path, Path::new);
        let held = match self.last.take() {
            Some((known, held)) if known == parent => held,
            _ => self.root.locate_parent(path)?.0,
        };
        let (_, held) = self.last.insert((parent.to_owned(), held));
        Ok((held, name))
    }

    /// The directory that holds `path`, opened for one use.
    pub(super) fn open_parent(&self, path: &str) -> Result<OwnedFd, PathError> {
        self.root.locate_parent(Path::new(path)).map(|(held, _)| held)
    }

    /// Drops the cached directory, because one was moved.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }
}
