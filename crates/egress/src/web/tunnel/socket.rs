//! Sockets of which a tunnel may be made: each end is read and written at once, and known to the kernel as what it is.

use std::io;
use std::os::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// One that is connected.
pub(in crate::web) trait Socket: AsyncRead + AsyncWrite + AsFd + Unpin {
    type From<'s>: AsyncRead + AsRef<Self> + Unpin
    where
        Self: 's;
    type Into<'s>: AsyncWrite + AsRef<Self> + Unpin
    where
        Self: 's;

    /// What it says, and what it is told.
    fn halves(&mut self) -> (Self::From<'_>, Self::Into<'_>);

    /// Does something of the system's with it, as soon as that has to wait no longer.
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
