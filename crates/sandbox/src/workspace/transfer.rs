//! Carries changes from one tree into another, each file at once or not at all.
//!
//! Removals come first, deepest paths first; then additions, parents first: a directory may replace a file and the reverse.
//! Directories get their permissions last, so that these don't prevent additions to them.

use super::acl::{self, AccessList};
use super::changes::{PathChange, PathState};
use super::expected::{Expectations, ExpectedState, WriteObstacle, rename_to_free};
use super::extents;
use super::file_owner::{self, FileOwner, is_same};
use super::handoff::LinkTargets;
use super::relaxed_permissions::{self, RelaxedPermissions};
use belljar_confine::as_user::AsUser;
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::reserve::FreeSpace;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, fchmod, fstat, mkdirat, mknodat, openat, seek, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Source and target of a transfer.
#[derive(Debug)]
pub(super) struct TransferRoute<'a> {
    pub(super) from: &'a Directory,
    /// Targets that links there had when they were looked at. Without it, their targets now are used.
    pub(super) links: Option<&'a LinkTargets>,
    /// Opens files there.
    pub(super) open: fn(&Directory, &Path) -> Result<File, DirectoryError>,
    pub(super) to: &'a Directory,
    pub(super) owner: TransferOwner,
    /// Temporary name of a file while it is written; one that an earlier attempt has left is replaced.
    pub(super) temporary: &'a str,
    /// State found there when conflicts were looked for. Without it everything is replaced.
    pub(super) expected: Option<&'a Expectations>,
}

/// Owner of the files that are put.
#[derive(Debug, Clone, Copy)]
pub(super) enum TransferOwner {
    /// The owner of the file that is replaced, or of the directory that the file is put in.
    AsBefore,
    /// The user that puts the file.
    User(Identity),
}

/// Result of putting a file.
enum PutOutcome {
    /// A file or link, and how it was left.
    File(Stat),
    /// A directory that was there.
    Directory,
    /// A new directory, as it was made.
    NewDirectory(Stat),
    /// A file that is no part of a workspace.
    Nothing,
}

/// Place in which a file or link is made.
struct TransferTarget<'a> {
    parent: &'a Directory,
    /// The file that has its name until then.
    replaced: Option<&'a OwnedFd>,
    owner: Option<FileOwner>,
}

/// A path that can't be written. Those before it were.
#[derive(Debug, thiserror::Error)]
#[error("can't write {}", path.display())]
pub(super) struct TransferError {
    pub(super) path: PathBuf,
    #[source]
    pub(super) source: std::io::Error,
}

// === impl TransferRoute ===

impl TransferRoute<'_> {
    /// Brings every path to its state after the change. `put` is called with the state in which each file was left. Returns
    /// the paths that are left as they are, because the target holds something else there than is expected, with those that
    /// can't be without them.
    pub(super) fn carry(
        &self,
        changes: &[(&Path, PathChange)],
        mut put: impl FnMut(&Path, &Stat),
    ) -> Result<BTreeSet<PathBuf>, TransferError> {
        let mut opened = RelaxedPermissions::in_tree(self.to);
        self.open_up(changes, &mut opened)?;
        let (mut left_alone, mut made) = (BTreeSet::new(), BTreeMap::new());
        for (path, changed) in changes.iter().rev().filter(|(_, changed)| makes_way(changed)) {
            match self.remove(path, changed.before) {
                Err(WriteObstacle::Changed) => drop(left_alone.insert(path.to_path_buf())),
                Err(WriteObstacle::Failed(error)) => return Err(failed(path)(error)),
                Ok(()) => {}
            }
        }
        for (path, changed) in changes {
            let Some(after) = changed.after else { continue };
            if path.ancestors().any(|above| left_alone.contains(above)) {
                left_alone.insert(path.to_path_buf());
                continue;
            }
            match self.put(path, changed, after) {
                Ok(PutOutcome::File(left)) => put(path, &left),
                Ok(PutOutcome::NewDirectory(stat)) => drop(made.insert(*path, stat)),
                Ok(PutOutcome::Directory | PutOutcome::Nothing) => {}
                Err(WriteObstacle::Changed) => drop(left_alone.insert(path.to_path_buf())),
                Err(WriteObstacle::Failed(error)) => return Err(failed(path)(error)),
            }
        }
        for (path, changed) in changes.iter().rev() {
            if let Some(after) = changed.after.filter(|after| after.kind == FileType::Directory)
                && self
                    .settle_directory(path, (changed.before, after), made.get(path))
                    .map_err(failed(path))?
            {
                opened.forget(path);
            }
        }
        Ok(left_alone)
    }

    /// Gives a directory its permissions, unless they are other ones by now or the name has another directory: neither the one that was
    /// `made` nor the one that was found there. Returns whether it was done.
    fn settle_directory(
        &self,
        path: &Path,
        (before, after): (Option<PathState>, PathState),
        made: Option<&Stat>,
    ) -> std::io::Result<bool> {
        let was_other = |now: &Stat| {
            before.is_some_and(|before| before.mode != after.mode && before.mode == now.st_mode & 0o777)
        };
        let is_meant = |now: &Stat| match made {
            Some(made) => is_same(made, now),
            None => self.expected.is_none() || (self.expected(path).is_inode(now) && was_other(now)),
        };
        let settled =
            self.act(|| Ok::<_, std::io::Error>(self.to.change_mode_if(path, after.mode, is_meant)))?;
        match settled {
            // It is gone, or something else has its name.
            Err(DirectoryError { source: Errno::NOENT | Errno::NOTDIR | Errno::LOOP, .. })
                if self.expected.is_some() =>
            {
                Ok(false)
            }
            settled => Ok(settled?.is_some()),
        }
    }

    /// Gives the acting user access to every directory on the way that is its own, outermost first.
    fn open_up(
        &self,
        changes: &[(&Path, PathChange)],
        opened: &mut RelaxedPermissions<'_>,
    ) -> Result<(), TransferError> {
        let own_uid = rustix::process::geteuid();
        let uid = match self.owner {
            TransferOwner::AsBefore if own_uid.is_root() => return Ok(()),
            TransferOwner::AsBefore => own_uid.as_raw(),
            TransferOwner::User(user) => user.host_uid,
        };
        let on_the_way: BTreeSet<&Path> =
            changes.iter().flat_map(|(path, _)| path.ancestors().skip(1)).collect();
        for path in on_the_way {
            self.act(|| self.open_one_up(path, uid, opened)).map_err(failed(path))?;
        }
        Ok(())
    }

    fn open_one_up(&self, path: &Path, uid: u32, opened: &mut RelaxedPermissions<'_>) -> std::io::Result<()> {
        let is_top = path.as_os_str().is_empty();
        let stat = if is_top { Some(self.to.stat_itself()?) } else { self.to.stat(path)? };
        let Some(stat) = stat else { return Ok(()) };
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !is_directory || stat.st_uid != uid || stat.st_mode & 0o700 == 0o700 {
            return Ok(());
        }
        relaxed_permissions::note(opened.modes(), path, &stat);
        let mode = (stat.st_mode & 0o1777) | 0o700;
        Ok(if is_top { self.to.set_mode(mode) } else { self.to.change_mode(path, mode) }?)
    }

    /// Acts in the tree as the user that may.
    fn act<T, E: From<std::io::Error>>(&self, act: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let _user = match self.owner {
            TransferOwner::AsBefore => None,
            TransferOwner::User(user) => {
                let user = AsUser::become_user(user.host_uid, user.host_gid);
                Some(user.map_err(std::io::Error::from)?)
            }
        };
        act()
    }

    /// Returns the expected state of a path.
    fn expected(&self, path: &Path) -> ExpectedState {
        self.expected.map_or(ExpectedState::Anything, |expected| expected.at(path))
    }

    /// The directory that a path is in, and its last name. One that is gone, or no directory any more, was changed.
    fn parent_of<'p>(&self, path: &'p Path) -> Result<(Directory, &'p OsStr), WriteObstacle> {
        match self.to.parent_of(path) {
            Err(DirectoryError { source: Errno::NOENT | Errno::NOTDIR | Errno::LOOP, .. })
                if self.expected.is_some() =>
            {
                Err(WriteObstacle::Changed)
            }
            found => Ok(found?),
        }
    }

    fn remove(&self, path: &Path, before: Option<PathState>) -> Result<(), WriteObstacle> {
        let is_directory = before.is_some_and(|before| before.kind == FileType::Directory);
        self.act(|| {
            let (parent, name) = self.parent_of(path)?;
            if !is_directory {
                self.clear_temporary(&parent)?;
                return self.expected(path).remove((&parent, self.temporary), name);
            }
            match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
                // Something has come into it, or in its place.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) if self.expected.is_some() => {
                    Err(WriteObstacle::Changed)
                }
                Err(Errno::NOENT) if self.expected.is_some() => Ok(()),
                removed => Ok(removed?),
            }
        })
    }

    fn put(&self, path: &Path, changed: &PathChange, after: PathState) -> Result<PutOutcome, WriteObstacle> {
        // The entry that was in the way is gone.
        let expected = match makes_way(changed) && self.expected.is_some() {
            true => ExpectedState::Nothing,
            false => self.expected(path),
        };
        match after.kind {
            FileType::Directory => self.act(|| self.put_directory(path, after.mode)),
            FileType::Symlink => {
                let says = match self.links {
                    Some(links) => links.get(path).cloned().ok_or(Errno::STALE)?,
                    None => self.from.read_link(path)?,
                };
                self.act(|| self.replace((path, expected), |to| self.link(&says, to)))
            }
            FileType::RegularFile if changed.same_content => {
                self.act(|| {
                    let is_met = |now: &Stat| expected.is_met_by(now, after.mode);
                    let left = self.to.change_mode_if(path, after.mode, is_met);
                    match left {
                        Err(DirectoryError {
                            source: Errno::NOENT | Errno::NOTDIR | Errno::LOOP, ..
                        }) if self.expected.is_some() => Err(WriteObstacle::Changed),
                        left => left?.map(PutOutcome::File).ok_or(WriteObstacle::Changed),
                    }
                })
            }
            FileType::RegularFile => {
                let mut from = (self.open)(self.from, path)?;
                self.act(|| self.replace((path, expected), |to| self.write(&mut from, to, after.mode)))
            }
            // A pipe is put back where it was; sockets and devices are no part of a workspace.
            FileType::Fifo if matches!(self.owner, TransferOwner::User(_)) => self.act(|| {
                let (parent, name) = self.to.parent_of(path)?;
                mknodat(&parent, name, FileType::Fifo, Mode::from_raw_mode(after.mode), 0)?;
                Ok(PutOutcome::Nothing)
            }),
            _ => Ok(PutOutcome::Nothing),
        }
    }

    fn put_directory(&self, path: &Path, mode: u32) -> Result<PutOutcome, WriteObstacle> {
        let (parent, name) = self.parent_of(path)?;
        let found = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
        // One that is there gets other permissions, and no more.
        if found.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            return Ok(PutOutcome::Directory);
        }
        if matches!(self.owner, TransferOwner::User(_)) {
            return match mkdirat(&parent, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {
                    Ok(PutOutcome::NewDirectory(statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?))
                }
                Err(errno) => Err(errno.into()),
            };
        }
        self.clear_temporary(&parent)?;
        let made = self.make_directory((&parent, name), mode);
        if made.is_err() {
            let _ = self.clear_temporary(&parent);
        }
        made.map(PutOutcome::NewDirectory)
    }

    /// Makes a directory that has its permissions and its owner from the beginning, whenever this process is killed.
    fn make_directory(&self, (parent, name): (&Directory, &OsStr), mode: u32) -> Result<Stat, WriteObstacle> {
        let owner = self.owner_of(parent, None)?;
        // Writing into it needs all rights of the owner; rights that it is not to have are removed at the end.
        let made = file_owner::make_directory(parent, Path::new(self.temporary), mode | 0o700, owner)?;
        rename_to_free((parent, OsStr::new(self.temporary)), name)?;
        Ok(made)
    }

    /// Removes what an interrupted attempt has left under the temporary name.
    fn clear_temporary(&self, parent: &Directory) -> std::io::Result<()> {
        let removed = match unlinkat(parent, self.temporary, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(parent, self.temporary, AtFlags::REMOVEDIR),
            removed => removed,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn replace(
        &self,
        (path, expected): (&Path, ExpectedState),
        make: impl FnOnce(&TransferTarget<'_>) -> std::io::Result<Stat>,
    ) -> Result<PutOutcome, WriteObstacle> {
        let (parent, name) = self.parent_of(path)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let replaced = openat(&parent, name, flags, Mode::empty()).ok();
        let stat = replaced.as_ref().map(fstat).transpose()?;
        self.clear_temporary(&parent)?;
        let owner = self.owner_of(&parent, stat.as_ref())?;
        let made = make(&TransferTarget { parent: &parent, replaced: replaced.as_ref(), owner });
        let made = made.inspect_err(|_| {
            let _ = unlinkat(&parent, self.temporary, AtFlags::empty());
        })?;
        Ok(PutOutcome::File(expected.put((&parent, self.temporary), name, &made)?))
    }

    /// Makes a link under the temporary name.
    fn link(&self, says: &CStr, to: &TransferTarget<'_>) -> std::io::Result<Stat> {
        file_owner::make_as(to.owner, || Ok(symlinkat(says, to.parent, self.temporary)?))?;
        Ok(statat(to.parent, self.temporary, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Writes a file under the temporary name.
    fn write(
        &self,
        from: &mut File,
        TransferTarget { parent, replaced, owner }: &TransferTarget<'_>,
        mode: u32,
    ) -> std::io::Result<Stat> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut to = File::from(openat(parent, self.temporary, flags, Mode::from_raw_mode(0o600))?);
        copy_data(from, &mut to, u64::MAX)?;
        match (self.owner, replaced) {
            (TransferOwner::User(_), _) => {
                // The modification time is preserved: build tools depend on it.
                to.set_modified(from.metadata()?.modified()?)?;
                fchmod(&to, Mode::from_raw_mode(mode))?;
            }
            (TransferOwner::AsBefore, Some(replaced)) => {
                acl::give(&to, AccessList::of(replaced)?.as_ref(), mode)?;
            }
            (TransferOwner::AsBefore, None) => fchmod(&to, Mode::from_raw_mode(mode))?,
        }
        file_owner::give(&to, *owner)?;
        Ok(fstat(&to)?)
    }

    /// Returns the owner of a new file, if that is another user than the one that makes it.
    fn owner_of(&self, parent: &Directory, replaced: Option<&Stat>) -> std::io::Result<Option<FileOwner>> {
        if !matches!(self.owner, TransferOwner::AsBefore) {
            return Ok(None);
        }
        let owned = match replaced {
            Some(replaced) => *replaced,
            None => fstat(parent)?,
        };
        Ok(FileOwner::of_root(owned.st_uid, owned.st_gid))
    }
}

/// Removed here is what leaves nothing behind, or something of another kind.
fn makes_way(changed: &PathChange) -> bool {
    match (changed.before, changed.after) {
        (Some(_), None) => true,
        (Some(before), Some(after)) => before.kind != after.kind,
        _ => false,
    }
}

/// Number of bytes that are copied before the space left on the disk is checked again.
const STEP_BYTES: u64 = 16 << 20;

/// Copies the data of a file without its holes, and returns the number of bytes copied: a job may leave a file with holes
/// the size of a disk. The reserve of the disk is left ([`FreeSpace`]): once it is touched, the sandboxes that have written most
/// are ended, which may be others.
///
/// # Errors
/// `EDQUOT` for more than `most` bytes, `ENOSPC` where only the reserve is left, or the kernel's error.
pub(crate) fn copy_data(from: &mut File, to: &mut File, most: u64) -> std::io::Result<u64> {
    let size = from.metadata()?.len();
    let (mut at, mut copied) = (0, 0);
    while at < size {
        let Some(Range { start: data, end: hole }) = extents::next(from, at, size)? else { break };
        let length = hole.saturating_sub(data);
        copied += length;
        if copied > most {
            return Err(Errno::DQUOT.into());
        }
        seek(&*from, SeekFrom::Start(data))?;
        seek(&*to, SeekFrom::Start(data))?;
        let mut left = length;
        while left > 0 {
            let step = STEP_BYTES.min(left);
            if !FreeSpace::of(&*to)?.takes(step) {
                return Err(Errno::NOSPC.into());
            }
            std::io::copy(&mut (&mut *from).take(step), to)?;
            left -= step;
        }
        at = hole.max(at + 1);
    }
    to.set_len(size)?;
    Ok(copied)
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> TransferError {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path }.to_owned();
    move |source| TransferError { path, source }
}

#[cfg(test)]
mod given_away;
#[cfg(test)]
mod swapped;
#[cfg(test)]
mod tests;
