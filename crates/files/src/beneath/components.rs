//! Resolving a path without `openat2`: one component at a time, each opened from the one before, no link followed by
//! the kernel.
//!
//! A link is read, and its target is walked like the path itself. `..` is never passed to the kernel: every directory
//! on the way is held open, and `..` goes back to the one before. So no directory that is moved meanwhile leads out.

use super::Symlinks;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path};

/// Maximum number of links that are followed in one path; the kernel's limit, too.
const MOST_LINKS: usize = 40;

/// Components that are still to be walked, the next one last.
#[derive(Default)]
struct PendingComponents(Vec<OsString>);

/// Opens `path` beneath `base` with `flags`. [`Errno::LOOP`] stands for a symbolic link that isn't followed, and
/// [`Errno::XDEV`] for a path that leads out, as with `openat2`.
pub(super) fn resolve(
    base: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    let mut ahead = PendingComponents::default();
    ahead.put(path)?;
    let mut held: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    loop {
        let Some(name) = ahead.0.pop() else {
            return open_component(held.last().map_or(base, AsFd::as_fd), OsStr::new("."), flags);
        };
        if name == ".." {
            held.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let directory = held.last().map_or(base, AsFd::as_fd);
        let is_last = ahead.0.is_empty();
        let wanted = if is_last { flags } else { OFlags::PATH | OFlags::CLOEXEC | OFlags::DIRECTORY };
        match open_component(directory, &name, wanted) {
            Ok(opened) if is_last => return Ok(opened),
            Ok(opened) => held.push(opened),
            Err(Errno::LOOP) if symlinks == Symlinks::Beneath && links < MOST_LINKS => {
                links += 1;
                match target_of(directory, &name) {
                    Ok(target) => ahead.put(Path::new(&target))?,
                    // It was a link a moment ago.
                    Err(Errno::INVAL) => ahead.0.push(name),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

// === impl PendingComponents ===

impl PendingComponents {
    /// Puts a path in front of the remaining components.
    fn put(&mut self, path: &Path) -> Result<(), Errno> {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.0.push(name.to_owned()),
                Component::CurDir => {}
                Component::ParentDir => self.0.push("..".into()),
                Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
            }
        }
        Ok(())
    }
}

fn target_of(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OsString, Errno> {
    let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
    match target.as_bytes() {
        // The kernel returns the same error for an empty path.
        [] => Err(Errno::NOENT),
        target => Ok(OsString::from_vec(target.to_vec())),
    }
}

fn open_component(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = rustix::fs::openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty());
    match opened {
        // With `O_DIRECTORY`, a link is reported as no directory.
        Err(Errno::NOTDIR) if is_symlink(directory, name) => Err(Errno::LOOP),
        // With `O_PATH`, the link itself was opened, which is an error unless the caller wants that.
        Ok(descriptor) if flags.contains(OFlags::PATH) && !flags.contains(OFlags::NOFOLLOW) => {
            let stat = rustix::fs::fstat(&descriptor)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => Err(Errno::LOOP),
                _ => Ok(descriptor),
            }
        }
        other => other,
    }
}

/// Returns true if the name is a symbolic link. This only chooses the error; nothing was opened in either case.
fn is_symlink(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
