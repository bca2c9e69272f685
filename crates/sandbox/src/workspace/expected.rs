//! State of a target when conflicts were looked for, checked again when changes are written to it; and the moves by which a
//! file that another program has saved there since is not lost.
//!
//! ```text
//! replace ─► looked at ─► exchanged with the new file ─► what came out is looked at ─► deleted
//!                └► another ─► left                          └► another ─► exchanged back
//! remove  ─► looked at ─► moved aside ─► what was moved is looked at ─► deleted
//!                └► another ─► left          └► another ─► moved back
//! ```
//! On a file system that can't exchange two names or refuse to replace one, a file is only looked at right before it is
//! replaced.

use super::baseline::FileStamp;
use super::file_owner::is_same;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::{
    AtFlags, OFlags, RenameFlags, Stat, fstat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Expected state of a target at the paths of a change set.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    found: BTreeMap<PathBuf, FoundFile>,
}

/// Expected state of one path.
#[derive(Debug, Clone, Copy)]
pub(super) enum ExpectedState {
    /// Whatever is there is replaced.
    Anything,
    /// No file.
    Nothing,
    /// The file that was found there.
    This(FoundFile),
}

/// A file or link, as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundFile {
    stamp: FileStamp,
    /// True if it has other names. A change at one of these changes the inode that it has, too.
    has_other_names: bool,
}

/// Why something was not written or removed.
#[derive(Debug)]
pub(super) enum WriteObstacle {
    /// The target holds something else there than is expected. It is as it was.
    Changed,
    /// It failed.
    Failed(std::io::Error),
}

// === impl Expectations ===

impl Expectations {
    /// Notes what a path of the target is.
    pub(super) fn note(&mut self, path: &Path, now: Option<&Stat>) {
        match now {
            Some(now) => drop(self.found.insert(path.to_owned(), FoundFile::of(now))),
            None => drop(self.found.remove(path)),
        }
    }

    /// Returns the expected state of a path. A path that was not noted is expected to hold nothing, so no file there is
    /// replaced.
    pub(super) fn at(&self, path: &Path) -> ExpectedState {
        self.found.get(path).map_or(ExpectedState::Nothing, |found| ExpectedState::This(*found))
    }
}

// === impl ExpectedState ===

impl ExpectedState {
    /// Returns true if what is at a path now is what is expected there. A file whose permission bits are `mode` already is, too: another
    /// name of it has been changed.
    pub(super) fn is_met_by(&self, now: &Stat, mode: u32) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => false,
            Self::This(found) => found.is(now) || found.is_but_for_mode(now, mode),
        }
    }

    /// Returns true if a path still has the file or directory that was found there, whatever was changed in it.
    pub(super) fn is_inode(&self, now: &Stat) -> bool {
        match self {
            Self::Anything => true,
            Self::Nothing => false,
            Self::This(found) => found.stamp.is_of_inode(now),
        }
    }

    /// Puts `made`, which lies under the name `temporary`, in its place, and returns how it was left there.
    ///
    /// # Errors
    /// [`WriteObstacle`]; what was to be put is deleted then. `ESTALE` if something else has the temporary name by now.
    pub(super) fn put(
        &self,
        (directory, temporary): (&Directory, &str),
        name: &OsStr,
        made: &Stat,
    ) -> Result<Stat, WriteObstacle> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(directory, temporary, flags, rustix::fs::Mode::empty())?;
        let whole = fstat(&opened)?;
        if !is_same(made, &whole) {
            return Err(Errno::STALE.into());
        }
        let put = match self {
            Self::Anything => renameat(directory, temporary, directory, name).map_err(WriteObstacle::from),
            Self::Nothing => rename_to_free((directory, OsStr::new(temporary)), name),
            Self::This(found) => found.exchange((directory, temporary), name, &whole),
        };
        if put.is_err() && is_file((directory, temporary), &whole) {
            let _ = unlinkat(directory, temporary, AtFlags::empty());
        }
        put?;
        // By descriptor: the name may have got another file by now. And if this one was written to, it isn't known as it is then.
        let left = fstat(&opened)?;
        Ok(if FileStamp::of(&left).has_content_of(&FileStamp::of(&whole)) { left } else { whole })
    }

    /// Removes a file or link. `temporary` is a name that nothing has.
    ///
    /// # Errors
    /// [`WriteObstacle`].
    pub(super) fn remove(
        &self,
        (directory, temporary): (&Directory, &str),
        name: &OsStr,
    ) -> Result<(), WriteObstacle> {
        let Self::This(found) = self else {
            return Ok(unlinkat(directory, name, AtFlags::empty())?);
        };
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            // It was removed meanwhile.
            Err(Errno::NOENT) => Ok(()),
            now if found.is(&now?) => found.take_out((directory, temporary), name),
            _ => Err(WriteObstacle::Changed),
        }
    }
}

// === impl FoundFile ===

impl FoundFile {
    fn of(stat: &Stat) -> Self {
        Self { stamp: FileStamp::of(stat), has_other_names: stat.st_nlink > 1 }
    }

    fn is(&self, now: &Stat) -> bool {
        let now = FileStamp::of(now);
        if self.has_other_names { self.stamp.is_but_for_inode_change(&now) } else { self.stamp == now }
    }

    /// A rename changes the time at which the inode was changed last.
    fn is_but_for_move(&self, now: &Stat) -> bool {
        self.stamp.is_but_for_inode_change(&FileStamp::of(now))
    }

    fn is_but_for_mode(&self, now: &Stat, mode: u32) -> bool {
        now.st_mode & 0o7777 == mode && self.stamp.has_content_of(&FileStamp::of(now))
    }

    /// Replaces the file that was found by `made`. If something else is there, it stays.
    fn exchange(
        &self,
        (directory, temporary): (&Directory, &str),
        name: &OsStr,
        made: &Stat,
    ) -> Result<(), WriteObstacle> {
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Err(WriteObstacle::Changed),
            now if self.is(&now?) => self.swap_in((directory, temporary), name, made),
            _ => Err(WriteObstacle::Changed),
        }
    }

    /// Replaces the current holder of the name by `made`. If that is not the file that was found after all, it gets its
    /// name back.
    fn swap_in(
        &self,
        (directory, temporary): (&Directory, &str),
        name: &OsStr,
        made: &Stat,
    ) -> Result<(), WriteObstacle> {
        match renameat_with(directory, temporary, directory, name, RenameFlags::EXCHANGE) {
            Err(Errno::NOENT) => return Err(WriteObstacle::Changed),
            Err(Errno::INVAL | Errno::NOSYS) => {
                return Ok(renameat(directory, temporary, directory, name)?);
            }
            exchanged => exchanged?,
        }
        let came_out = statat(directory, temporary, AtFlags::SYMLINK_NOFOLLOW)?;
        if self.is_but_for_move(&came_out) {
            return Ok(unlinkat(directory, temporary, AtFlags::empty())?);
        }
        let exchange = || renameat_with(directory, temporary, directory, name, RenameFlags::EXCHANGE);
        exchange()?;
        if !is_file((directory, temporary), made) {
            // It was saved once more meanwhile: the newest gets the name, and the one before stays beside it.
            exchange()?;
            keep_aside((directory, temporary))?;
        }
        Err(WriteObstacle::Changed)
    }

    /// Removes what has the name now. If that is not what was found after all, it gets its name back.
    fn take_out(
        &self,
        (directory, temporary): (&Directory, &str),
        name: &OsStr,
    ) -> Result<(), WriteObstacle> {
        let aside = OsStr::new(temporary);
        rename_to_free((directory, name), aside)?;
        let moved = statat(directory, temporary, AtFlags::SYMLINK_NOFOLLOW)?;
        if self.is_but_for_move(&moved) {
            return Ok(unlinkat(directory, temporary, AtFlags::empty())?);
        }
        match rename_to_free((directory, aside), name) {
            // It was saved once more meanwhile.
            Err(WriteObstacle::Changed) => keep_aside((directory, temporary))?,
            moved => moved?,
        }
        Err(WriteObstacle::Changed)
    }
}

/// Returns true if a name has this file, and nothing was written to it since.
fn is_file((directory, name): (&Directory, &str), file: &Stat) -> bool {
    let now = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    now.is_ok_and(|now| FileStamp::of(&now).has_content_of(&FileStamp::of(file)))
}

/// Renames something, unless there is something of the new name.
pub(super) fn rename_to_free(
    (directory, from): (&Directory, &OsStr),
    to: &OsStr,
) -> Result<(), WriteObstacle> {
    match renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Err(WriteObstacle::Changed),
        Err(Errno::INVAL | Errno::NOSYS) => match statat(directory, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(renameat(directory, from, directory, to)?),
            found => found.map_or_else(|errno| Err(errno.into()), |_| Err(WriteObstacle::Changed)),
        },
        renamed => Ok(renamed?),
    }
}

/// Gives what lies under a temporary name one that nothing deletes.
fn keep_aside((directory, temporary): (&Directory, &str)) -> Result<(), WriteObstacle> {
    let kept = format!("belljar-saved-{}", uuid::Uuid::new_v4());
    rename_to_free((directory, OsStr::new(temporary)), OsStr::new(&kept))
}

// === impl WriteObstacle ===

impl From<std::io::Error> for WriteObstacle {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Errno> for WriteObstacle {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

impl From<DirectoryError> for WriteObstacle {
    fn from(error: DirectoryError) -> Self {
        Self::Failed(error.into())
    }
}

#[cfg(test)]
mod tests;
