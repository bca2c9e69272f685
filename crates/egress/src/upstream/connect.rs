//! Makes new connections to upstreams: dials them, with TLS if configured.

use super::dial::{DialError, dial};
use super::names::{NameResolver, NameSource};
use super::place::{Upstream, UpstreamTls};
use super::pool::Connection;
use super::secure::SecureStream;
use super::stream::Stream;
use super::trust::{Authorities, TrustError, TrustStore};
use belljar_policy::egress::Host;
use belljar_trusted::tcp_server::UntrustedServerError;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Makes connections. Its parts are loaded when first needed.
pub(crate) struct Connector {
    names: NameResolver,
    trust: TrustStore,
}

/// Reason why there is no connection. The text is for the operator of the host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The upstream can't be reached, or hung up.
    #[error("the upstream can't be reached")]
    Unreachable {
        #[source]
        source: io::Error,
    },
    /// The name of the upstream resolves to a forbidden address.
    #[error("the upstream's hostname resolves only to forbidden addresses")]
    Forbidden,
    /// The server was not authenticated as the upstream, or TLS failed otherwise.
    #[error("the upstream can't be trusted")]
    Untrusted {
        #[source]
        source: io::Error,
    },
    /// A credential would be sent to another user of this machine.
    #[error(
        "nothing was sent: a credential is shown only to a server of your own user, of root, or of the `user` beside its \
         `url` (a name, a user id, or `any` for one in a container or another network namespace)"
    )]
    OtherUser {
        #[source]
        source: UntrustedServerError,
    },
    /// The trusted authorities can't be loaded.
    #[error("the trusted certificate authorities can't be loaded")]
    NoTrust {
        #[source]
        source: TrustError,
    },
}

// === impl Connector ===

impl Connector {
    pub(crate) fn new(names: NameSource) -> Self {
        Self { names: NameResolver::new(names), trust: TrustStore::default() }
    }

    pub(crate) async fn connect(&self, upstream: &Upstream) -> Result<Stream, ConnectError> {
        let Some(tls) = &upstream.tls else { return self.dial(upstream).await };
        // Before dialing: without trusted authorities nothing can be sent.
        let config = self.trusted(tls).await?;
        made_secure(self.dial(upstream).await?, tls, config).await
    }

    /// Connects without TLS, for protocols that start TLS themselves (STARTTLS).
    pub(crate) async fn dial(&self, upstream: &Upstream) -> Result<Stream, ConnectError> {
        Ok(dial(upstream, &self.names).await?)
    }

    /// Starts TLS on such a connection, if the upstream requires it.
    pub(crate) async fn upgrade(&self, stream: Stream, upstream: &Upstream) -> Result<Stream, ConnectError> {
        let Some(tls) = &upstream.tls else { return Ok(stream) };
        made_secure(stream, tls, self.trusted(tls).await?).await
    }

    async fn trusted(&self, tls: &UpstreamTls) -> Result<Arc<ClientConfig>, ConnectError> {
        let authorities = tls.authority.clone().map_or(Authorities::System, Authorities::Only);
        self.trust.config(authorities).await.map_err(|source| ConnectError::NoTrust { source })
    }
}

async fn made_secure(
    stream: Stream,
    tls: &UpstreamTls,
    config: Arc<ClientConfig>,
) -> Result<Stream, ConnectError> {
    match SecureStream::open(stream, tls.server.clone(), config).await {
        Ok(stream) => Ok(Stream::Secure(Box::new(stream))),
        Err(source) if is_of_tls(&source) => Err(ConnectError::Untrusted { source }),
        Err(source) => Err(ConnectError::Unreachable { source }),
    }
}

/// Starts TLS on a connection and authenticates the other end as that host.
pub(crate) async fn secure(
    stream: TcpStream,
    host: &Host,
    (trust, besides): (&TrustStore, Option<&Path>),
    patience: Duration,
) -> Result<Connection, ConnectError> {
    let authorities = besides.map_or(Authorities::System, |path| Authorities::Besides(path.to_owned()));
    let config = trust.config(authorities).await.map_err(|source| ConnectError::NoTrust { source })?;
    let server = match host {
        Host::Name(name) => ServerName::try_from(name.as_str().to_owned()),
        Host::Address(address) => Ok(ServerName::from(*address)),
    };
    let server = server.map_err(|source| ConnectError::Untrusted { source: io::Error::other(source) })?;
    match timeout(patience, SecureStream::open(Stream::Tcp(stream), server, config)).await {
        Ok(Ok(stream)) => Ok(Connection::over(Stream::Secure(Box::new(stream)))),
        Ok(Err(source)) if is_of_tls(&source) => Err(ConnectError::Untrusted { source }),
        Ok(Err(source)) => Err(ConnectError::Unreachable { source }),
        Err(_) => Err(ConnectError::Unreachable { source: io::ErrorKind::TimedOut.into() }),
    }
}

/// Returns true for errors of TLS itself, which are wrapped; all others come from the connection below.
fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some()
}

// === impl ConnectError ===

impl From<DialError> for ConnectError {
    fn from(error: DialError) -> Self {
        match error {
            DialError::Failed { source } => Self::Unreachable { source },
            DialError::Forbidden => Self::Forbidden,
            DialError::OtherUser { source } => Self::OtherUser { source },
        }
    }
}
