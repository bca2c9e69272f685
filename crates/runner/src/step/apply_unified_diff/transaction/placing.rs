//! The changes themselves: renames and new directories, each noted so that it can be undone.

use super::{AppliedChange, Transaction, TransactionError, directory_of, io_error, name_of};
use crate::directory::PathError;
use crate::patch::RelativeName;
use rustix::fs::{Mode, RenameFlags};
use rustix::io::Errno;
use std::io;

// === impl Transaction ===

impl Transaction<'_> {
    /// Removes files and puts all drafts in their places, up to the first change that fails.
    pub(super) fn make_changes(&mut self, removed: &[RelativeName]) -> Result<(), TransactionError> {
        for path in removed {
            self.move_aside(path.as_str())?;
        }
        for number in 0..self.drafts.len() {
            let (draft, target) = (self.drafts[number].path.clone(), self.drafts[number].target.clone());
            self.put(draft, target)?;
        }
        Ok(())
    }

    /// Puts a draft in its place. An existing entry, perhaps an emptied directory, gets the draft's name.
    fn put(&mut self, draft: String, target: String) -> Result<(), TransactionError> {
        match self.rename(&draft, &target, RenameFlags::EXCHANGE) {
            Ok(()) => {
                self.done.push(AppliedChange::Swapped { draft, target });
                return Ok(());
            }
            Err(Errno::NOENT | Errno::NOTDIR) => self.make_parents(&target)?,
            // The file system can't swap.
            Err(Errno::INVAL) => match self.move_aside(&target) {
                Err(TransactionError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    self.make_parents(&target)?;
                }
                other => other?,
            },
            Err(error) => return Err(io_error("replace", &target, error.into())),
        }
        self.rename(&draft, &target, RenameFlags::empty())
            .map_err(|error| io_error("create", &target, error.into()))?;
        self.done.push(AppliedChange::Moved { from: draft, to: target });
        Ok(())
    }

    fn move_aside(&mut self, path: &str) -> Result<(), TransactionError> {
        let aside = self.fresh_name_beside(path);
        self.rename(path, &aside, RenameFlags::empty())
            .map_err(|error| io_error("remove", path, error.into()))?;
        self.done.push(AppliedChange::Moved { from: path.to_owned(), to: aside });
        Ok(())
    }

    fn make_parents(&mut self, target: &str) -> Result<(), TransactionError> {
        for (end, _) in target.match_indices('/') {
            let path = &target[..end];
            let (parent, name) = self.parents.of(path)?;
            match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.done.push(AppliedChange::MadeDirectory { path: path.to_owned() }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(io_error("make directory", path, error.into())),
            }
        }
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        let as_errno = |error: PathError| error.errno().unwrap_or(Errno::IO);
        if directory_of(from) == directory_of(to) {
            let (parent, from) = self.parents.of(from).map_err(as_errno)?;
            return rustix::fs::renameat_with(parent, from, parent, name_of(to), flags);
        }
        let target = self.parents.open_parent(to).map_err(as_errno)?;
        let (source, from) = self.parents.of(from).map_err(as_errno)?;
        rustix::fs::renameat_with(source, from, target, name_of(to), flags)
    }
}
