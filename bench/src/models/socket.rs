//! TCP and Unix sockets, as files.

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// The address of a listener.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum ListenerAddress {
    Tcp(SocketAddr),
    Local(PathBuf),
}

/// A set of sockets to wait for.
pub(crate) struct SocketPoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

// === impl ListenerAddress ===

impl ListenerAddress {
    pub(crate) fn connect(&self) -> std::io::Result<File> {
        let socket: OwnedFd = match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                stream.into()
            }
            Self::Local(path) => UnixStream::connect(path)?.into(),
        };
        Ok(socket.into())
    }
}

// === impl SocketPoll ===

impl SocketPoll {
    pub(crate) fn new() -> Self {
        const AT_ONCE: usize = 256;
        let epoll = epoll::create(CreateFlags::CLOEXEC).expect("an epoll instance");
        Self { epoll, events: Vec::with_capacity(AT_ONCE) }
    }

    /// Adds a socket under this number, until it is closed.
    pub(crate) fn add(&self, socket: &impl AsFd, number: usize) {
        let data = EventData::new_u64(number as u64);
        epoll::add(&self.epoll, socket, data, EventFlags::IN).expect("a socket that can be waited for");
    }

    /// Returns the numbers of sockets that are readable or closed by the peer.
    pub(crate) fn wait(&mut self, patience: Option<Duration>) -> impl Iterator<Item = usize> {
        let patience = patience.and_then(|time| Timespec::try_from(time).ok());
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, room, patience.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => panic!("can't wait for sockets: {errno}"),
        }
        self.events.iter().filter_map(|event| usize::try_from(event.data.u64()).ok())
    }
}
