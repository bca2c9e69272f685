//! TLS streams to upstreams.

use super::stream::Stream;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::ClientConfig;
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// TLS over a connection.
pub(crate) struct SecureStream(TlsStream<Stream>);

/// Maximum number of unrequested bytes. A server that sends more can't be reused.
const MOST_UNASKED: usize = 64 << 10;

// === impl SecureStream ===

impl SecureStream {
    /// Makes the TLS handshake and authenticates the server.
    pub(super) async fn open(
        stream: Stream,
        server: ServerName<'static>,
        config: Arc<ClientConfig>,
    ) -> io::Result<Self> {
        TlsConnector::from(config).connect(server, stream).await.map(Self)
    }

    /// Returns true if the connection is open and has no data to read. Messages of TLS itself, such as session tickets, are
    /// processed.
    pub(super) fn is_quiet(&mut self) -> bool {
        let (stream, session) = self.0.get_mut();
        let mut taken = 0;
        let mut room = [0; 4 << 10];
        while taken < MOST_UNASKED {
            // The kernel may know more than the reactor does.
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

/// Processes bytes by TLS. Returns false if they contain data of the application.
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

impl AsFd for SecureStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().0.as_fd()
    }
}

impl AsyncRead for SecureStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut self.get_mut().0;
        if stream.get_ref().1.wants_write() {
            // A reader has written everything, but the last bytes may not have been sent yet. If sending fails, reading reports
            // the reason.
            let _ = Pin::new(&mut *stream).poll_flush(context);
        }
        Pin::new(stream).poll_read(context, into)
    }
}

impl AsyncWrite for SecureStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    // All pieces together: otherwise an observer could tell the length of each piece, including a secret, from the sizes of
    // records.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{RootCertStore, ServerConfig};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio_rustls::TlsAcceptor;

    fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(own.cert.der().clone()).unwrap();
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let client = client.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let server = ServerConfig::builder_with_provider(provider);
        let server = server.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
        let server = server.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
        (Arc::new(client.with_no_client_auth()), Arc::new(server))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn buffered_tls_data_is_flushed_while_reading() {
        let (client, server) = configs();
        let (near, far) = UnixStream::pair().unwrap();
        let opened =
            SecureStream::open(Stream::Local(near), ServerName::try_from("localhost").unwrap(), client);
        let (opened, accepted) = tokio::join!(opened, TlsAcceptor::from(server).accept(far));
        let (mut near, mut far) = (opened.unwrap(), accepted.unwrap());
        rustix::net::sockopt::set_socket_send_buffer_size(&near, 4 << 10).unwrap();
        // TLS has buffer space for it, and the socket has not.
        let said = vec![7; 48 << 10];
        near.write_all(&said).await.unwrap();
        assert!(near.0.get_ref().1.wants_write());
        let answer = async {
            let mut heard = vec![0; said.len()];
            far.read_exact(&mut heard).await.unwrap();
            far.write_all(b"!").await.unwrap();
            far.flush().await.unwrap();
            assert_eq!(heard, said);
        };
        let mut answered = [0];
        let read = async { near.read_exact(&mut answered).await.unwrap() };
        let both = async { tokio::join!(answer, read) };
        tokio::time::timeout(Duration::from_secs(20), both).await.unwrap();
        assert_eq!(&answered, b"!");
        assert!(near.is_quiet());
        far.shutdown().await.unwrap();
        assert!(!near.is_quiet());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn vectored_write_becomes_one_tls_record() {
        let (client, server) = configs();
        let (near, far) = UnixStream::pair().unwrap();
        let opened =
            SecureStream::open(Stream::Local(near), ServerName::try_from("localhost").unwrap(), client);
        let (opened, accepted) = tokio::join!(opened, TlsAcceptor::from(server).accept(far));
        let (mut near, far) = (opened.unwrap(), accepted.unwrap());
        let pieces = [&b"head"[..], b"secret", b"", b"end"];
        let taken = near.write_vectored(&pieces.map(IoSlice::new)).await.unwrap();
        near.flush().await.unwrap();
        assert_eq!(taken, 13);
        let mut record = vec![0; 1024];
        far.get_ref().0.readable().await.unwrap();
        let read = far.get_ref().0.try_read(&mut record).unwrap();
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        assert_eq!((record[0], read), (23, 5 + length), "one record with data, and nothing else");
    }
}
