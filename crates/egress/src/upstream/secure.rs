//! A stream that only its two ends can read.

use super::stream::Stream;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::ClientConfig;
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// TLS over a connection.
pub(crate) struct Secure(TlsStream<Stream>);

/// An end that says more than this while it isn't asked is none to go on with.
const MOST_UNASKED: usize = 64 << 10;

// === impl Secure ===

impl Secure {
    /// Has the other end show who it is.
    pub(super) async fn open(
        stream: Stream,
        server: ServerName<'static>,
        config: Arc<ClientConfig>,
    ) -> io::Result<Self> {
        TlsConnector::from(config).connect(server, stream).await.map(Self)
    }

    /// Whether it is open and has nothing to say. What TLS says for itself, such as tickets for later, is taken in.
    pub(super) fn is_quiet(&mut self) -> bool {
        let (stream, session) = self.0.get_mut();
        let mut taken = 0;
        let mut room = [0; 4 << 10];
        while taken < MOST_UNASKED {
            // The kernel may know more than the reactor has heard of yet.
            match rustix::net::recv(stream.as_fd(), &mut room[..], RecvFlags::DONTWAIT) {
                Err(Errno::AGAIN) => return has_nothing_to_say(session),
                Ok((count @ 1.., _)) => {
                    taken += count;
                    if !take_in(session, room.get(..count).unwrap_or_default()) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        false
    }
}

/// Has TLS look at bytes; false where they aren't its own.
fn take_in(session: &mut ClientConnection, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        if !session.read_tls(&mut bytes).is_ok_and(|count| count > 0) || !has_nothing_to_say(session) {
            return false;
        }
    }
    true
}

fn has_nothing_to_say(session: &mut ClientConnection) -> bool {
    let state = session.process_new_packets();
    state.is_ok_and(|state| state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed())
}

impl AsFd for Secure {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().0.as_fd()
    }
}

impl AsyncRead for Secure {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut self.get_mut().0;
        if stream.get_ref().1.wants_write() {
            // Who waits for an answer has said everything, and the last of it may not have gone out yet. If it can't, reading
            // tells why.
            let _ = Pin::new(&mut *stream).poll_flush(context);
        }
        Pin::new(stream).poll_read(context, into)
    }
}

impl AsyncWrite for Secure {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}
