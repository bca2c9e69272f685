//! Receiving a tree that a session sends, as files in a directory of the host's own. The sender is hostile: no link is followed, and all
//! quantities are limited.

use super::{TreeTransferError, broken, line};
use belljar_contract::workbench::{Bytes, TreeLine};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::tree::TreeLimits;
use belljar_tools::builtin::git::hatch::MOST_TOLD;
use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Entries that are neither file, directory nor link. They are not transferred.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SkippedTreeEntries {
    /// The first of them.
    pub(super) named: Vec<PathBuf>,
    /// How many there are.
    pub(super) count: usize,
}

/// Remaining limits of a tree transfer.
struct RemainingTreeLimits {
    names: usize,
    /// Of all names together, with what links say.
    name_bytes: u64,
    bytes: u64,
    file_bytes: u64,
}

/// No path that the kernel takes is longer, in bytes.
const LONGEST_PATH_BYTES: usize = 4095;

/// As much of names and of what links say there may be: all of it comes to be in memory.
const MOST_NAME_BYTES: u64 = 128 << 20;

/// Creates the entries that are received.
pub(super) fn receive(
    from: &mut dyn BufRead,
    to: &Directory,
    limits: TreeLimits,
) -> Result<SkippedTreeEntries, TreeTransferError> {
    let TreeLimits { files, bytes, file_bytes } = limits;
    take_within(
        from,
        to,
        RemainingTreeLimits { names: files, name_bytes: MOST_NAME_BYTES, bytes, file_bytes },
    )
}

fn take_within(
    from: &mut dyn BufRead,
    to: &Directory,
    mut left: RemainingTreeLimits,
) -> Result<SkippedTreeEntries, TreeTransferError> {
    let mut others = SkippedTreeEntries::default();
    loop {
        let told = line(from)?;
        left.take_name(&told)?;
        match told {
            TreeLine::Directory { path } => {
                make(to, &path, |parent, name| Ok(mkdirat(parent, name, Mode::RWXU)?))?;
            }
            TreeLine::Link { path, target } => {
                make(to, &path, |parent, name| Ok(symlinkat(OsStr::from_bytes(&target.0), parent, name)?))?;
            }
            TreeLine::File { path, is_executable, size_bytes } => {
                left.take_file(size_bytes)?;
                let mode = if is_executable { Mode::RWXU } else { Mode::RUSR | Mode::WUSR };
                make(to, &path, |parent, name| file((from, size_bytes), (parent, name, mode)))?;
            }
            TreeLine::Other { path } => others.note(relative(&path)?),
            TreeLine::End {} => return Ok(others),
            TreeLine::Refused(refused) => return Err(TreeTransferError::Refused(refused)),
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
) -> Result<(), TreeTransferError> {
    let (parent, name) = to.parent_of(relative(path)?).map_err(|error| match error {
        // The path leads through a link, or through something that the listing has not declared as a directory.
        DirectoryError { source: Errno::LOOP | Errno::NOTDIR | Errno::NOENT, .. } => {
            TreeTransferError::NoTree
        }
        error => error.into(),
    })?;
    make(&parent, name).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => TreeTransferError::NoTree,
        _ => broken(error),
    })
}

/// A path that stays below where it begins.
fn relative(path: &Bytes) -> Result<&Path, TreeTransferError> {
    let path = Path::new(OsStr::from_bytes(&path.0));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_path = path.as_os_str().len() <= LONGEST_PATH_BYTES;
    match is_plain && is_path && path.file_name().is_some() && !path.as_os_str().as_bytes().contains(&0) {
        true => Ok(path),
        false => Err(TreeTransferError::NoTree),
    }
}

// === impl SkippedTreeEntries ===

impl SkippedTreeEntries {
    fn note(&mut self, path: &Path) {
        if self.named.len() < MOST_TOLD {
            self.named.push(path.to_owned());
        }
        self.count += 1;
    }
}

// === impl RemainingTreeLimits ===

impl RemainingTreeLimits {
    fn take_name(&mut self, told: &TreeLine) -> Result<(), TreeTransferError> {
        let size_bytes = match told {
            TreeLine::Directory { path } | TreeLine::File { path, .. } | TreeLine::Other { path } => {
                path.0.len()
            }
            TreeLine::Link { path, target } => path.0.len() + target.0.len(),
            TreeLine::End {} | TreeLine::Refused(_) => 0,
        };
        self.names = self.names.checked_sub(1).ok_or(TreeTransferError::TooMuch { what: "files" })?;
        let left = self.name_bytes.checked_sub(size_bytes as u64);
        self.name_bytes = left.ok_or(TreeTransferError::TooMuch { what: "bytes in names" })?;
        Ok(())
    }

    fn take_file(&mut self, size_bytes: u64) -> Result<(), TreeTransferError> {
        if size_bytes > self.file_bytes {
            return Err(TreeTransferError::TooMuch { what: "bytes in one file" });
        }
        self.bytes =
            self.bytes.checked_sub(size_bytes).ok_or(TreeTransferError::TooMuch { what: "bytes" })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
