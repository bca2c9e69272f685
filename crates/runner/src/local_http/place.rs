//! Where somebody listens: a socket among the files, or a port of this sandbox's own.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, socket_with,
};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A place from a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    way: Way,
    host: String,
    /// What every path begins with, without a slash at its end.
    base: String,
}

/// A URL that leads nowhere from here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url}: {what}")]
pub(crate) struct NoPlace {
    url: String,
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Local(PathBuf),
    /// Each is tried.
    Ports(Vec<SocketAddr>),
}

/// A connection to one.
pub(super) enum Stream {
    Local(UnixStream),
    Tcp(TcpStream),
}

/// A port of the sandbox's own answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

// === impl Place ===

impl Place {
    /// Of `http://HOST:PORT/BASE` with an address or `localhost`, or `http+unix://PATH/BASE` with the slashes of PATH as `%2F`.
    pub(crate) fn of_url(url: &str) -> Result<Self, NoPlace> {
        let refused = |what| NoPlace { url: url.to_owned(), what };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("no URL"))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let base = path.trim_end_matches('/').to_owned();
        if authority.is_empty() || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("no URL"));
        }
        let (way, host) = match scheme {
            "http+unix" => {
                let path = percent_decoded(authority).ok_or_else(|| refused("no path of a socket"))?;
                (Way::Local(path.into()), "localhost".to_owned())
            }
            "http" => {
                let ports = ports(authority).ok_or_else(|| refused("neither an address nor localhost"))?;
                (Way::Ports(ports), authority.to_owned())
            }
            _ => return Err(refused("neither http nor http+unix")),
        };
        Ok(Self { way, host, base })
    }

    /// The same, with another path.
    pub(crate) fn with_base(mut self, base: &str) -> Self {
        base.clone_into(&mut self.base);
        self
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Reads and writes wait for so long at most.
    pub(super) fn connect(&self, glance: Duration) -> io::Result<Stream> {
        match &self.way {
            Way::Local(path) => {
                let stream = connect_local(path)?;
                stream.set_read_timeout(Some(glance))?;
                stream.set_write_timeout(Some(glance))?;
                Ok(Stream::Local(stream))
            }
            Way::Ports(ports) => {
                let mut last = io::Error::from(io::ErrorKind::NotFound);
                for port in ports {
                    match TcpStream::connect_timeout(port, PATIENCE) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            stream.set_read_timeout(Some(glance))?;
                            stream.set_write_timeout(Some(glance))?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }
}

/// Without waiting: where so many wait already, this one need not.
pub(crate) fn connect_local(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn ports(authority: &str) -> Option<Vec<SocketAddr>> {
    if let Ok(exact) = authority.parse::<SocketAddr>() {
        return Some(vec![exact]);
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => (host, port.parse().ok()?),
        _ => (authority, 80),
    };
    let addresses: Vec<IpAddr> = match host {
        "localhost" => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        other => vec![other.trim_start_matches('[').trim_end_matches(']').parse().ok()?],
    };
    Some(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok().filter(|path| path.starts_with('/') && !path.contains('\0'))
}

// === impl Stream ===

impl Stream {
    /// Whether it is open, and nothing has come that nobody has asked for.
    pub(super) fn is_quiet(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = match self {
            Self::Local(stream) => recv(stream, &mut byte, flags),
            Self::Tcp(stream) => recv(stream, &mut byte, flags),
        };
        matches!(peeked, Err(Errno::AGAIN))
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Local(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_port_or_a_socket_is_a_place() {
        let place = Place::of_url("http://localhost:4000/v1/").unwrap();
        assert_eq!((place.host(), place.base()), ("localhost:4000", "/v1"));
        let Way::Ports(ports) = place.way else { panic!("a port") };
        assert_eq!(ports, ["127.0.0.1:4000".parse().unwrap(), "[::1]:4000".parse().unwrap()]);
        let place = Place::of_url("http+unix://%2Frun%2Fa.sock/v1").unwrap();
        assert_eq!((place.way, place.base.as_str()), (Way::Local("/run/a.sock".into()), "/v1"));
        assert!(Place::of_url("http://[::1]:80").is_ok() && Place::of_url("http://127.0.0.1").is_ok());
    }

    #[test]
    fn what_would_have_to_be_looked_up_or_encrypted_is_none() {
        for url in [
            "",
            "localhost:4000",
            "https://127.0.0.1",
            "http://models.example:80",
            "http:///v1",
            "http://a b",
            "http+unix://run%2Fa.sock",
            "http+unix://%2Fa%00",
            "http+unix://%2",
            "http://127.0.0.1:99999",
            "http://x\r\ny",
        ] {
            assert!(Place::of_url(url).is_err(), "{url:?}");
        }
    }
}
