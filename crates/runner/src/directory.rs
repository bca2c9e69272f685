//! A directory that no path opened through it can leave.
//!
//! Paths are opened, not checked: the kernel resolves them beneath the directory's descriptor (`openat2` with
//! `RESOLVE_BENEATH` and `RESOLVE_NO_MAGICLINKS`). So there is no moment between a check and a use in which an attacker
//! could swap a component.
//!
//! Symbolic links: one that stays beneath the directory is followed ([`Symlinks::Beneath`]), one that leads out is
//! refused, and so is an absolute one even if it would come back in. Where a job restricts paths, none is followed
//! ([`Symlinks::Refused`]): through a link, an allowed name could stand for another file. A file that is about to be
//! replaced is never a link, whatever the setting.
//!
//! Where `openat2` is missing, paths are walked component by component, and links are read and walked alike.

mod replace;

pub(crate) use belljar_files::beneath::Symlinks;
pub(crate) use replace::Replacement;

use crate::failure_code::{Fault, code_of_io};
use belljar_contract::failure::FailureCode;
use belljar_files::beneath::{self, Resolver};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// An open directory, and how paths beneath it are resolved.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
    resolver: Resolver,
    symlinks: Symlinks,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub(crate) struct RegularFile {
    pub(crate) file: File,
    pub(crate) size_bytes: u64,
}

/// A path that could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error("path escapes workspace: {}", path.display())]
    Escapes { path: PathBuf },
    #[error("path refused: {} leads through a symbolic link that may not be followed", path.display())]
    Symlink { path: PathBuf },
    #[error("path refused: {} is {}, not a regular file", path.display(), describe(*found))]
    WrongType { path: PathBuf, found: FileType },
    #[error("{} is a directory", path.display())]
    IsDirectory { path: PathBuf },
    #[error("{} exists and may not be overwritten", path.display())]
    Exists { path: PathBuf },
    #[error("cannot {action} {}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

const LOCATE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const LOCATE_DIRECTORY: OFlags = LOCATE.union(OFlags::DIRECTORY);
const READ_DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Flags with which opening a FIFO without a writer or a terminal has no effect and doesn't block.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

// === impl Directory ===

impl Directory {
    /// Opens a directory of the file system, and finds out how to resolve paths beneath it.
    pub(crate) fn open(path: &Path) -> Result<Self, PathError> {
        Self::open_with(path, LOCATE_DIRECTORY)
    }

    /// Opens a directory whose name a step could have replaced by a link; no link is followed beneath it either.
    pub(crate) fn open_no_link(path: &Path) -> Result<Self, PathError> {
        let opened = Self::open_with(path, LOCATE_DIRECTORY | OFlags::NOFOLLOW)?;
        Ok(opened.with_symlinks(Symlinks::Refused))
    }

    fn open_with(path: &Path, flags: OFlags) -> Result<Self, PathError> {
        let descriptor = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| PathError::io("open directory", path, error))?;
        let resolver = Resolver::detect(&descriptor);
        Ok(Self { descriptor, resolver, symlinks: Symlinks::Beneath })
    }

    /// Returns this directory with another treatment of symbolic links.
    pub(crate) fn with_symlinks(self, symlinks: Symlinks) -> Self {
        Self { symlinks, ..self }
    }

    /// Returns this directory with another method of resolving paths.
    #[cfg(test)]
    pub(crate) fn with_resolver(self, resolver: Resolver) -> Self {
        Self { resolver, ..self }
    }

    /// Opens a directory beneath this one for reading its entries or working in it.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<OwnedFd, PathError> {
        self.resolve(path, READ_DIRECTORY)
    }

    /// Opens a directory beneath this one that no path can leave, and in which no link is followed.
    pub(crate) fn subdirectory(&self, path: &Path) -> Result<Self, PathError> {
        let descriptor = self.resolve(path, LOCATE_DIRECTORY)?;
        Ok(Self { descriptor, resolver: self.resolver, symlinks: Symlinks::Refused })
    }

    /// Opens a regular file beneath this directory for reading.
    ///
    /// Anything else is refused before it is really opened, since opening alone can block or have effects.
    pub(crate) fn open_file(&self, path: &Path) -> Result<RegularFile, PathError> {
        let located = self.resolve(path, LOCATE)?;
        let found = status_of(located.as_fd(), path)?;
        require_regular(&found, path)?;
        let magic_link = format!("/proc/self/fd/{}", located.as_raw_fd());
        let reopened = rustix::fs::open(magic_link, READ, Mode::empty()).ok();
        let same = |opened: &OwnedFd| {
            rustix::fs::fstat(opened)
                .is_ok_and(|stat| (stat.st_dev, stat.st_ino) == (found.st_dev, found.st_ino))
        };
        match reopened.filter(same) {
            Some(file) => Ok(RegularFile::new(file, &found)),
            None => self.open_listed_file(path),
        }
    }

    /// Opens a file like [`Self::open_file`], with fewer system calls, for a path that was a regular file a moment ago.
    pub(crate) fn open_listed_file(&self, path: &Path) -> Result<RegularFile, PathError> {
        let file = self.resolve(path, READ)?;
        let found = status_of(file.as_fd(), path)?;
        require_regular(&found, path)?;
        Ok(RegularFile::new(file, &found))
    }

    /// Opens `path` only as a location (`O_PATH`); a link itself, not its target.
    pub(crate) fn locate(&self, path: &Path) -> Result<OwnedFd, PathError> {
        self.resolve(path, LOCATE | OFlags::NOFOLLOW)
    }

    /// Opens the directory that has `path`, and returns the name of `path` there.
    pub(crate) fn locate_parent<'p>(&self, path: &'p Path) -> Result<(OwnedFd, &'p Path), PathError> {
        let name = path.file_name().ok_or_else(|| PathError::IsDirectory { path: path.to_owned() })?;
        let parent = self.resolve(path.parent().unwrap_or(Path::new("")), LOCATE_DIRECTORY)?;
        Ok((parent, Path::new(name)))
    }

    /// Returns true if `path` leads out of the directory: through a link there, or one on the way.
    pub(crate) fn leads_out(&self, path: &Path) -> bool {
        matches!(self.resolve(path, LOCATE), Err(PathError::Escapes { .. }))
    }

    /// Removes `path` unless it is a directory; a link itself, not its target. Returns its size.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<u64, PathError> {
        let (parent, name) = self.locate_parent(path)?;
        let stat = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| PathError::io("inspect", path, error))?;
        // The kernel refuses a directory that was put there meanwhile.
        match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) => Ok(u64::try_from(stat.st_size).unwrap_or(0)),
            Err(Errno::ISDIR) => Err(PathError::IsDirectory { path: path.to_owned() }),
            Err(error) => Err(PathError::io("remove", path, error)),
        }
    }

    /// Creates the missing parent directories of `path`.
    pub(crate) fn make_parents(&self, path: &Path) -> Result<(), PathError> {
        let parents: Vec<&Path> =
            path.ancestors().skip(1).filter(|parent| *parent != Path::new("")).collect();
        for parent in parents.into_iter().rev() {
            let (holder, name) = self.locate_parent(parent)?;
            match rustix::fs::mkdirat(holder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(PathError::io("make directory", parent, error)),
            }
        }
        Ok(())
    }

    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, PathError> {
        let relative = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        beneath::open_with(&self.descriptor, relative, flags, self.symlinks, self.resolver).map_err(|error| {
            match error {
                Errno::XDEV => PathError::Escapes { path: path.to_owned() },
                Errno::LOOP => PathError::Symlink { path: path.to_owned() },
                error => PathError::io("open", relative, error),
            }
        })
    }
}

/// Opens a directory of the file system for working in it.
pub(crate) fn open_outside(path: &Path) -> Result<OwnedFd, PathError> {
    rustix::fs::open(path, LOCATE_DIRECTORY, Mode::empty())
        .map_err(|error| PathError::io("open directory", path, error))
}

/// Opens a path of the file system only as a location (`O_PATH`).
pub(crate) fn locate_outside(path: &Path) -> Result<OwnedFd, PathError> {
    rustix::fs::open(path, LOCATE, Mode::empty()).map_err(|error| PathError::io("open", path, error))
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn status_of(descriptor: BorrowedFd<'_>, path: &Path) -> Result<Stat, PathError> {
    rustix::fs::fstat(descriptor).map_err(|error| PathError::io("inspect", path, error))
}

fn require_regular(stat: &Stat, path: &Path) -> Result<(), PathError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(PathError::IsDirectory { path: path.to_owned() }),
        found => Err(PathError::WrongType { path: path.to_owned(), found }),
    }
}

fn describe(found: FileType) -> &'static str {
    match found {
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}

// === impl RegularFile ===

impl RegularFile {
    fn new(descriptor: OwnedFd, stat: &Stat) -> Self {
        Self { file: descriptor.into(), size_bytes: u64::try_from(stat.st_size).unwrap_or(0) }
    }
}

// === impl PathError ===

impl PathError {
    pub(crate) fn io(action: &'static str, path: &Path, error: impl Into<io::Error>) -> Self {
        Self::Io { action, path: path.to_owned(), source: error.into() }
    }

    /// Returns true if the path was longer than the kernel accepts.
    pub(crate) fn is_too_long(&self) -> bool {
        self.errno() == Some(Errno::NAMETOOLONG)
    }

    /// Returns true if the path has something else where a directory was expected.
    pub(crate) fn is_no_directory(&self) -> bool {
        self.errno() == Some(Errno::NOTDIR)
    }

    /// Returns true if there is nothing of that name.
    pub(crate) fn is_absent(&self) -> bool {
        self.errno() == Some(Errno::NOENT)
    }

    /// Returns the kernel's error, if it was the kernel's.
    pub(crate) fn errno(&self) -> Option<Errno> {
        match self {
            Self::Io { source, .. } => Errno::from_io_error(source),
            _ => None,
        }
    }
}

impl Fault for PathError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Escapes { .. } | Self::Symlink { .. } | Self::WrongType { .. } => {
                FailureCode::PolicyViolation
            }
            Self::IsDirectory { .. } | Self::Exists { .. } => FailureCode::StepFailed,
            Self::Io { source, .. } => code_of_io(source),
        }
    }
}

#[cfg(test)]
mod race_tests;
#[cfg(test)]
mod tests;
