//! Creation of files, with the right owner from the beginning, in a directory that another user can write to.
//!
//! A user with write access to the directory can rename another file over any name there, at any time. Root would give that
//! file away if it opened the name again to change owner or permissions. So nothing is changed by a name that was made
//! before:
//!
//! ```text
//! file            ─► the descriptor that made it is changed
//! link, directory ─► made as its owner, who can't change what belongs to others
//! ```

use belljar_confine::as_user::AsUser;
use belljar_files::directory::Directory;
use rustix::fs::{Mode, Stat, fchown, mkdirat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::fs::File;
use std::io;
use std::path::Path;

/// The user and the group that own what root makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileOwner {
    uid: u32,
    gid: u32,
}

// === impl FileOwner ===

impl FileOwner {
    /// `None` if this process isn't root: what it makes is its own.
    pub(crate) fn of_root(uid: u32, gid: u32) -> Option<Self> {
        rustix::process::geteuid().is_root().then_some(Self { uid, gid })
    }
}

/// Makes something as its owner, also in a directory that the owner can't write to.
pub(crate) fn make_as<T>(owner: Option<FileOwner>, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _user = match owner {
        Some(FileOwner { uid, gid }) => {
            let user = AsUser::become_user(uid, gid)?;
            user.keep_access()?;
            Some(user)
        }
        None => None,
    };
    make()
}

/// Gives a file to its owner, by the descriptor that made it.
pub(super) fn give(made: &File, owner: Option<FileOwner>) -> Result<(), Errno> {
    let Some(FileOwner { uid, gid }) = owner else { return Ok(()) };
    fchown(made, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
}

/// Makes a directory with these permission bits, as its owner.
///
/// # Errors
/// The kernel's; `ESTALE` if the name has another directory by now, whose permissions stay as they are.
pub(super) fn make_directory(
    parent: &Directory,
    name: &Path,
    mode: u32,
    owner: Option<FileOwner>,
) -> io::Result<Stat> {
    make_as(owner, || {
        mkdirat(parent, name, Mode::RWXU)?;
        let made = parent.open(name)?;
        // The owner may have other directories of its own there. A new one is empty.
        let found = made.stat_itself()?;
        if found.st_mode & 0o077 != 0 || !made.names(1).is_ok_and(|names| names.is_empty()) {
            return Err(Errno::STALE.into());
        }
        made.set_mode(mode)?;
        Ok(made.stat_itself()?)
    })
}

/// Returns true if both are the same file or directory.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}
