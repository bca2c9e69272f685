//! A container's hatches. It has no network that the host could come into, so its PID 1 makes the sockets and hands them
//! over, by a socket that is gone before anything else runs inside.

use super::own_program::{HANDED_OVER, SocketHandover};
use crate::hatch::Hatch;
use crate::state::RunFolder;
use crate::workspace::file_owner::{self, FileOwner};
use belljar_confine::message;
use belljar_confine::plan::Identity;
use belljar_files::directory::Directory;
use belljar_files::host_path::HostPath;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, socket_with};
use std::error::Error;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// State that the host needs until the sockets are open.
#[derive(Debug)]
pub(super) struct PendingHatches {
    hatches: Vec<Hatch>,
    folder: HostPath,
    taking: OwnedFd,
}

/// The sockets are not the host's.
#[derive(Debug, thiserror::Error)]
#[error("process 1 handed over {found} sockets instead of {wanted}")]
struct MissingSocketsError {
    found: usize,
    wanted: usize,
}

type HandoverError = Box<dyn Error + Send + Sync>;

/// The run's directory with the socket, and where that is in the container.
const FOLDER: &str = "handover";
const INSIDE: &str = "run/belljar/handover";
const SOCKET: &str = "socket";

// === impl PendingHatches ===

impl PendingHatches {
    /// Makes the directories to mount, if there are any hatches.
    pub(super) fn open(
        hatches: &[Hatch],
        folder: &RunFolder,
        owner: Identity,
    ) -> Result<Option<Self>, HandoverError> {
        if hatches.is_empty() {
            return Ok(None);
        }
        let folder = folder.make(FOLDER, owner)?;
        let taking = listen(&folder, owner)?;
        Ok(Some(Self { hatches: hatches.to_vec(), folder, taking }))
    }

    /// The directory to be mounted.
    pub(super) fn folder(&self) -> &HostPath {
        &self.folder
    }

    /// Path of the directory in the container, relative to its root.
    pub(super) fn inside(&self) -> &'static str {
        INSIDE
    }

    /// Returns the directories in memory in which sockets lie.
    pub(super) fn directories(&self) -> Vec<String> {
        self.hatches.iter().map(|hatch| hatch.directory().to_owned()).collect()
    }

    /// Returns the handover order to PID 1.
    pub(super) fn handover(&self) -> SocketHandover {
        SocketHandover { hatches: self.hatches.clone(), socket: format!("{INSIDE}/{SOCKET}") }
    }

    /// Takes what PID 1 has handed over, which it did before it was ready, and shuts the way by which it did.
    pub(super) fn take(self) -> Result<Vec<OwnedFd>, HandoverError> {
        let by = accept_with(&self.taking, SocketFlags::CLOEXEC);
        std::fs::remove_file(self.folder.as_path().join(SOCKET))?;
        let (bytes, sockets) = message::receive_now(by?.as_fd())?.unwrap_or_default();
        let wanted = self.hatches.iter().flat_map(|hatch| hatch.sockets()).count();
        if bytes != HANDED_OVER || sockets.len() != wanted {
            return Err(MissingSocketsError { found: sockets.len(), wanted }.into());
        }
        Ok(sockets)
    }
}

/// A socket in that folder to which the container's user may connect. The folder is the owner's, who can rename another file to the
/// socket's name, so it is made and opened up as the owner.
fn listen(folder: &HostPath, owner: Identity) -> Result<OwnedFd, HandoverError> {
    let folder = Directory::open_host(folder.as_path())?;
    // By the descriptor: a path of any length.
    let path = Path::new("/proc/self/fd").join(folder.as_fd().as_raw_fd().to_string()).join(SOCKET);
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    let address = SocketAddrUnix::new(&path)?;
    file_owner::make_as(FileOwner::of_root(owner.host_uid, owner.host_gid), || {
        bind(&socket, &address)?;
        Ok(folder.change_mode(Path::new(SOCKET), 0o666)?)
    })?;
    rustix::net::listen(&socket, 1)?;
    Ok(socket)
}
