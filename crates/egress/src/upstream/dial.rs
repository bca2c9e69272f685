//! The only place where connections to the outside are opened.
//!
//! Destinations of sandboxes are vetted by the policy (`dial_allowed`): private addresses only where a rule names their network, against SSRF
//! and DNS rebinding. Configured upstreams may have private addresses (`dial`).

use super::address::may_be_named;
use super::names::NameResolver;
use super::place::{Upstream, UpstreamAddress};
use super::stream::Stream;
use belljar_policy::egress::{
    AllowedDestination, Destination, EgressDenial, Host, MOST_ADDRESSES, VettedDestination,
};
use belljar_trusted::socket::{self, Server};
use belljar_trusted::tcp_server::{self, ServerUser, UntrustedServerError};
use bytes::BytesMut;
use rustix::fd::AsFd;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

/// Reason why no connection was opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("no connection")]
    Failed {
        #[source]
        source: io::Error,
    },
    #[error("the hostname resolves only to forbidden addresses")]
    Forbidden,
    #[error("nothing was sent: the server on this machine may belong to another user")]
    OtherUser {
        #[source]
        source: UntrustedServerError,
    },
}

/// Connection that was dialed for a sandbox, with its address.
pub(crate) struct DialedConnection {
    pub(crate) stream: TcpStream,
    /// `None` if an upstream proxy has resolved the name.
    pub(crate) address: Option<IpAddr>,
    /// Bytes that were already received.
    pub(crate) early: BytesMut,
}

/// Reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialAllowedError {
    #[error(transparent)]
    Denied(#[from] EgressDenial),
    #[error("the name lookup timed out")]
    NoAnswer,
    #[error("the upstream proxy answered with status {status}")]
    Refused { status: u16 },
    #[error("the upstream proxy can't be used")]
    NoProxy {
        #[source]
        source: io::Error,
    },
    #[error("no connection")]
    Failed {
        #[source]
        source: io::Error,
    },
}

/// Time limits for connecting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectTimeouts {
    /// For the name lookup.
    pub(crate) names: Duration,
    /// For the connection.
    pub(crate) connect: Duration,
}

/// Time limit for an address if there is another one. The last one gets all the remaining time.
const ATTEMPT_TIME: Duration = Duration::from_secs(2);

/// Maximum number of addresses of a name that are tried.
const MOST_ATTEMPTS: usize = 6;

/// Connects to a local socket of the host. A socket that a sandbox controls is refused.
async fn local(path: &Path) -> io::Result<UnixStream> {
    socket::check(path)?;
    let stream = UnixStream::connect(path).await?;
    let server = stream.peer_cred()?;
    socket::check_server(path, Server { uid: server.uid(), pid: server.pid() })?;
    Ok(stream)
}

/// Connects to an upstream. Without TLS its server is not authenticated, so on this machine the server's user is looked up.
pub(super) async fn dial(upstream: &Upstream, names: &NameResolver) -> Result<Stream, DialError> {
    let stream = dial_place(&upstream.place, names).await?;
    if let (Stream::Tcp(stream), None) = (&stream, &upstream.tls) {
        check_user(stream, upstream.server_user()).await?;
    }
    Ok(stream)
}

/// Checks the user of a server before anything is sent.
async fn check_user(stream: &TcpStream, user: ServerUser) -> Result<(), DialError> {
    let failed = |source| DialError::Failed { source };
    let (client, server) = (stream.local_addr().map_err(failed)?, stream.peer_addr().map_err(failed)?);
    if user == ServerUser::Any || !tcp_server::is_of_this_machine(client, server) {
        return Ok(());
    }
    let stream = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned().map_err(failed)?);
    // The check reads a file and may block.
    let checking = tokio::task::spawn_blocking(move || tcp_server::check(&stream, user));
    match checking.await.map_err(|died| failed(io::Error::other(died)))? {
        Ok(()) => Ok(()),
        Err(UntrustedServerError::Gone(source)) => Err(failed(source)),
        Err(source) => Err(DialError::OtherUser { source }),
    }
}

/// Connects to a place. A name is resolved once, and only the addresses that were checked are dialed.
async fn dial_place(place: &UpstreamAddress, names: &NameResolver) -> Result<Stream, DialError> {
    let opened = match place {
        UpstreamAddress::Local { path } => local(path).await.map(Stream::Local),
        UpstreamAddress::Address { address } => first_of(&[*address]).await,
        UpstreamAddress::Name { name, port } => {
            let found = names.resolve(name).await.map_err(|source| DialError::Failed { source })?;
            let vetted: Vec<_> = found.iter().filter(|address| may_be_named(**address)).collect();
            if vetted.is_empty() && !found.is_empty() {
                return Err(DialError::Forbidden);
            }
            let addresses = vetted.into_iter().take(MOST_ATTEMPTS);
            let addresses: Vec<_> = addresses.map(|address| SocketAddr::new(*address, *port)).collect();
            first_of(&addresses).await
        }
    };
    opened.map_err(|source| DialError::Failed { source })
}

/// Connects for a sandbox where the policy allows it. The name is resolved once and all its addresses are checked. Nothing else
/// is dialed, which prevents DNS rebinding.
pub(crate) async fn dial_allowed(
    allowed: AllowedDestination<Destination>,
    names: &NameResolver,
    patience: ConnectTimeouts,
) -> Result<DialedConnection, DialAllowedError> {
    let vetted = vetted(allowed, names, patience.names).await?;
    let addresses = vetted.value().addresses();
    let addresses = addresses.get(..MOST_ATTEMPTS).unwrap_or(addresses);
    match timeout(patience.connect, first_of(addresses)).await {
        Ok(Ok(Stream::Tcp(stream))) => {
            let address = stream.peer_addr().map_err(|source| DialAllowedError::Failed { source })?;
            let address = Some(address.ip().to_canonical());
            Ok(DialedConnection { stream, address, early: BytesMut::new() })
        }
        Ok(Ok(_)) => Err(DialAllowedError::Failed { source: io::ErrorKind::Unsupported.into() }),
        Ok(Err(source)) => Err(DialAllowedError::Failed { source }),
        Err(_) => Err(DialAllowedError::Failed { source: io::ErrorKind::TimedOut.into() }),
    }
}

/// Resolves a destination and checks its addresses.
pub(super) async fn vetted(
    allowed: AllowedDestination<Destination>,
    names: &NameResolver,
    patience: Duration,
) -> Result<AllowedDestination<VettedDestination>, DialAllowedError> {
    let found = match &allowed.value().host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => match timeout(patience, names.resolve_whole(name.as_str())).await {
            Ok(Ok(found)) => found,
            // The name server does not answer, or there is no such name.
            Ok(Err(_)) => Vec::new(),
            Err(_) => return Err(DialAllowedError::NoAnswer),
        },
    };
    // A name with more addresses is refused anyway, so not every address needs to be checked.
    let found = found.get(..=MOST_ADDRESSES).unwrap_or(&found);
    let own: Vec<_> = found.iter().copied().filter(|address| is_of_this_machine(*address)).collect();
    Ok(allowed.vet(found, &own)?)
}

/// Returns true if an address belongs to this machine: one that a socket can bind to, even if no packet would be sent from it.
/// Also returns true if that can't be determined, because such addresses must not be dialed.
pub(crate) fn is_of_this_machine(address: IpAddr) -> bool {
    match UdpSocket::bind((address.to_canonical(), 0)) {
        Ok(_) => true,
        // A machine without IPv6 has no such address.
        Err(error) => !matches!(
            rustix::io::Errno::from_io_error(&error),
            Some(rustix::io::Errno::ADDRNOTAVAIL | rustix::io::Errno::AFNOSUPPORT)
        ),
    }
}

/// Connects to the first address that answers.
async fn first_of(addresses: &[SocketAddr]) -> io::Result<Stream> {
    let (last, others) = addresses.split_last().ok_or(io::ErrorKind::NotFound)?;
    for address in others {
        if let Ok(Ok(stream)) = timeout(ATTEMPT_TIME, TcpStream::connect(address)).await {
            return tcp(stream);
        }
    }
    tcp(TcpStream::connect(last).await?)
}

fn tcp(stream: TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    Ok(Stream::Tcp(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_loopback_block_belongs_to_this_machine() {
        for (address, is_own) in [
            // The whole block belongs to the machine, although packets are sent from its first address only.
            ("127.0.0.1", true),
            ("127.7.7.7", true),
            ("::ffff:127.0.0.1", true),
            ("192.0.2.1", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), is_own, "{address}");
        }
    }
}
