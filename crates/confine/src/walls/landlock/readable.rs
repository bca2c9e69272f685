//! Readable paths, where some directories may not be read: a Landlock rule allows and can't be narrowed, so everything
//! around those directories is listed piece by piece.

use crate::walls::{ErrorContext, WallError};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns everything in the root besides these directories, which are named without links. Each path is opened and may be
/// read completely.
pub(super) fn all_but(closed: &[PathBuf]) -> Result<Vec<(PathBuf, OwnedFd)>, WallError> {
    let mut pending = vec![PathBuf::from("/")];
    let mut readable = Vec::new();
    while let Some(place) = pending.pop() {
        if closed.contains(&place) {
            continue;
        }
        if closed.iter().any(|closed| closed.starts_with(&place)) {
            pending.extend(entries(&place)?);
        } else if let Some(opened) = open(&place)? {
            readable.push((place, opened));
        }
    }
    Ok(readable)
}

/// Returns `None` if the path is gone by now.
fn open(place: &Path) -> Result<Option<OwnedFd>, WallError> {
    match openat(CWD, place, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno).about(&place.display().to_string()),
    }
}

/// Returns the entries of a directory. Links are left out.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, WallError> {
    let subject = directory.display().to_string();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, directory, flags, Mode::empty()).about(&subject)?;
    let mut entries = Vec::new();
    for entry in Dir::new(opened).about(&subject)? {
        let entry = entry.about(&subject)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if entry.file_type() != FileType::Symlink && name != "." && name != ".." {
            entries.push(directory.join(name));
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_readable_except_closed_paths_and_their_parents() {
        let readable = |closed: &[&str]| -> Vec<PathBuf> {
            let closed: Vec<PathBuf> = closed.iter().map(PathBuf::from).collect();
            all_but(&closed).unwrap().into_iter().map(|(path, _)| path).collect()
        };
        assert_eq!(readable(&[]), [PathBuf::from("/")]);
        let some = readable(&["/usr/bin", "/usr/local/bin"]);
        for closed in ["/", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin"] {
            assert!(!some.contains(&PathBuf::from(closed)), "{closed}");
        }
        for open in ["/usr/lib", "/usr/share", "/usr/local/lib", "/etc", "/proc"] {
            assert!(some.contains(&PathBuf::from(open)), "{open}");
        }
    }
}
