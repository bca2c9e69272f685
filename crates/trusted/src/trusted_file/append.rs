//! Opening a file that the host writes and believes later: an anchor of the audit log, a token.

use super::error::{UntrustedFileError, errno, look};
use super::walk::RootWalk;
use crate::in_use::{self, InUseEntry};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

const FLAGS: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK);

/// Opens a file for appending, made with the mode 0600 if it is missing, and registers it as obeyed. No link is followed on the way: a
/// sandbox that has ended may have left one.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox or another user could write it, or if it can't be opened.
pub fn open_to_append(path: &Path) -> Result<File, UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let before = in_use::writable();
    let opened = open_at(&absolute, &before)?;
    // A process that has lent it meanwhile may not have seen that it is obeyed.
    let writable = in_use::writable();
    match writable == before {
        true => Ok(opened),
        false => open_at(&absolute, &writable),
    }
}

/// Makes a file that the host obeys later, with the mode 0600; `None` if there is something already.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox or another user could replace it, or if it can't be made.
pub fn create_new(path: &Path) -> Result<Option<File>, UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &writable)?;
    match walk.open_end() {
        Err(UntrustedFileError::Look { source: Errno::NOENT, .. }) if walk.is_at_last_name() => {
            match walk.create_last(FLAGS | OFlags::CREATE | OFlags::EXCL) {
                Ok(made) => Ok(Some(File::from(made))),
                Err(Errno::EXIST) => Ok(None),
                Err(source) => Err(look(path)(source)),
            }
        }
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_at(path: &Path, writable: &[InUseEntry]) -> Result<File, UntrustedFileError> {
    if let Some(opened) = open_existing(path, writable)? {
        return Ok(opened);
    }
    let mut walk = RootWalk::begin(path, writable)?;
    match walk.open_end() {
        Err(UntrustedFileError::Look { source: Errno::NOENT, .. }) if walk.is_at_last_name() => {
            refuse_links(&walk, 0, path)?;
            match walk.create_last(FLAGS | OFlags::CREATE | OFlags::EXCL) {
                // Another process was faster.
                Ok(_) | Err(Errno::EXIST) => {}
                Err(source) => return Err(look(path)(source)),
            }
        }
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    open_existing(path, writable)?.ok_or_else(|| look(path)(Errno::NOENT))
}

fn open_existing(path: &Path, writable: &[InUseEntry]) -> Result<Option<File>, UntrustedFileError> {
    let mut walk = RootWalk::begin(path, writable)?;
    let found = match walk.open_end() {
        Ok(found) => found,
        Err(UntrustedFileError::Look { source: Errno::NOENT, .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    refuse_links(&walk, 1, path)?;
    let opened = reopen(&found).map_err(look(path))?;
    in_use::register(&walk.obeyed).map_err(|error| look(path)(errno(&error)))?;
    Ok(Some(File::from(opened)))
}

/// Reopens the file that the walk found, and not a file that has taken its name since.
fn reopen(found: &OwnedFd) -> Result<OwnedFd, Errno> {
    let by = format!("/proc/self/fd/{}", found.as_raw_fd());
    openat(CWD, by.as_str(), FLAGS.difference(OFlags::NOFOLLOW), Mode::empty())
}

/// A walk notes the file that it found and each link that it followed.
fn refuse_links(walk: &RootWalk<'_>, files: usize, path: &Path) -> Result<(), UntrustedFileError> {
    match walk.obeyed.len() > files {
        true => Err(look(path)(Errno::LOOP)),
        false => Ok(()),
    }
}
