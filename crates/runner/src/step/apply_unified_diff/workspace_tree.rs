//! The workspace as a patch is planned on it.

use super::parents::Parents;
use crate::directory::{Directory, PathError};
use crate::patch::plan::{FileTree, FileTreeEntry, FileTreeEntryKind};
use crate::patch::{FileMode, RelativeName};
use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Looks files up in the workspace.
pub(super) struct WorkspaceTree<'d> {
    root: &'d Directory,
    parents: Parents<'d>,
    /// The permission bits of the files that were looked at.
    permissions: HashMap<RelativeName, u32>,
}

/// Result of examining a path.
enum PathLookup {
    Nothing,
    Symlink,
    Found(Stat),
}

/// The largest file that is patched.
const MAX_FILE_BYTES: u64 = 64 << 20;

// === impl WorkspaceTree ===

impl<'d> WorkspaceTree<'d> {
    pub(super) fn new(root: &'d Directory) -> Self {
        Self { root, parents: Parents::new(root), permissions: HashMap::new() }
    }

    /// The permission bits of the file at that path, if it was looked at and is one.
    pub(super) fn permissions(&self, path: &RelativeName) -> Option<u32> {
        self.permissions.get(path).copied()
    }

    fn look_at(&mut self, path: &RelativeName) -> io::Result<PathLookup> {
        let (parent, name) = match self.parents.of(path.as_str()) {
            Ok(found) => found,
            Err(PathError::Symlink { .. }) => return Ok(PathLookup::Symlink),
            Err(error) if error.is_absent() || error.is_no_directory() => return Ok(PathLookup::Nothing),
            Err(error) => return Err(io::Error::other(error)),
        };
        match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                if let FileTreeEntryKind::File(_) = kind_of(&stat) {
                    self.permissions.insert(path.clone(), stat.st_mode & 0o777);
                }
                Ok(PathLookup::Found(stat))
            }
            Err(Errno::NOENT) => Ok(PathLookup::Nothing),
            Err(error) => Err(error.into()),
        }
    }

    fn read_file(&mut self, path: &RelativeName) -> io::Result<FileTreeEntry> {
        let (parent, name) = self.parents.of(path.as_str()).map_err(io::Error::other)?;
        let (file, stat) = open_file(parent, name)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size > MAX_FILE_BYTES {
            return Err(io::Error::other(format!(
                "larger than {MAX_FILE_BYTES} bytes, the maximum size of a patched file"
            )));
        }
        let bytes = read_whole(&file, size)?;
        Ok(FileTreeEntry::File { mode: mode_of(&stat), bytes })
    }
}

impl FileTree for WorkspaceTree<'_> {
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
        let stat = match self.look_at(path)? {
            PathLookup::Nothing => return Ok(None),
            PathLookup::Symlink => return Ok(Some(FileTreeEntry::Symlink)),
            PathLookup::Found(stat) => stat,
        };
        Ok(Some(match kind_of(&stat) {
            FileTreeEntryKind::File(_) => self.read_file(path)?,
            FileTreeEntryKind::Directory => FileTreeEntry::Directory,
            FileTreeEntryKind::Symlink => FileTreeEntry::Symlink,
            FileTreeEntryKind::Special => FileTreeEntry::Special,
        }))
    }

    fn kind(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntryKind>> {
        Ok(match self.look_at(path)? {
            PathLookup::Nothing => None,
            PathLookup::Symlink => Some(FileTreeEntryKind::Symlink),
            PathLookup::Found(stat) => Some(kind_of(&stat)),
        })
    }

    fn children(&mut self, directory: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
        let opened = self.root.open_directory(Path::new(directory.as_str())).map_err(io::Error::other)?;
        let mut names = Vec::new();
        for entry in Dir::new(opened)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if !matches!(&name[..], b"." | b"..") {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// Opens a path that was a regular file a moment ago; if it no longer is one, opening has no effect on it.
pub(super) fn open_file(parent: &OwnedFd, name: &Path) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    match kind_of(&stat) {
        FileTreeEntryKind::File(_) => Ok((file, stat)),
        _ => Err(io::Error::other("no longer a regular file")),
    }
}

/// The first `size` bytes: the file as it was when its size was asked for.
fn read_whole(file: &OwnedFd, size: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        match rustix::io::read(file, spare_capacity(&mut bytes)) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

fn kind_of(stat: &Stat) -> FileTreeEntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileTreeEntryKind::File(mode_of(stat)),
        FileType::Directory => FileTreeEntryKind::Directory,
        FileType::Symlink => FileTreeEntryKind::Symlink,
        _ => FileTreeEntryKind::Special,
    }
}

fn mode_of(stat: &Stat) -> FileMode {
    const OWNER_EXECUTES: u32 = 0o100;
    if stat.st_mode & OWNER_EXECUTES == 0 { FileMode::Plain } else { FileMode::Executable }
}
