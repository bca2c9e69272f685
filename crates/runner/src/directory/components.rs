//! Resolving a path without `openat2`: one component at a time, each opened from the one before, no link followed.

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// Opens `path` beneath `base` with `flags`. [`Errno::LOOP`] stands for a symbolic link anywhere in it, and
/// [`Errno::XDEV`] for a path that leads out, as with `openat2`.
pub(super) fn resolve(base: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let last = names.pop().unwrap_or(OsStr::new("."));
    let mut held: Option<OwnedFd> = None;
    for name in names {
        let directory = held.as_ref().map_or(base, AsFd::as_fd);
        held = Some(open_component(directory, name, OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY)?);
    }
    open_component(held.as_ref().map_or(base, AsFd::as_fd), last, flags)
}

fn open_component(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty());
    match opened {
        // With `O_DIRECTORY`, a link is reported as no directory.
        Err(Errno::NOTDIR) if is_symlink(directory, name) => Err(Errno::LOOP),
        // With `O_PATH`, the link itself was opened.
        Ok(descriptor) if flags.contains(OFlags::PATH) => {
            let stat = rustix::fs::fstat(&descriptor)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(Errno::LOOP),
                _ => Ok(descriptor),
            }
        }
        other => other,
    }
}

/// Only chooses the error: whatever the answer, nothing was opened.
fn is_symlink(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
