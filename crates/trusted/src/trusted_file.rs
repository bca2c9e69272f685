//! Files that the host obeys: configurations, policies, and the credentials, programs, authorities and tokens that they name. Such a
//! file is refused where a sandbox or another local user could write it.
//!
//! The path is walked by descriptor, one name at a time; links are followed here. Every directory on the way decides what
//! is found next, so each must be out of reach, too. Directories that sandboxes write are recognised by device and inode,
//! never by the path's text.

mod append;
mod error;
mod holders;
mod lending;
mod reach;
mod scan;
mod walk;

pub use self::append::{create_new, open_to_append};
pub use self::error::UntrustedFileError;

use self::error::{errno, look};
use self::walk::RootWalk;
use crate::in_use::{self, UseKind};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// Opens a file that the host obeys, registers it as obeyed, and returns it for reading.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox or another user could write it, or if it can't be opened.
pub fn open(path: &Path) -> Result<File, UntrustedFileError> {
    let walked = check(path)?;
    // The file that the walk found, and not a file that has taken its name since.
    let by = format!("/proc/self/fd/{}", walked.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat(CWD, by.as_str(), flags, Mode::empty());
    opened.map(File::from).map_err(|source| UntrustedFileError::Look { path: path.to_owned(), source })
}

/// Checks a file that the host obeys, such as a program that it runs, and registers it as obeyed.
///
/// # Errors
/// [`UntrustedFileError`], as from [`open`].
pub fn check(path: &Path) -> Result<OwnedFd, UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let before = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &before)?;
    let found = walk.open_end()?;
    let obeyed = walk.obeyed;
    in_use::register(&obeyed).map_err(|error| look(path)(errno(&error)))?;
    // A process that has lent it meanwhile may not have seen that it is obeyed.
    let writable = in_use::writable();
    match writable == before {
        true => Ok(found),
        false => RootWalk::begin(&absolute, &writable)?.open_end(),
    }
}

/// Way in which a path is named that the host may obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRole {
    /// A file.
    File,
    /// An argument of a program, which may use everything below it.
    Mentioned,
    /// A directory of the user's, such as the home directory: the directory itself counts, and below it only the files that
    /// are found.
    UserDirectory,
}

/// The state of a path that the host may obey later.
#[derive(Debug, PartialEq, Eq)]
pub enum PathState {
    /// A file, a link on the way included.
    File,
    /// A directory.
    Directory,
    /// The path doesn't exist yet.
    Nothing,
}

/// Registers what the host may obey later, whether it is there or not.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox could write it, or put it there. What other users could write is refused when it is used.
pub fn expect(path: &Path, role: PathRole) -> Result<PathState, UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &writable)?;
    walk.only_sandboxes = true;
    let found = match walk.open_end() {
        Ok(_) => PathState::File,
        Err(UntrustedFileError::Look { source: Errno::ISDIR, .. }) => PathState::Directory,
        Err(UntrustedFileError::Look { .. } | UntrustedFileError::Kind { .. }) => PathState::Nothing,
        Err(error) => return Err(error),
    };
    // Everything is below the root directory.
    let is_part = walk.directories.len() > 1;
    let also = match found {
        PathState::Directory if role == PathRole::Mentioned && is_part => {
            walk.end_of_way(UseKind::ObeyedBelow)?
        }
        PathState::Directory if role == PathRole::UserDirectory && is_part => {
            walk.end_of_way(UseKind::Obeyed)?
        }
        PathState::Nothing => walk.end_of_way(UseKind::Missing { below: walk.missing() })?,
        PathState::File | PathState::Directory => None,
    };
    walk.obeyed.extend(also);
    in_use::register(&walk.obeyed).map_err(|error| look(path)(errno(&error)))?;
    Ok(found)
}

/// Checks that a path doesn't lead where a sandbox writes, whatever is there. Nothing is registered.
///
/// # Errors
/// [`UntrustedFileError`], also where there is nothing.
pub fn look_at(path: &Path) -> Result<(), UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &writable)?;
    walk.only_sandboxes = true;
    walk.any_kind = true;
    walk.open_end().map(drop)
}

/// Checks a file that a program of the host is given as an argument, whatever it is, and registers it: neither a sandbox
/// nor another user can write it, or put it there.
///
/// # Errors
/// [`UntrustedFileError`] if one could.
pub(crate) fn check_argument(path: &Path, role: PathRole) -> Result<(), UntrustedFileError> {
    let found = expect(path, role)?;
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &writable)?;
    walk.any_kind = true;
    match walk.open_end() {
        Ok(_) => Ok(()),
        Err(UntrustedFileError::Look { source: Errno::ISDIR, .. }) => walk.check_directory(true),
        Err(UntrustedFileError::Look { .. }) if found == PathState::Nothing => walk.check_directory(false),
        // The program can't use it either.
        Err(UntrustedFileError::Look { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Checks a local socket by which the host reaches a server: no sandbox serves it, and where everybody may put sockets, it must be one
/// of this user's or of root. Nothing is registered.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox or another user could serve it.
pub fn check_socket(path: &Path) -> Result<(), UntrustedFileError> {
    const BY_ALL: u32 = 0o002;
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &writable)?;
    walk.only_sandboxes = true;
    walk.any_kind = true;
    let found = walk.open_end()?;
    let is_open =
        |(directory, _): &(OwnedFd, PathBuf)| fstat(directory).is_ok_and(|stat| stat.st_mode & BY_ALL != 0);
    walk.only_sandboxes = !walk.directories.iter().any(is_open);
    walk.check_owner(&fstat(&found).map_err(look(path))?, &absolute)
}

/// Returns true if other local users can read a file, which then holds no secret: its mode and that of each directory on
/// the way allow it.
pub fn is_readable_by_others(path: &Path) -> bool {
    const SEARCH: u32 = 0o001;
    const READ: u32 = 0o004;
    let Ok(absolute) = std::path::absolute(path) else { return false };
    let Ok(mut walk) = RootWalk::begin(&absolute, &[]) else { return false };
    walk.only_sandboxes = true;
    let Ok(found) = walk.open_end() else { return false };
    let has = |opened: &OwnedFd, bit: u32| fstat(opened).is_ok_and(|stat| stat.st_mode & bit != 0);
    has(&found, READ) && walk.directories.iter().all(|(directory, _)| has(directory, SEARCH))
}

/// Checks a directory whose programs the host may run: no sandbox and no other user can put something there. Nothing is registered.
///
/// # Errors
/// [`UntrustedFileError`] if one could.
pub fn check_directory(path: &Path) -> Result<(), UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable = in_use::writable();
    let mut walk = RootWalk::begin(&absolute, &writable)?;
    match walk.open_end() {
        Err(UntrustedFileError::Look { source: Errno::ISDIR, .. }) => walk.check_directory(false),
        Err(error) => Err(error),
        Ok(_) => Err(look(path)(Errno::NOTDIR)),
    }
}

/// Checks that a file isn't in a directory, however it is named. Nothing is registered.
///
/// # Errors
/// [`UntrustedFileError`] if it is, or if a sandbox or another user could write it anyway.
pub fn check_outside(path: &Path, directory: &Path) -> Result<(), UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    RootWalk::begin(&absolute, &lending::entries(directory)?)?.open_end().map(drop)
}

/// Makes this process obey nothing in a directory that it has opened from now on, as if a sandbox wrote it: one has, or may
/// have.
///
/// # Errors
/// [`UntrustedFileError`] if it can't be looked at.
pub fn distrust(directory: &Path, opened: impl AsFd) -> Result<(), UntrustedFileError> {
    let absolute = std::path::absolute(directory).map_err(|error| look(directory)(errno(&error)))?;
    in_use::register(&lending::entries_of(opened, &absolute)?).map_err(|error| look(directory)(errno(&error)))
}

/// Registers a directory that a sandbox is about to write directly. `places` are paths that the host would obey if there were
/// something.
///
/// # Errors
/// [`UntrustedFileError`] if a process of this state directory obeys a file in it, or if one of the places is in it.
pub fn lend_workspace(directory: &Path, places: &[PathBuf]) -> Result<(), UntrustedFileError> {
    let writable = lending::entries(directory)?;
    // Before the others are looked at: of two processes that do so at once, at least one sees the other.
    in_use::register(&writable).map_err(|error| look(directory)(errno(&error)))?;
    let obeyed =
        in_use::all().into_iter().filter(|entry| entry.used != UseKind::Writable).map(|entry| entry.path);
    // Files in the state directory are trusted, too.
    for path in obeyed.chain(places.iter().cloned()).chain(in_use::state_directory()) {
        let walked = RootWalk::begin(&path, &writable).and_then(|mut walk| walk.open_end());
        if let Err(error) = walked
            && error.is_of_sandbox()
        {
            return Err(error);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
