//! Errors of files that aren't obeyed.

use crate::in_use::InUseEntry;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why a file isn't obeyed.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedFileError {
    /// It can't be looked at.
    #[error("can't look at {}", path.display())]
    Look {
        /// Path at which the walk ended.
        path: PathBuf,
        /// Why.
        #[source]
        source: Errno,
    },
    /// A sandbox can write it.
    #[error(
        "{} lies in the workspace {}, which a sandbox can write, so the sandbox would decide what the host does; keep it elsewhere, \
         such as in ~/.config/belljar, or give the sandbox a copy (--workspace-copy)",
        path.display(),
        workspace.display()
    )]
    Workspace {
        /// The file, as it was named.
        path: PathBuf,
        /// The directory that a sandbox writes.
        workspace: PathBuf,
    },
    /// A sandbox can write it by another of its names.
    #[error(
        "{} is the same file as {}, which lies in the workspace {}, so a sandbox can write it; use a copy of the file instead \
         (cp, not ln)",
        path.display(),
        other.display(),
        workspace.display()
    )]
    Linked {
        /// The file, as it was named.
        path: PathBuf,
        /// Other name of the file.
        other: PathBuf,
        /// The directory that a sandbox writes.
        workspace: PathBuf,
    },
    /// A process of a sandbox has it open, or a directory on the way to it.
    #[error(
        "{} is open in the process {process} of the sandbox that writes the workspace {}, so the sandbox can change {}, wherever it was \
         moved to; use a copy instead (cp -r, not mv), or end the sandbox",
        at.display(),
        workspace.display(),
        path.display()
    )]
    Held {
        /// The file, as it was named.
        path: PathBuf,
        /// File that is open.
        at: PathBuf,
        /// A process that has it open.
        process: i32,
        /// The directory that the process's sandbox writes.
        workspace: PathBuf,
    },
    /// It isn't known if a sandbox can write the file.
    #[error(
        "can't tell whether the sandbox that writes the workspace {} can write {}, too: {why}; end the sandbox, or use a copy of the \
         file on another file system",
        workspace.display(),
        path.display()
    )]
    Unknown {
        /// The file, as it was named.
        path: PathBuf,
        /// The directory that a sandbox writes.
        workspace: PathBuf,
        /// Reason why it can't be determined.
        why: &'static str,
    },
    /// Another user owns the file, or a directory on the way to it.
    #[error(
        "{} is used by the host, and {} belongs to user {owner}, who could change it; \
         it must belong to you or to root (chown)",
        path.display(),
        at.display()
    )]
    Owner {
        /// The file, as it was named.
        path: PathBuf,
        /// File that belongs to another user.
        at: PathBuf,
        /// Id of that user.
        owner: u32,
    },
    /// The path is a socket, a disk, or a named pipe, and not passed by a descriptor.
    #[error("{} is no regular file", path.display())]
    Kind {
        /// Path that was named.
        path: PathBuf,
    },
    /// Other users may write it, or a directory on the way to it.
    #[error(
        "{} is used by the host, and other users can write {} (mode {mode:04o}); run: chmod go-w {}",
        path.display(),
        at.display(),
        at.display()
    )]
    Mode {
        /// The file, as it was named.
        path: PathBuf,
        /// File that others can write.
        at: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
}

impl UntrustedFileError {
    /// The file, as it was named, or where the way to it ended.
    pub fn path(&self) -> &Path {
        match self {
            Self::Look { path, .. }
            | Self::Workspace { path, .. }
            | Self::Linked { path, .. }
            | Self::Held { path, .. }
            | Self::Unknown { path, .. }
            | Self::Owner { path, .. }
            | Self::Kind { path }
            | Self::Mode { path, .. } => path,
        }
    }

    /// Returns true if the error is caused by a sandbox's write access.
    pub fn is_of_sandbox(&self) -> bool {
        match self {
            Self::Workspace { .. } | Self::Linked { .. } | Self::Held { .. } | Self::Unknown { .. } => true,
            Self::Look { .. } | Self::Owner { .. } | Self::Kind { .. } | Self::Mode { .. } => false,
        }
    }

    pub(super) fn unknown(path: &Path, entry: &InUseEntry, why: &'static str) -> Self {
        Self::Unknown { path: path.to_owned(), workspace: entry.path.clone(), why }
    }
}

impl From<UntrustedFileError> for io::Error {
    fn from(error: UntrustedFileError) -> Self {
        match error {
            UntrustedFileError::Look { source, .. } => source.into(),
            refused => Self::new(io::ErrorKind::PermissionDenied, refused),
        }
    }
}

pub(super) fn look(path: &Path) -> impl FnOnce(Errno) -> UntrustedFileError {
    move |source| UntrustedFileError::Look { path: path.to_owned(), source }
}

pub(super) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
