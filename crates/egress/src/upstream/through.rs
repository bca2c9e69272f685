//! Through a proxy of the house, or an orchestrator's: what it is asked for is an address that was looked at here, unless it is the
//! one who resolves names.

use super::dial::{DialAllowedError, DialError, Dialed, Patience, dial, vetted};
use super::names::Names;
use super::place::Upstream;
use super::stream::Stream;
use crate::credential::Credential;
use crate::http1::limits::RESPONSE_HEAD_BYTES;
use crate::http1::{ResponseHead, head};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::egress::{Allowed, Destination, Host, HostPattern};
use bytes::{Buf, BytesMut};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Such a proxy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Through {
    /// Where it is; spoken to without TLS.
    pub(crate) upstream: Upstream,
    /// A user and a password with a colon between them, for who is asked for them.
    pub(crate) credential: Option<Arc<Credential>>,
    /// Who says where names lead.
    pub(crate) names: Resolver,
    /// Who is reached without it.
    pub(crate) except: Vec<HostPattern>,
}

/// Who says where names lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolver {
    /// This host. The proxy is asked for addresses that a sandbox may get to.
    Here,
    /// The proxy. It has to keep sandboxes from what is none of theirs.
    There,
}

// === impl Through ===

impl Through {
    /// Whether that is reached by it.
    pub(crate) fn leads_to(&self, host: &Host) -> bool {
        !self.except.iter().any(|pattern| pattern.matches(host))
    }

    /// Opens a tunnel by it.
    pub(crate) async fn dial(
        &self,
        allowed: Allowed<Destination>,
        names: &Names,
        patience: Patience,
    ) -> Result<Dialed, DialAllowedError> {
        let destination = allowed.value().clone();
        let by_name = self.names == Resolver::There && matches!(destination.host, Host::Name(_));
        let asked = match by_name {
            true => vec![(destination.to_string(), None)],
            false => {
                let vetted = vetted(allowed, names, patience.names).await?;
                let show = |address: &SocketAddr| (address.to_string(), Some(address.ip()));
                vetted.value().addresses().iter().map(show).collect()
            }
        };
        // It tries for as long as it likes: another address is for when it has said no.
        let mut last = DialAllowedError::NoAnswer;
        for (authority, address) in asked.into_iter().take(MOST_ASKED) {
            match timeout(patience.connect, self.tunnel(&authority, names)).await {
                Ok(Ok((stream, early))) => return Ok(Dialed { stream, address, early }),
                Ok(Err(error)) => last = error,
                Err(_) => last = DialAllowedError::Failed { source: io::ErrorKind::TimedOut.into() },
            }
        }
        Err(last)
    }

    async fn tunnel(
        &self,
        authority: &str,
        names: &Names,
    ) -> Result<(TcpStream, BytesMut), DialAllowedError> {
        let failed = |source| DialAllowedError::Failed { source };
        let mut stream = match dial(&self.upstream, names).await {
            Ok(Stream::Tcp(stream)) => stream,
            Err(error @ DialError::OtherUser { .. }) => return Err(failed(io::Error::other(error))),
            Ok(_) | Err(_) => return Err(failed(io::Error::other("the proxy can't be reached"))),
        };
        let mut asked = Zeroizing::new(Vec::with_capacity(1024));
        asked.extend_from_slice(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").as_bytes());
        if let Some(credential) = &self.credential {
            let known = credential.get_beside().await.map_err(|error| failed(io::Error::other(error)))?;
            let encoded = Zeroizing::new(STANDARD.encode(known.secret.expose()));
            asked.extend_from_slice(b"Proxy-Authorization: Basic ");
            asked.extend_from_slice(encoded.as_bytes());
            asked.extend_from_slice(b"\r\n");
        }
        asked.extend_from_slice(b"\r\n");
        stream.write_all(&asked).await.map_err(failed)?;
        let mut inbox = BytesMut::with_capacity(ROOM);
        let end = loop {
            if let Some(end) = head::end(&inbox) {
                break end;
            }
            if inbox.len() > RESPONSE_HEAD_BYTES || stream.read_buf(&mut inbox).await.map_err(failed)? == 0 {
                return Err(failed(io::ErrorKind::InvalidData.into()));
            }
        };
        let head = ResponseHead::parse(inbox.get(..end).unwrap_or_default());
        inbox.advance(end);
        match head.map_err(|error| failed(io::Error::other(error)))?.status {
            // What stands behind the head is of whoever is at the other end.
            200..=299 => Ok((stream, inbox)),
            status => Err(DialAllowedError::Refused { status }),
        }
    }
}

/// So many addresses of a name it is asked for.
const MOST_ASKED: usize = 3;

const ROOM: usize = 1 << 10;
