//! Sockets that a tunnel connects: both directions work concurrently, and the file descriptor is available for splicing.

use std::io;
use std::os::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// Connected socket.
pub(in crate::web) trait Socket: AsyncRead + AsyncWrite + AsFd + Unpin {
    type From<'s>: AsyncRead + AsRef<Self> + Unpin
    where
        Self: 's;
    type Into<'s>: AsyncWrite + AsRef<Self> + Unpin
    where
        Self: 's;

    /// Returns the reading and the writing half.
    fn halves(&mut self) -> (Self::From<'_>, Self::Into<'_>);

    /// Runs a system call on the socket once it would not block.
    async fn when<R>(&self, ready: Interest, what: impl FnMut() -> io::Result<R>) -> io::Result<R>;
}

// === impl Socket ===

impl Socket for TcpStream {
    type From<'s> = tcp::ReadHalf<'s>;
    type Into<'s> = tcp::WriteHalf<'s>;

    fn halves(&mut self) -> (Self::From<'_>, Self::Into<'_>) {
        self.split()
    }

    async fn when<R>(&self, ready: Interest, what: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        self.async_io(ready, what).await
    }
}

impl Socket for UnixStream {
    type From<'s> = unix::ReadHalf<'s>;
    type Into<'s> = unix::WriteHalf<'s>;

    fn halves(&mut self) -> (Self::From<'_>, Self::Into<'_>) {
        self.split()
    }

    async fn when<R>(&self, ready: Interest, what: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        self.async_io(ready, what).await
    }
}
