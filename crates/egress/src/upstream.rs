//! Connections to whoever answers.

use bytes::BytesMut;
use rustix::fd::AsFd;
use rustix::net::RecvFlags;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Where an upstream is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Upstream {
    address: Address,
    /// What stands in `Host`.
    host: String,
    /// What stands before every path.
    prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Address {
    Tcp { ip: IpAddr, port: u16 },
    Local { path: PathBuf },
}

/// Text that is no place of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no upstream: {why}")]
pub struct UpstreamError {
    /// What was found.
    pub found: String,
    /// What is wrong with it.
    pub why: &'static str,
}

/// A connection, and what has been read from it and not been used yet.
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) inbox: BytesMut,
    /// Whether it has been used before.
    pub(crate) is_used: bool,
}

/// Of either kind.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Local(UnixStream),
}

/// Connections that wait for the next call.
#[derive(Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<Upstream, Vec<(Instant, Connection)>>>,
}

/// So many wait for each upstream, and so long.
const MOST_IDLE: usize = 128;
const LONGEST_IDLE: Duration = Duration::from_secs(55);

const ROOM: usize = 16 << 10;

// === impl Upstream ===

impl Upstream {
    /// Parses `http://ADDRESS[:PORT][/PREFIX]` or `unix:/PATH`.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let failed = |why| UpstreamError { found: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.starts_with('/') {
                true => Ok(Self {
                    address: Address::Local { path: path.into() },
                    host: "localhost".to_owned(),
                    prefix: String::new(),
                }),
                false => Err(failed("behind unix: stands the absolute path of a socket")),
            };
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| failed("it begins with http:// or unix:"))?;
        let (host, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let prefix = prefix.trim_end_matches('/');
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\%".contains(&byte));
        if !is_plain(host) || !is_plain(prefix) {
            return Err(failed("it has nothing but a host, a port and a path"));
        }
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => {
                (name, port.parse().map_err(|_| failed("the port is no number"))?)
            }
            _ => (host, 80),
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let ip = match bare {
            "localhost" => IpAddr::from([127, 0, 0, 1]),
            other => other.parse().map_err(|_| failed("the host is an address or localhost"))?,
        };
        Ok(Self { address: Address::Tcp { ip, port }, host: host.to_owned(), prefix: prefix.to_owned() })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    async fn connect(&self) -> std::io::Result<Connection> {
        let stream = match &self.address {
            Address::Tcp { ip, port } => {
                let stream = TcpStream::connect((*ip, *port)).await?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Local { path } => Stream::Local(UnixStream::connect(path).await?),
        };
        Ok(Connection { stream, inbox: BytesMut::with_capacity(ROOM), is_used: false })
    }
}

// === impl Pool ===

impl Pool {
    /// A connection that is open, and on which nothing is under way.
    pub(crate) async fn take(&self, upstream: &Upstream) -> std::io::Result<Connection> {
        while let Some(connection) = self.pop(upstream) {
            if connection.stream.is_quiet() {
                return Ok(connection);
            }
        }
        upstream.connect().await
    }

    fn pop(&self, upstream: &Upstream) -> Option<Connection> {
        let mut idle = self.idle.borrow_mut();
        let waiting = idle.get_mut(upstream)?;
        // The last comes first: the others grow old.
        let (since, connection) = waiting.pop()?;
        match since.elapsed() < LONGEST_IDLE {
            true => Some(connection),
            false => {
                waiting.clear();
                None
            }
        }
    }

    /// Gives one back on which a call has ended well.
    pub(crate) fn give_back(&self, upstream: &Upstream, mut connection: Connection) {
        connection.is_used = true;
        // Whatever is left over belongs to nothing that was asked for.
        if !connection.inbox.is_empty() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let waiting = match idle.get_mut(upstream) {
            Some(waiting) => waiting,
            None => idle.entry(upstream.clone()).or_default(),
        };
        if waiting.len() < MOST_IDLE {
            waiting.push((Instant::now(), connection));
        }
    }
}

// === impl Stream ===

impl Stream {
    /// Whether it is open and has nothing to say.
    fn is_quiet(&self) -> bool {
        let descriptor = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Local(stream) => stream.as_fd(),
        };
        let peeked = rustix::net::recv(descriptor, &mut [0_u8; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        peeked.is_err_and(|errno| errno == rustix::io::Errno::AGAIN)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Self::Local(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Local(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Local(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Local(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_a_place_and_nothing_more() {
        let parse = |text: &str| Upstream::parse(text).map(|it| (it.address, it.host, it.prefix));
        let tcp = |ip: &str, port| Address::Tcp { ip: ip.parse().unwrap(), port };
        assert_eq!(
            parse("http://127.0.0.1:4000/v0/"),
            Ok((tcp("127.0.0.1", 4000), "127.0.0.1:4000".to_owned(), "/v0".to_owned()))
        );
        assert_eq!(
            parse("http://[::1]:4000"),
            Ok((tcp("::1", 4000), "[::1]:4000".to_owned(), String::new()))
        );
        assert_eq!(parse("http://[::1]").unwrap().0, tcp("::1", 80));
        assert_eq!(parse("http://localhost:1").unwrap().0, tcp("127.0.0.1", 1));
        assert_eq!(parse("unix:/run/model").unwrap().0, Address::Local { path: "/run/model".into() });
        for bad in [
            "https//a",
            "localhost:4000",
            "http://",
            "http://a b",
            "http://user@127.0.0.1",
            "http://127.0.0.1?a",
            "http://127.0.0.1/%2e%2e",
            "http://127.0.0.1:99999",
            "unix:run/model",
            "http://127.0.0.1\r\nX: y",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
