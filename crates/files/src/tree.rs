//! Trees of files with limits: one that the host has laid out itself, and its copy in a directory that another process may change meanwhile.

use crate::directory::{Directory, DirectoryError};
use crate::reserve::FreeSpace;
use rustix::fd::AsFd;
use rustix::fs::{FileType, Mode, OFlags, mkdirat, openat, renameat, symlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Limits of a tree.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// Maximum number of files and links. Default: 200,000.
    pub files: usize,
    /// Maximum size of all files together, in bytes. Default: 4 GiB.
    pub bytes: u64,
    /// Maximum size of one file, in bytes. Default: 256 MiB.
    pub file_bytes: u64,
}

/// File tree that the host has laid out itself, and that no other process has written to. All its entries are listed.
pub struct HostTree<'l> {
    top: &'l Directory,
    /// Directories come before their content.
    entries: Vec<TreeEntry>,
    /// Number of files and links.
    pub files: u64,
    /// Size of all files together, in bytes.
    pub size_bytes: u64,
}

/// Entry of a tree.
pub struct TreeEntry {
    /// Path relative to the tree's top.
    pub path: PathBuf,
    /// Kind.
    pub kind: FileType,
}

/// Regular file of a tree, opened for reading.
pub struct TreeFile {
    /// Content.
    pub file: File,
    /// True if its owner may execute it.
    pub is_executable: bool,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Errors of listing and copying a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A file or directory can't be reached or read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The tree exceeds a limit.
    #[error("the file tree exceeds a limit: {what}")]
    TooMuch {
        /// Name of the exceeded limit.
        what: &'static str,
    },
    /// The destination exists and isn't an empty directory.
    #[error("{path:?} already exists and is not an empty directory")]
    Exists {
        /// Path of the destination.
        path: PathBuf,
    },
    /// The destination has no room for the tree.
    #[error("no space is left for {path:?}")]
    Full {
        /// Path relative to the tree's top.
        path: PathBuf,
    },
    /// An entry can't be written.
    #[error("can't write {path:?}")]
    Write {
        /// Path relative to the tree's top.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The copy was canceled.
    #[error("the copy of the file tree was canceled")]
    Canceled,
}

/// Maximum length of all paths of a tree together, in bytes.
const MOST_PATH_BYTES: usize = 128 << 20;

/// Number of bytes that are copied between two checks.
const STEP_BYTES: u64 = 16 << 20;

/// Type of a file system in memory, which has no reserve: it is the sandbox's own (`TMPFS_MAGIC`).
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Permissions of new directories and executable files, before the umask.
const EXECUTABLE: Mode = Mode::from_raw_mode(0o777);

/// Permissions of other new files, before the umask.
const PLAIN: Mode = Mode::from_raw_mode(0o666);

// === impl TreeLimits ===

impl Default for TreeLimits {
    fn default() -> Self {
        Self { files: 200_000, bytes: 4 << 30, file_bytes: 256 << 20 }
    }
}

// === impl HostTree ===

impl<'l> HostTree<'l> {
    /// Lists all entries below a directory.
    ///
    /// # Errors
    /// [`TreeError`] when the tree can't be read, or exceeds the limits.
    pub fn below(top: &'l Directory, limits: TreeLimits) -> Result<Self, TreeError> {
        let mut tree = Self { top, entries: Vec::new(), files: 0, size_bytes: 0 };
        let mut pending = vec![PathBuf::new()];
        let mut path_bytes = 0;
        while let Some(below) = pending.pop() {
            let opened = if below.as_os_str().is_empty() { top.try_clone()? } else { top.open(&below)? };
            for name in opened.names(limits.files)? {
                let path = below.join(OsStr::from_bytes(name.name.as_bytes()));
                tree.count(&path, name.kind)?;
                path_bytes += path.as_os_str().len();
                if name.kind == FileType::Directory {
                    pending.push(path.clone());
                }
                tree.entries.push(TreeEntry { path, kind: name.kind });
                if tree.entries.len() > limits.files {
                    return Err(TreeError::TooMuch { what: "files" });
                }
                if path_bytes > MOST_PATH_BYTES {
                    return Err(TreeError::TooMuch { what: "bytes in paths" });
                }
            }
        }
        match tree.size_bytes > limits.bytes {
            true => Err(TreeError::TooMuch { what: "bytes" }),
            false => Ok(tree),
        }
    }

    fn count(&mut self, path: &Path, kind: FileType) -> Result<(), DirectoryError> {
        if kind != FileType::Directory {
            self.files += 1;
        }
        if kind == FileType::RegularFile {
            let stat = self.top.stat(path)?;
            self.size_bytes += stat.map_or(0, |stat| stat.st_size.unsigned_abs());
        }
        Ok(())
    }

    /// All entries, directories before their content.
    pub fn entries(&self) -> &[TreeEntry] {
        &self.entries
    }

    /// Returns the target of a link.
    ///
    /// # Errors
    /// [`DirectoryError`] when it can't be read.
    pub fn target(&self, path: &Path) -> Result<Vec<u8>, DirectoryError> {
        Ok(self.top.read_link(path)?.into_bytes())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(&self, path: &Path) -> io::Result<TreeFile> {
        let file = self.top.open_file(path)?;
        let metadata = file.metadata()?;
        let is_executable = metadata.permissions().mode() & 0o100 != 0;
        Ok(TreeFile { file, is_executable, size_bytes: metadata.len() })
    }

    /// Copies the tree to a path below `to` that doesn't exist or is an empty directory: completely, or not at all. No link is followed
    /// on the way there. Processes that change `to` meanwhile can spoil the copy, but can't redirect a write.
    ///
    /// # Errors
    /// [`TreeError`]; nothing of the copy is left then, unless its removal failed, too.
    pub fn copy_to(
        &self,
        to: &Directory,
        place: &Path,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<(), TreeError> {
        let (parent, name) = parent_made(to, place)?;
        let part = format!(".belljar-tree-{}", uuid::Uuid::new_v4());
        let part = Path::new(&part);
        mkdirat(&parent, part, EXECUTABLE).map_err(|errno| written(place, errno.into()))?;
        let made = parent.open(part).map_err(TreeError::from).and_then(|top| {
            let copied = self.fill(&top, is_canceled);
            let placed = copied.and_then(|()| {
                renameat(&parent, part, &parent, name).map_err(|errno| match errno {
                    Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR => {
                        TreeError::Exists { path: place.to_owned() }
                    }
                    errno => written(place, errno.into()),
                })
            });
            placed.inspect_err(|_| {
                // Other programs may add to it without end. Entries that stay are left to the owner of the directory.
                let _ = top.clear_at_most(2 * self.entries.len() as u64 + 1_024);
            })
        });
        made.inspect_err(|_| {
            let _ = rustix::fs::unlinkat(&parent, part, rustix::fs::AtFlags::REMOVEDIR);
        })
    }

    fn fill(&self, top: &Directory, is_canceled: &dyn Fn() -> bool) -> Result<(), TreeError> {
        for TreeEntry { path, kind } in &self.entries {
            if is_canceled() {
                return Err(TreeError::Canceled);
            }
            let (parent, name) = top.parent_of(path)?;
            let made = match kind {
                FileType::Directory => mkdirat(&parent, name, EXECUTABLE).map_err(io::Error::from),
                FileType::Symlink => {
                    let target = self.target(path)?;
                    symlinkat(OsStr::from_bytes(&target), &parent, name).map_err(io::Error::from)
                }
                _ => self.open(path).and_then(|file| copy_file(file, &parent, name, is_canceled)),
            };
            match made {
                Err(source) if source.kind() == io::ErrorKind::Interrupted => {
                    return Err(TreeError::Canceled);
                }
                made => made.map_err(|source| written(path, source))?,
            }
        }
        Ok(())
    }
}

/// Copies a file in steps, each within the space that is left above the reserve of a disk. Fails with `Interrupted` when canceled.
fn copy_file(
    from: TreeFile,
    parent: &Directory,
    name: &OsStr,
    is_canceled: &dyn Fn() -> bool,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = if from.is_executable { EXECUTABLE } else { PLAIN };
    let mut file = File::from(openat(parent.as_fd(), name, flags, mode)?);
    let has_reserve = rustix::fs::fstatfs(&file)?.f_type != TMPFS_MAGIC;
    let (mut source, mut left) = (from.file, from.size_bytes);
    while left > 0 {
        if is_canceled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let step = left.min(STEP_BYTES);
        if has_reserve && !FreeSpace::of(&file)?.takes(step) {
            return Err(Errno::NOSPC.into());
        }
        if io::copy(&mut source.by_ref().take(step), &mut file)? != step {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= step;
    }
    Ok(())
}

/// Opens the directory that a path is in, and makes missing ones on the way.
fn parent_made<'p>(to: &Directory, place: &'p Path) -> Result<(Directory, &'p OsStr), TreeError> {
    let mut parent = to.try_clone()?;
    for part in place.parent().into_iter().flat_map(Path::components) {
        let part = Path::new(part.as_os_str());
        match mkdirat(&parent, part, EXECUTABLE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(written(place, errno.into())),
        }
        parent = parent.open(part)?;
    }
    let name = place.file_name().ok_or_else(|| TreeError::Exists { path: place.to_owned() })?;
    Ok((parent, name))
}

fn written(path: &Path, source: io::Error) -> TreeError {
    match Errno::from_io_error(&source) {
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => TreeError::Full { path: path.to_owned() },
        _ => TreeError::Write { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests;
