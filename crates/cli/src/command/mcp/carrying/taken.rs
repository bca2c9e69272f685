//! A tree that a session tells, made of files in a directory of the host's own. It is hostile: each name in it is reached through no link,
//! and nothing is made that is more than may be.

use super::{CarryError, broken, line};
use belljar_contract::workbench::{Bytes, TreeLine};
use belljar_node::git::TreeLimits;
use belljar_sandbox::directory::{Directory, DirectoryError};
use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What there may still be.
struct Left {
    names: usize,
    bytes: u64,
    file_bytes: u64,
}

/// Makes what is told.
pub(super) fn take(
    from: &mut dyn BufRead,
    to: &Directory,
    limits: TreeLimits,
) -> Result<Vec<PathBuf>, CarryError> {
    let mut left = Left { names: limits.files, bytes: limits.bytes, file_bytes: limits.file_bytes };
    let mut others = Vec::new();
    loop {
        let told = line(from)?;
        left.names = left.names.checked_sub(1).ok_or(CarryError::TooMuch { what: "files" })?;
        match told {
            TreeLine::Directory { path } => {
                make(to, &path, |parent, name| Ok(mkdirat(parent, name, Mode::RWXU)?))?;
            }
            TreeLine::Link { path, target } => {
                make(to, &path, |parent, name| Ok(symlinkat(OsStr::from_bytes(&target.0), parent, name)?))?;
            }
            TreeLine::File { path, is_executable, size_bytes } => {
                left.take(size_bytes)?;
                let mode = if is_executable { Mode::RWXU } else { Mode::RUSR | Mode::WUSR };
                make(to, &path, |parent, name| file((from, size_bytes), (parent, name, mode)))?;
            }
            TreeLine::Other { path } => others.push(relative(&path)?.to_owned()),
            TreeLine::End {} => return Ok(others),
            TreeLine::Refused(refused) => return Err(CarryError::Refused(refused)),
        }
    }
}

fn file(
    (from, size_bytes): (&mut dyn BufRead, u64),
    (parent, name, mode): (&Directory, &OsStr, Mode),
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(parent, name, flags, mode)?);
    match io::copy(&mut from.take(size_bytes), &mut file)? {
        copied if copied == size_bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn make(
    to: &Directory,
    path: &Bytes,
    make: impl FnOnce(&Directory, &OsStr) -> io::Result<()>,
) -> Result<(), CarryError> {
    let (parent, name) = to.parent_of(relative(path)?).map_err(|error| match error {
        // Through a link, or below what is no directory: nobody has told that it is one.
        DirectoryError { source: Errno::LOOP | Errno::NOTDIR | Errno::NOENT, .. } => CarryError::NoTree,
        error => error.into(),
    })?;
    make(&parent, name).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CarryError::NoTree,
        _ => broken(error),
    })
}

/// A path that stays below where it begins.
fn relative(path: &Bytes) -> Result<&Path, CarryError> {
    let path = Path::new(OsStr::from_bytes(&path.0));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    match is_plain && path.file_name().is_some() && !path.as_os_str().as_bytes().contains(&0) {
        true => Ok(path),
        false => Err(CarryError::NoTree),
    }
}

// === impl Left ===

impl Left {
    fn take(&mut self, size_bytes: u64) -> Result<(), CarryError> {
        if size_bytes > self.file_bytes {
            return Err(CarryError::TooMuch { what: "bytes in one file" });
        }
        self.bytes = self.bytes.checked_sub(size_bytes).ok_or(CarryError::TooMuch { what: "bytes" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
