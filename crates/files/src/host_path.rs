//! A path of the host together with the file that it named.

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path of the host and what it named when the host looked.
///
/// The namespaces of a sandbox are new, so a descriptor of the host's can't be mounted there; the path has to be
/// walked again. If it then leads somewhere else, the launch fails.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostPath {
    path: CString,
    inode: Inode,
    is_directory: bool,
}

/// Which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    device: (u32, u32),
    number: u64,
}

/// A path of the host that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("can't use {}", path.display())]
pub struct HostPathError {
    /// The path.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: Errno,
}

// === impl HostPath ===

impl HostPath {
    /// Looks at what `path` names now; a symbolic link at its end is followed.
    ///
    /// # Errors
    /// [`HostPathError`] when there is nothing, or it may not be looked at.
    pub fn resolve(path: impl Into<PathBuf>) -> Result<Self, HostPathError> {
        let path = path.into();
        let found = std::path::absolute(&path)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
            .and_then(|absolute| {
                let flags = StatxFlags::TYPE | StatxFlags::INO;
                statx(CWD, &absolute, AtFlags::empty(), flags).map(|stat| (absolute, stat))
            });
        match found {
            Ok((path, stat)) => Ok(Self::found(path, &stat)),
            Err(source) => Err(HostPathError { path, source }),
        }
    }

    /// Names the file that an open descriptor leads to, at the absolute path by which it was reached.
    ///
    /// # Errors
    /// [`HostPathError`] when the descriptor can't be looked at.
    pub fn of_opened(path: PathBuf, opened: impl AsFd) -> Result<Self, HostPathError> {
        match statx(opened, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE | StatxFlags::INO) {
            Ok(stat) => Ok(Self::found(path, &stat)),
            Err(source) => Err(HostPathError { path, source }),
        }
    }

    fn found(path: PathBuf, stat: &Statx) -> Self {
        let is_directory = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory;
        // The kernel has just found it, so there is no NUL in it.
        let path = CString::new(path.into_os_string().into_vec()).unwrap_or_default();
        Self { path, inode: Inode::of(stat), is_directory }
    }

    /// The path, absolute.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// Returns true if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Returns true if this is the file that an open descriptor leads to.
    ///
    /// # Errors
    /// The kernel's, when the descriptor can't be looked at.
    pub fn is(&self, opened: impl AsFd) -> Result<bool, Errno> {
        let stat = statx(opened, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE | StatxFlags::INO)?;
        Ok(Inode::of(&stat) == self.inode)
    }

    /// Returns the file that it named.
    pub fn inode(&self) -> Inode {
        self.inode
    }
}

// === impl Inode ===

impl Inode {
    /// Returns the file that was looked at with `TYPE` and `INO`.
    pub fn of(stat: &Statx) -> Self {
        Self { device: (stat.stx_dev_major, stat.stx_dev_minor), number: stat.stx_ino }
    }
}
