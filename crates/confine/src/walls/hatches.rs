//! Sockets that listen inside and are the host's: it takes what comes by them, and so knows who calls.

use super::{ErrorContext, WallError};
use crate::passed_descriptors;
use crate::plan::Hatch;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, chmodat};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1_024;

/// Makes them, in the network and the root that this process is in.
pub(crate) fn open(hatches: &[Hatch]) -> Result<Vec<OwnedFd>, WallError> {
    hatches.iter().map(|hatch| make(hatch).about(&subject(hatch))).collect()
}

fn make(hatch: &Hatch) -> Result<OwnedFd, Errno> {
    let socket = |family| socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let made = match hatch {
        Hatch::Loopback { port } => {
            let made = socket(AddressFamily::INET)?;
            set_socket_reuseaddr(&made, true)?;
            bind(&made, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, *port))?;
            made
        }
        Hatch::Local { inside } => {
            let made = socket(AddressFamily::UNIX)?;
            // Before anything can connect. Where the kernel can't, the thread of the host that reads serves this sandbox alone.
            passed_descriptors::refuse(made.as_fd())?;
            let path = format!("/{inside}");
            bind(&made, &SocketAddrUnix::new(path.as_str())?)?;
            // Every program inside may connect.
            chmodat(CWD, path.as_str(), Mode::from_raw_mode(0o666), rustix::fs::AtFlags::empty())?;
            made
        }
    };
    listen(&made, BACKLOG)?;
    Ok(made)
}

fn subject(hatch: &Hatch) -> String {
    match hatch {
        Hatch::Loopback { port } => format!("127.0.0.1:{port}"),
        Hatch::Local { inside } => format!("/{inside}"),
    }
}
