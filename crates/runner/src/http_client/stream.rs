//! A connection to a server, whatever it goes over.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, socket_with,
};
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connection.
pub(super) enum Stream {
    Local(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Connects without blocking: it fails if the listener's backlog is full.
pub(crate) fn connect_local(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

// === impl Stream ===

impl Stream {
    /// Wraps a local connection; reads and writes block for `glance` at most.
    pub(super) fn local(stream: UnixStream, glance: Duration) -> io::Result<Self> {
        stream.set_read_timeout(Some(glance))?;
        stream.set_write_timeout(Some(glance))?;
        Ok(Self::Local(stream))
    }

    pub(super) fn tcp(stream: TcpStream, glance: Duration) -> io::Result<Self> {
        limit(&stream, glance)?;
        Ok(Self::Tcp(stream))
    }

    pub(super) fn encrypted(
        stream: StreamOwned<ClientConnection, TcpStream>,
        glance: Duration,
    ) -> io::Result<Self> {
        limit(&stream.sock, glance)?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// Returns true if it is open and nothing has come without a request.
    pub(super) fn is_quiet(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = match self {
            Self::Local(stream) => recv(stream, &mut byte, flags),
            Self::Tcp(stream) => recv(stream, &mut byte, flags),
            Self::Tls(stream) => recv(&stream.sock, &mut byte, flags),
        };
        matches!(peeked, Err(Errno::AGAIN))
    }
}

fn limit(stream: &TcpStream, glance: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(glance))?;
    stream.set_write_timeout(Some(glance))
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
