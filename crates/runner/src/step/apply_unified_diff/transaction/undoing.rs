//! Completion of a transaction: undoing the changes if one failed, else removing the replaced files.

use super::{AppliedChange, Transaction, TransactionError, name_of};
use crate::patch::RelativeName;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

// === impl Transaction ===

impl Transaction<'_> {
    /// Undoes all changes, the last first, and returns the cause.
    pub(super) fn undo(&mut self, cause: TransactionError) -> TransactionError {
        let mut not_undone = None;
        self.parents.forget();
        while let Some(done) = self.done.pop() {
            let undone = match &done {
                AppliedChange::Moved { from, to } => self.rename(to, from, RenameFlags::empty()),
                AppliedChange::Swapped { draft, target } => self.rename(draft, target, RenameFlags::EXCHANGE),
                AppliedChange::MadeDirectory { path } => self.remove_directory(path),
            };
            if let Err(error) = undone {
                not_undone = not_undone.or(Some((done.into_path(), error)));
            }
            self.parents.forget();
        }
        match not_undone {
            None => cause,
            Some((path, error)) => {
                TransactionError::NotUndone { path, cause: Box::new(cause), source: error.into() }
            }
        }
    }

    /// Removes the replaced and moved files, and the directories that become empty by that. The changes are made
    /// already, so an entry that can't be removed stays and does no harm.
    pub(super) fn sweep(&mut self, removed: &[RelativeName]) {
        self.parents.forget();
        self.drafts.clear();
        for done in std::mem::take(&mut self.done) {
            match done {
                AppliedChange::Swapped { draft: path, .. } => self.remove(&path),
                AppliedChange::Moved { to: path, .. } if self.is_ours(&path) => self.remove(&path),
                AppliedChange::Moved { .. } | AppliedChange::MadeDirectory { .. } => {}
            }
        }
        for path in removed {
            let above: Vec<&str> =
                path.as_str().match_indices('/').map(|(end, _)| &path.as_str()[..end]).collect();
            for directory in above.into_iter().rev() {
                if self.remove_directory(directory).is_err() {
                    break;
                }
                self.parents.forget();
            }
        }
    }

    fn is_ours(&self, path: &str) -> bool {
        name_of(path).starts_with(&self.prefix)
    }

    pub(super) fn remove(&mut self, path: &str) {
        let prefix = self.prefix.clone();
        if let Ok((parent, name)) = self.parents.of(path)
            && rustix::fs::unlinkat(parent, name, AtFlags::empty()) == Err(Errno::ISDIR)
        {
            let _ = remove_emptied(parent, name, &prefix);
        }
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), Errno> {
        let (parent, name) = self.parents.of(path).map_err(|error| error.errno().unwrap_or(Errno::IO))?;
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
    }
}

/// Removes a directory that holds nothing but moved files and other such directories. A directory with anything else
/// stays.
fn remove_emptied(parent: &OwnedFd, name: &Path, prefix: &str) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(prefix.as_bytes()) {
            rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
        } else if !matches!(name.to_bytes(), b"." | b"..") && entry.file_type() == FileType::Directory {
            remove_emptied(&directory, Path::new(OsStr::from_bytes(name.to_bytes())), prefix)?;
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}
