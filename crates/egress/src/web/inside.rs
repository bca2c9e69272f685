//! A connection that is looked into: to the client it is the host that it asked for, and each request in it is decided, recorded
//! and passed on by itself.

use super::decision::Way;
use super::opening::{self, Opening};
use super::passage::Passage;
use super::tunnel;
use crate::client::{Client, Stop};
use crate::within::within;
use belljar_policy::egress::Destination;
use rustls::AlertDescription;
use std::io::{self, Cursor};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// Why one ended before anything could be asked in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// As a tunnel ends.
    Tunnel(tunnel::End),
    /// The client speaks TLS, and doesn't come to terms with whoever looks into it: by its version, its ciphers, or for whatever else
    /// is not a question of trust.
    Handshake,
}

// === impl End ===

impl End {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Tunnel(end) => end.code(),
            Self::Handshake => "tls_handshake_failed",
        }
    }

    /// Of what has kept a client from ending its handshake: what it says of the certificate that it was shown, and what it doesn't.
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
            )) => tunnel::End::NoTrust.into(),
            Some(_) => Self::Handshake,
            // It has hung up without a word, or its connection is gone.
            None => tunnel::End::Broken.into(),
        }
    }
}

impl From<tunnel::End> for End {
    fn from(end: tunnel::End) -> Self {
        Self::Tunnel(end)
    }
}

/// Answers what comes through a tunnel that the client believes to be open, until it is closed.
pub(super) async fn run<S>(
    client: Client<S>,
    destination: &Destination,
    passage: &mut Passage<'_>,
) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let gate = passage.gate;
    let times = gate.run.limits.times;
    let (stream, mut early) = client.into_parts();
    let (mut from, to) = tokio::io::split(stream);
    let read = within(times.head, opening::read(&mut from, &mut early, || {})).await;
    let opening = read.map_err(|_| tunnel::End::Idle)?.map_err(|_| tunnel::End::Broken)?;
    let stream = tokio::io::join(Cursor::new(early).chain(from), to);
    match opening {
        Opening::Tls { server_name, .. } => {
            // The host shows itself as the tunnel's host, whether or not the client names that.
            let judged = tunnel::judge_name(server_name.as_deref(), destination, false);
            passage.tls_name = server_name;
            judged?;
            let authority = gate.run.authority.as_ref().ok_or(tunnel::End::Broken)?;
            let shown = authority.shows(&destination.host).map_err(|_| tunnel::End::Broken)?;
            let accepted = within(times.head, TlsAcceptor::from(shown).accept(stream)).await;
            let stream =
                accepted.map_err(|_| tunnel::End::Idle)?.map_err(|error| End::of_handshake(&error))?;
            serve(Client::new(stream, times), (destination, true), passage).await;
            Ok(())
        }
        // Some clients use a tunnel for plain HTTP as well.
        Opening::Plain | Opening::Nothing | Opening::Upgrade { .. } => {
            serve(Client::new(stream, times), (destination, false), passage).await;
            Ok(())
        }
        Opening::Incomplete | Opening::Malformed => Err(tunnel::End::BrokenTls.into()),
    }
}

/// Answers one request after the other.
async fn serve<S>(
    mut client: Client<S>,
    (destination, is_secure): (&Destination, bool),
    passage: &Passage<'_>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let gate = passage.gate;
    loop {
        let keeps_alive = match client.head().await {
            Ok(head) => {
                let way = Way::Inside { destination, is_secure };
                Passage::begin(gate).pass(&mut client, &head, way).await
            }
            Err(Stop::Gone) => break,
            Err(Stop::Faulty(fault)) => {
                Passage::begin(gate).refuse(&mut client, fault.into(), (false, true)).await
            }
        };
        if !keeps_alive || !client.can_go_on() {
            break;
        }
    }
    client.close().await;
}
