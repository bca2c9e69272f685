//! Connects through an upstream proxy, a site's own or an orchestrator's. For a tunnel the proxy is asked for an address that
//! was checked here, unless the proxy resolves names. A plain HTTP request is sent to it with the whole URL, as proxies expect
//! it: many only tunnel to TLS ports.
//!
//! A proxy that is asked for a URL resolves the name in it. So where names are resolved here, a request to a name goes through
//! a tunnel to the checked address; a request to an address goes as a URL.

use super::dial::{ConnectTimeouts, DialAllowedError, DialedConnection, dial, vetted};
use super::names::NameResolver;
use super::place::Upstream;
use super::stream::Stream;
use crate::credential::Credential;
use crate::http1::limits::RESPONSE_HEAD_BYTES;
use crate::http1::{ResponseHead, head};
use crate::identity::RunOwner;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::id::{JobId, TaskId};
use belljar_policy::egress::{AllowedDestination, Destination, Host, HostPattern};
use bytes::{Buf, BytesMut};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Upstream proxy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UpstreamProxy {
    /// Address of the proxy; connections to it have no TLS.
    pub(crate) upstream: Upstream,
    /// User and password with a colon between them, if the proxy requires them.
    pub(crate) credential: Option<Arc<Credential>>,
    /// Host that resolves names: this one or the proxy.
    pub(crate) names: ResolverLocation,
    /// True if requests to the proxy name the task and the job.
    pub(crate) tells_owner: bool,
    /// Hosts that are reached without the proxy.
    pub(crate) except: Vec<HostPattern>,
}

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    /// Tunnel to the destination itself.
    Tunnel,
    /// One request of plain HTTP.
    Request,
}

/// Connection, and what has to be sent on it first.
pub(crate) struct RoutedConnection {
    pub(crate) dialed: DialedConnection,
    /// Set for a connection to the proxy itself, which gets a whole URL. `None` if the other end is the destination.
    pub(crate) proxy: Option<ProxyHeaders>,
}

/// Header lines that introduce the client to a proxy.
pub(crate) struct ProxyHeaders {
    lines: Zeroizing<Vec<u8>>,
    names: Vec<&'static str>,
}

/// Host that resolves names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResolverLocation {
    /// On this host. The proxy is asked for addresses that the sandbox may reach.
    Here,
    /// At the proxy. It has to keep sandboxes out of private networks.
    There,
}

// === impl UpstreamProxy ===

impl UpstreamProxy {
    /// Returns true if that host is reached through the proxy.
    pub(crate) fn leads_to(&self, host: &Host) -> bool {
        !self.except.iter().any(|pattern| pattern.matches(host))
    }

    /// Connects through the proxy.
    pub(crate) async fn reach(
        &self,
        (allowed, wants): (AllowedDestination<Destination>, ConnectionPurpose),
        (names, patience): (&NameResolver, ConnectTimeouts),
        owner: &RunOwner,
    ) -> Result<RoutedConnection, DialAllowedError> {
        let introduction = self.introduction(owner).await?;
        let destination = allowed.value().clone();
        let is_named = matches!(destination.host, Host::Name(_));
        let by_name = self.names == ResolverLocation::There && is_named;
        if wants == ConnectionPurpose::Request && (by_name || !is_named) {
            let address = match by_name {
                true => None,
                false => vetted(allowed, names, patience.names)
                    .await?
                    .value()
                    .addresses()
                    .first()
                    .map(SocketAddr::ip),
            };
            let stream = match timeout(patience.connect, self.connect(names)).await {
                Ok(connected) => connected?,
                Err(_) => return Err(DialAllowedError::NoProxy { source: io::ErrorKind::TimedOut.into() }),
            };
            let dialed = DialedConnection { stream, address, early: BytesMut::new() };
            return Ok(RoutedConnection { dialed, proxy: Some(introduction) });
        }
        let asked = match by_name {
            true => vec![(destination.to_string(), None)],
            false => {
                let vetted = vetted(allowed, names, patience.names).await?;
                let show = |address: &SocketAddr| (address.to_string(), Some(address.ip()));
                vetted.value().addresses().iter().map(show).collect()
            }
        };
        // Each address gets the whole connect time limit. The next one is tried after a refusal or a timeout.
        let mut last = DialAllowedError::NoAnswer;
        for (authority, address) in asked.into_iter().take(MOST_ASKED) {
            match timeout(patience.connect, self.tunnel(&authority, names, &introduction)).await {
                Ok(Ok((stream, early))) => return Ok(DialedConnection { stream, address, early }.into()),
                Ok(Err(error)) => last = error,
                Err(_) => last = DialAllowedError::Failed { source: io::ErrorKind::TimedOut.into() },
            }
        }
        Err(last)
    }

    /// Connects to the proxy itself.
    async fn connect(&self, names: &NameResolver) -> Result<TcpStream, DialAllowedError> {
        match dial(&self.upstream, names).await {
            Ok(Stream::Tcp(stream)) => Ok(stream),
            Ok(_) => Err(no_proxy(io::Error::other("the proxy is no TCP server"))),
            Err(error) => Err(no_proxy(io::Error::other(error))),
        }
    }

    /// Returns the header lines that introduce the client.
    async fn introduction(&self, owner: &RunOwner) -> Result<ProxyHeaders, DialAllowedError> {
        let mut introduction =
            ProxyHeaders { lines: Zeroizing::new(Vec::with_capacity(ROOM)), names: Vec::new() };
        if let Some(credential) = &self.credential {
            let known = credential.get_beside().await.map_err(|error| no_proxy(io::Error::other(error)))?;
            let encoded = Zeroizing::new(STANDARD.encode(known.secret.expose()));
            introduction.say(b"Proxy-Authorization", &[b"Basic ", encoded.as_bytes()]);
        }
        let RunOwner { task_id, job_id } = owner;
        let told =
            [(TASK_ID, task_id.as_ref().map(TaskId::as_str)), (JOB_ID, job_id.as_ref().map(JobId::as_str))];
        for (name, id) in told {
            if !self.tells_owner {
                break;
            }
            // A run can never set this header itself.
            introduction.names.push(name);
            if let Some(id) = id {
                introduction.say(name.as_bytes(), &[id.as_bytes()]);
            }
        }
        Ok(introduction)
    }

    async fn tunnel(
        &self,
        authority: &str,
        names: &NameResolver,
        introduction: &ProxyHeaders,
    ) -> Result<(TcpStream, BytesMut), DialAllowedError> {
        let mut stream = self.connect(names).await?;
        let mut asked = Zeroizing::new(Vec::with_capacity(ROOM + introduction.lines.len()));
        asked.extend_from_slice(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").as_bytes());
        asked.extend_from_slice(&introduction.lines);
        asked.extend_from_slice(b"\r\n");
        stream.write_all(&asked).await.map_err(no_proxy)?;
        let mut inbox = BytesMut::with_capacity(ROOM);
        let end = loop {
            if let Some(end) = head::end(&inbox) {
                break end;
            }
            if inbox.len() > RESPONSE_HEAD_BYTES || stream.read_buf(&mut inbox).await.map_err(no_proxy)? == 0
            {
                return Err(no_proxy(io::ErrorKind::InvalidData.into()));
            }
        };
        let head = ResponseHead::parse(inbox.get(..end).unwrap_or_default());
        inbox.advance(end);
        match head.map_err(|error| no_proxy(io::Error::other(error)))?.status {
            // Bytes after the head come from the destination.
            200..=299 => Ok((stream, inbox)),
            status => Err(DialAllowedError::Refused { status }),
        }
    }
}

// === impl ProxyHeaders ===

impl ProxyHeaders {
    fn say(&mut self, name: &[u8], value: &[&[u8]]) {
        let parts = [name, b": "].into_iter().chain(value.iter().copied()).chain([&b"\r\n"[..]]);
        parts.for_each(|part| self.lines.extend_from_slice(part));
    }

    /// Returns the header lines. They may contain a credential.
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Returns the names of headers that are only for the proxy, besides those that every proxy removes.
    pub(crate) fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Returns true if a header of that name is part of the introduction.
    pub(crate) fn says(&self, name: &[u8]) -> bool {
        self.names.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }
}

impl From<DialedConnection> for RoutedConnection {
    fn from(dialed: DialedConnection) -> Self {
        Self { dialed, proxy: None }
    }
}

fn no_proxy(source: io::Error) -> DialAllowedError {
    DialAllowedError::NoProxy { source }
}

/// Headers that name the task and the job of a request.
const TASK_ID: &str = "X-CyNode-Task-Id";
const JOB_ID: &str = "X-CyNode-Job-Id";

/// Maximum number of addresses of a name that the proxy is asked for.
const MOST_ASKED: usize = 3;

const ROOM: usize = 1 << 10;
