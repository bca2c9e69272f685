//! Checks of local sockets by which the host reaches servers, such as a provider of models or a container engine: no
//! sandbox may serve them.
//!
//! The location of the socket isn't enough: a sandbox still serves a socket that was moved out of its workspace, or linked
//! from elsewhere. So the server is checked, too.

use crate::in_use::{self, FileIdentity, InUseEntry};
use crate::trusted_file::{self, UntrustedFileError};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::io;
use std::path::{Path, PathBuf};

/// The process that serves a socket, as the kernel reports it to a client (`SO_PEERCRED`).
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// User id of the server.
    pub uid: u32,
    /// Process id of the server; `None` for one outside of this process's PID namespace, which is no sandbox's.
    pub pid: Option<i32>,
}

/// Why a socket isn't used.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedSocketError {
    /// A sandbox or another user could put one there.
    #[error(transparent)]
    Place(#[from] UntrustedFileError),
    /// The server can't be determined: the socket has several names.
    #[error("{} has {names} names (hard links), so a sandbox may serve it; give a socket with one name", path.display())]
    Linked {
        /// The socket.
        path: PathBuf,
        /// Number of names.
        names: u64,
    },
    /// A sandbox serves it.
    #[error(
        "{} is served by the process {pid} of a sandbox, which writes {}; end that sandbox, or give another socket",
        path.display(),
        workspace.display()
    )]
    Sandbox {
        /// The socket.
        path: PathBuf,
        /// The server.
        pid: i32,
        /// Workspace that the sandbox writes.
        workspace: PathBuf,
    },
    /// It can't be determined if a sandbox serves it.
    #[error("can't tell whether a sandbox serves {}: the listening process {pid} can't be inspected", path.display())]
    Server {
        /// The socket.
        path: PathBuf,
        /// The server.
        pid: i32,
        /// Why.
        #[source]
        source: Errno,
    },
}

/// Checks a socket before it is connected to.
///
/// # Errors
/// [`UntrustedSocketError`] if a sandbox or another user could serve it.
pub fn check(path: &Path) -> Result<(), UntrustedSocketError> {
    trusted_file::check_socket(path)?;
    let look = |source| UntrustedFileError::Look { path: path.to_owned(), source };
    match stat(path).map_err(look)?.st_nlink {
        0 | 1 => Ok(()),
        names => Err(UntrustedSocketError::Linked { path: path.to_owned(), names }),
    }
}

/// Checks the server of a socket that was connected to, before anything is sent.
///
/// # Errors
/// [`UntrustedSocketError`] if it is in a sandbox that writes a directory of the host's, or if that can't be determined.
pub fn check_server(path: &Path, server: Server) -> Result<(), UntrustedSocketError> {
    let own = geteuid();
    // Sandboxes of an ordinary user are that user's, and none is root's.
    let may_be_sandboxed = server.uid != 0 && (own.is_root() || server.uid == own.as_raw());
    let (Some(pid), true) = (server.pid, may_be_sandboxed) else { return Ok(()) };
    let writable = in_use::writable();
    if writable.is_empty() {
        return Ok(());
    }
    let found = workspace_of(pid, &writable);
    let found =
        found.map_err(|source| UntrustedSocketError::Server { path: path.to_owned(), pid, source })?;
    match found {
        None => Ok(()),
        Some(InUseEntry { path: workspace, .. }) => {
            Err(UntrustedSocketError::Sandbox { path: path.to_owned(), pid, workspace: workspace.clone() })
        }
    }
}

/// Returns the entry of the directory that a process sees as its workspace, if it is one of these.
fn workspace_of(pid: i32, writable: &[InUseEntry]) -> Result<Option<&InUseEntry>, Errno> {
    let root = format!("/proc/{pid}/root");
    // The host's own root may have a directory of that name.
    if FileIdentity::of(&stat(root.as_str())?) == FileIdentity::of(&stat("/")?) {
        return Ok(None);
    }
    match stat(format!("{root}/workspace")) {
        Ok(found) => Ok(writable.iter().find(|entry| entry.identity == FileIdentity::of(&found))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno),
    }
}

impl From<UntrustedSocketError> for io::Error {
    fn from(error: UntrustedSocketError) -> Self {
        match error {
            UntrustedSocketError::Place(error) => error.into(),
            refused => Self::new(io::ErrorKind::PermissionDenied, refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn socket_with_a_second_name_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("engine.sock"), place.path().join("other"));
        let _listener = UnixListener::bind(&path).unwrap();
        check(&path).unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        assert!(matches!(check(&path), Err(UntrustedSocketError::Linked { names: 2, .. })));
        std::fs::remove_file(other).unwrap();
        check(&path).unwrap();
    }

    #[test]
    fn host_process_is_not_in_a_sandbox() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(workspace_of(pid, &[]).unwrap().is_none());
        assert!(workspace_of(i32::MAX, &[]).is_err(), "a server that is gone may have been a sandbox's");
    }
}
