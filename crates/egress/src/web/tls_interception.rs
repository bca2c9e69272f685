//! TLS interception: towards the client, the proxy poses as the requested host. It decides about each request inside, records
//! it and forwards it.

use super::decision::RequestRoute;
use super::proxied_request::ProxiedRequest;
use super::tunnel;
use super::tunnel_opening::{self, Opening};
use crate::client::{Client, ClientStop};
use crate::time_limit::within;
use belljar_policy::egress::Destination;
use rustls::AlertDescription;
use std::io::{self, Cursor};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// Reason why an intercepted connection ended before its first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InterceptionEnd {
    /// A reason for which any tunnel can end.
    Tunnel(tunnel::TunnelEnd),
    /// The TLS handshake with the client failed for another reason than trust, such as its version or its ciphers.
    Handshake,
}

// === impl InterceptionEnd ===

impl InterceptionEnd {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Tunnel(end) => end.code(),
            Self::Handshake => "tls_handshake_failed",
        }
    }

    /// Maps a failed handshake to its reason. Certificate alerts mean that the client does not trust the authority of the run.
    fn of_handshake(error: &io::Error) -> Self {
        use AlertDescription as Alert;
        let said = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
        match said {
            Some(rustls::Error::AlertReceived(
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateUnknown
                | Alert::CertificateExpired
                | Alert::CertificateRevoked,
            )) => tunnel::TunnelEnd::NoTrust.into(),
            Some(_) => Self::Handshake,
            // The client hung up without an alert, or its connection is gone.
            None => tunnel::TunnelEnd::Broken.into(),
        }
    }
}

impl From<tunnel::TunnelEnd> for InterceptionEnd {
    fn from(end: tunnel::TunnelEnd) -> Self {
        Self::Tunnel(end)
    }
}

/// Answers the requests in an intercepted tunnel until it is closed.
pub(super) async fn run<S>(
    client: Client<S>,
    destination: &Destination,
    passage: &mut ProxiedRequest<'_>,
) -> Result<(), InterceptionEnd>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let gate = passage.gate;
    let times = gate.run.limits.times;
    let (stream, mut early) = client.into_parts();
    let (mut from, to) = tokio::io::split(stream);
    let read = within(times.head, tunnel_opening::read(&mut from, &mut early, || {})).await;
    let opening = read.map_err(|_| tunnel::TunnelEnd::Idle)?.map_err(|_| tunnel::TunnelEnd::Broken)?;
    let stream = tokio::io::join(Cursor::new(early).chain(from), to);
    match opening {
        Opening::Tls { server_name, .. } => {
            // The proxy poses as the tunnel's host, whether or not the client sends its name.
            let judged = tunnel::judge_name(server_name.as_deref(), destination, false);
            passage.tls_name = server_name;
            judged?;
            let authority = gate.run.authority.as_ref().ok_or(tunnel::TunnelEnd::Broken)?;
            let shown = authority.shows(&destination.host).map_err(|_| tunnel::TunnelEnd::Broken)?;
            let accepted = within(times.head, TlsAcceptor::from(shown).accept(stream)).await;
            let stream = accepted
                .map_err(|_| tunnel::TunnelEnd::Idle)?
                .map_err(|error| InterceptionEnd::of_handshake(&error))?;
            serve(Client::new(stream, times), (destination, true), passage).await;
            Ok(())
        }
        // Some clients send plain HTTP through a tunnel.
        Opening::Plain | Opening::Nothing | Opening::Upgrade { .. } => {
            serve(Client::new(stream, times), (destination, false), passage).await;
            Ok(())
        }
        Opening::Incomplete | Opening::Malformed => Err(tunnel::TunnelEnd::BrokenTls.into()),
    }
}

/// Answers one request after the other.
async fn serve<S>(
    mut client: Client<S>,
    (destination, is_secure): (&Destination, bool),
    passage: &ProxiedRequest<'_>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let gate = passage.gate;
    loop {
        let keeps_alive = match client.head().await {
            Ok(head) => {
                let way = RequestRoute::Inside { destination, is_secure };
                ProxiedRequest::begin(gate).pass(&mut client, &head, way).await
            }
            Err(ClientStop::Gone) => break,
            Err(ClientStop::Faulty(fault)) => {
                ProxiedRequest::begin(gate).refuse(&mut client, fault.into(), (false, true)).await
            }
        };
        if !keeps_alive || !client.can_go_on() {
            break;
        }
    }
    client.close().await;
}
