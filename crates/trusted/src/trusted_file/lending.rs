//! The directories that a sandbox writes when a directory is lent to it: that directory, and the mounts below it, which are
//! lent with it.

use super::error::{UntrustedFileError, errno, look};
use crate::in_use::{FileIdentity, InUseEntry};
use crate::mounts::Mounts;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::path::Path;

/// An entry for each, held open by this process.
///
/// # Errors
/// [`UntrustedFileError::Look`] for what can't be looked at.
pub(super) fn entries(directory: &Path) -> Result<Vec<InUseEntry>, UntrustedFileError> {
    entries_of(open(directory).map_err(look(directory))?, directory)
}

/// Returns an entry for each directory, for one that is open.
///
/// # Errors
/// The errors of [`entries`].
pub(super) fn entries_of(opened: impl AsFd, directory: &Path) -> Result<Vec<InUseEntry>, UntrustedFileError> {
    let opened = opened.as_fd();
    let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))
        .map_err(|error| look(directory)(errno(&error)))?;
    let place = Path::new("/proc/self/mountinfo");
    let mounts = Mounts::read().map_err(|error| look(place)(errno(&error)))?;
    let (mut below, mut read_only) = (Vec::new(), Vec::new());
    for mount in mounts.below(&real) {
        let at = mount.point.as_path();
        let found = match open(at).and_then(|opened| Ok((fstat(&opened)?, opened))) {
            // Covered by another mount.
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            found => found.map_err(look(at)),
        };
        match found {
            Ok((stat, _)) if mount.is_read_only => read_only.push(FileIdentity::of(&stat)),
            Ok((_, opened)) => below.push((opened, at)),
            Err(_) if mount.is_read_only => {}
            // One of another user's (FUSE), of which this user can use nothing.
            Err(UntrustedFileError::Look { source: Errno::ACCESS, .. }) if open(at).is_ok() => {}
            Err(error) => return Err(error),
        }
    }
    let mut entries = vec![written(opened, directory, read_only)?];
    for (opened, at) in below {
        entries.push(written(opened.as_fd(), at, Vec::new())?);
    }
    Ok(entries)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn written(
    opened: BorrowedFd<'_>,
    path: &Path,
    read_only: Vec<FileIdentity>,
) -> Result<InUseEntry, UntrustedFileError> {
    InUseEntry::written(opened, path.to_owned(), read_only).map_err(look(path))
}
