//! Reading one directory, opened by its path beneath the root of the walk.

use super::level::DirectoryListing;
use super::{WalkError, WalkOptions};
use crate::deadline::{Deadline, Interruption};
use crate::directory::{Directory, PathError};
use rustix::fs::RawDir;
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::path::Path;

/// Reads directories, one at a time.
pub(super) struct Reader<'d> {
    root: &'d Directory,
    route: WalkOptions,
    deadline: &'d Deadline<'d>,
    buffer: Vec<MaybeUninit<u8>>,
}

const BUFFER_BYTES: usize = 64 << 10;

// === impl Reader ===

impl<'d> Reader<'d> {
    pub(super) fn new(root: &'d Directory, route: WalkOptions, deadline: &'d Deadline<'d>) -> Self {
        Self { root, route, deadline, buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES] }
    }

    /// Returns a reader with the same settings for another thread.
    pub(super) fn another(&self) -> Self {
        Self::new(self.root, self.route, self.deadline)
    }

    /// Returns an error if the work must end.
    pub(super) fn check(&self) -> Result<(), Interruption> {
        self.deadline.check()
    }

    /// Reads a directory; if there is more than `room`, the end of its order is left out.
    pub(super) fn read(&mut self, path: &Path, room: usize) -> Result<DirectoryListing, WalkError> {
        let mut level = DirectoryListing::new(path.as_os_str().len(), room);
        let cut = |level: &mut DirectoryListing| {
            level.cut();
            ControlFlow::Continue(())
        };
        self.fill(&mut level, path, cut).map(|_| level)
    }

    /// Reads a directory; `None` if it can't be read, or there is no room for all of it.
    pub(super) fn read_whole(
        &mut self,
        path: &Path,
        room: usize,
    ) -> Result<Option<DirectoryListing>, Interruption> {
        let mut level = DirectoryListing::new(path.as_os_str().len(), room);
        match self.fill(&mut level, path, |_| ControlFlow::Break(())) {
            Ok(filled) => Ok(filled.is_continue().then_some(level)),
            Err(WalkError::Path(_)) => Ok(None),
            Err(WalkError::Interrupted(interrupted)) => Err(interrupted),
        }
    }

    /// Fills a level, sorted; `overfull` decides what happens when there is no more memory for names.
    fn fill(
        &mut self,
        level: &mut DirectoryListing,
        path: &Path,
        overfull: impl Fn(&mut DirectoryListing) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, WalkError> {
        let directory = self.root.open_directory(path)?;
        self.deadline.check()?;
        let mut listed = RawDir::new(&directory, &mut self.buffer);
        while let Some(entry) = listed.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(PathError::io("read directory", path, error).into()),
            };
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                level.add(name, entry.file_type(), &directory, self.route);
            }
            if level.is_overfull() {
                self.deadline.check()?;
                if overfull(level).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        level.sort();
        Ok(ControlFlow::Continue(()))
    }
}
