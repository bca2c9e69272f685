//! Address of a server from its URL: a Unix socket, an IP address, or a hostname that is resolved.

use super::stream::{Stream, connect_local};
use super::{names, tls};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A place from a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    way: AddressKind,
    is_encrypted: bool,
    /// The name or address without a port.
    host: String,
    port: u16,
    /// Authority of the URL, which is sent as the server's name.
    authority: String,
    /// Prefix of every path.
    base: String,
}

/// A URL that can't be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{url}: {what}")]
pub(crate) struct ServerUrlError {
    url: String,
    what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AddressKind {
    Local(PathBuf),
    /// Each is tried.
    Ports(Vec<SocketAddr>),
    Name,
}

/// Maximum time for connecting, the name resolution included.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of addresses of a hostname that are tried.
const MOST_ADDRESSES: usize = 4;

// === impl ServerAddress ===

impl ServerAddress {
    /// Of `http://HOST:PORT/BASE`, `https://HOST:PORT/BASE`, or `http+unix://PATH/BASE` with the slashes of PATH as `%2F`. A slash at
    /// the end of BASE is left out, as paths are appended to it.
    pub(crate) fn of_url(url: &str) -> Result<Self, ServerUrlError> {
        let mut place = Self::of_endpoint(url)?;
        place.base.truncate(place.base.trim_end_matches('/').len());
        Ok(place)
    }

    /// Reads the URL of one endpoint, whose path and query stay unchanged.
    pub(crate) fn of_endpoint(url: &str) -> Result<Self, ServerUrlError> {
        let refused = |what| ServerUrlError { url: without_credentials(url), what };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused("no URL"))?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.is_empty() || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("no URL"));
        }
        if authority.contains('@') {
            return Err(refused("it contains credentials, which are not allowed in a sandbox"));
        }
        if path.contains('#') {
            return Err(refused("it has a fragment"));
        }
        let base = if path.starts_with('?') { format!("/{path}") } else { path.to_owned() };
        let (default_port, is_encrypted) = match scheme {
            "http+unix" => {
                let socket =
                    percent_decoded(authority).ok_or_else(|| refused("no absolute path of a socket"))?;
                let (way, host) = (AddressKind::Local(socket.into()), "localhost".to_owned());
                let authority = host.clone();
                return Ok(Self { way, is_encrypted: false, host, port: 80, authority, base });
            }
            "http" => (80, false),
            "https" => (443, true),
            _ => return Err(refused("neither http, https nor http+unix")),
        };
        let (host, port) =
            host_and_port(authority, default_port).ok_or_else(|| refused("no host, or no port"))?;
        let way = match addresses(&host) {
            Some(addresses) => AddressKind::Ports(
                addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect(),
            ),
            None if is_name(&host) => AddressKind::Name,
            None => return Err(refused("its host is neither an IP address nor a hostname")),
        };
        Ok(Self { way, is_encrypted, host, port, authority: authority.to_owned(), base })
    }

    /// Replaces the path.
    pub(crate) fn with_base(mut self, base: &str) -> Self {
        base.clone_into(&mut self.base);
        self
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Returns true if it is in this sandbox: a Unix socket, or an address of the loopback interface.
    pub(super) fn is_here(&self) -> bool {
        match &self.way {
            AddressKind::Local(_) => true,
            AddressKind::Ports(ports) => ports.iter().all(|port| port.ip().is_loopback()),
            AddressKind::Name => false,
        }
    }

    /// Connects, with TLS if the scheme requires it. Reads and writes block for `glance` at most.
    pub(super) fn connect(&self, glance: Duration) -> io::Result<Stream> {
        if let AddressKind::Local(path) = &self.way {
            return Stream::local(connect_local(path)?, glance);
        }
        let stream = self.dial()?;
        match self.is_encrypted {
            true => Stream::encrypted(tls::open(stream, &self.host)?, glance),
            false => Stream::tcp(stream, glance),
        }
    }

    /// Opens a TCP connection to its port.
    pub(super) fn dial(&self) -> io::Result<TcpStream> {
        let until = Instant::now() + PATIENCE;
        let looked_up;
        let ports = match &self.way {
            AddressKind::Ports(ports) => ports,
            AddressKind::Name => {
                let addresses = names::look_up(&self.host, until)?;
                let ports = addresses.into_iter().map(|address| SocketAddr::new(address, self.port));
                looked_up = ports.take(MOST_ADDRESSES).collect();
                &looked_up
            }
            AddressKind::Local(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for port in ports {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(port, left) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Returns a URL without credentials, for messages.
fn without_credentials(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://***@{rest}"),
        _ => url.to_owned(),
    }
}

/// Returns the host for name resolution, without brackets, and its port.
fn host_and_port(authority: &str, default_port: u16) -> Option<(String, u16)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        host.parse::<Ipv6Addr>().ok()?;
        return match port.strip_prefix(':') {
            Some(port) => Some((host.to_owned(), port.parse().ok()?)),
            None => port.is_empty().then(|| (host.to_owned(), default_port)),
        };
    }
    match authority.split_once(':') {
        Some((host, port)) => Some((host.to_ascii_lowercase(), port.parse().ok()?)),
        None => Some((authority.to_ascii_lowercase(), default_port)),
    }
}

/// Returns the addresses of a host that needs no name resolution.
fn addresses(host: &str) -> Option<Vec<IpAddr>> {
    match host {
        "localhost" => Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        other => other.parse().ok().map(|address| vec![address]),
    }
}

fn is_name(host: &str) -> bool {
    const LONGEST_NAME: usize = 253;
    const LONGEST_LABEL: usize = 63;
    let is_label = |label: &str| {
        let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LONGEST_LABEL).contains(&label.len()) && label.bytes().all(is_sound)
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_url_with_a_port_or_a_unix_socket_is_parsed() {
        let place = ServerAddress::of_url("http://localhost:4000/v1/").unwrap();
        assert_eq!((place.authority(), place.base()), ("localhost:4000", "/v1"));
        let AddressKind::Ports(ports) = &place.way else { panic!("a port") };
        assert_eq!(*ports, ["127.0.0.1:4000".parse().unwrap(), "[::1]:4000".parse().unwrap()]);
        let place = ServerAddress::of_url("http+unix://%2Frun%2Fa.sock/v1").unwrap();
        assert_eq!((place.way, place.base.as_str()), (AddressKind::Local("/run/a.sock".into()), "/v1"));
        assert!(
            ServerAddress::of_url("http://[::1]:80").is_ok()
                && ServerAddress::of_url("http://127.0.0.1").is_ok()
        );
    }

    #[test]
    fn server_url_gets_the_default_port_of_its_scheme() {
        for (url, host, port, is_encrypted) in [
            ("https://Models.Example", "models.example", 443, true),
            ("http://orchestrator/mcp", "orchestrator", 80, false),
            ("https://10.0.0.1:8443/v1", "10.0.0.1", 8443, true),
            ("https://[2001:db8::1]", "2001:db8::1", 443, true),
        ] {
            let place = ServerAddress::of_url(url).unwrap();
            assert_eq!(
                (place.host(), place.port(), place.is_encrypted()),
                (host, port, is_encrypted),
                "{url}"
            );
            assert!(!place.is_here(), "{url}");
        }
        assert!(ServerAddress::of_url("https://localhost").unwrap().is_here());
    }

    #[test]
    fn endpoint_keeps_its_path_and_query() {
        for (url, base) in [
            ("http://h/mcp/", "/mcp/"),
            ("http://h/jobs/1/status?node=a", "/jobs/1/status?node=a"),
            ("http://h?job=1", "/?job=1"),
            ("http://h", ""),
        ] {
            assert_eq!(ServerAddress::of_endpoint(url).unwrap().base(), base);
        }
    }

    #[test]
    fn malformed_server_url_is_refused_without_showing_its_credentials() {
        for url in [
            "",
            "localhost:4000",
            "ftp://127.0.0.1",
            "http://models..example:80",
            "http:///v1",
            "http://a b",
            "http+unix://run%2Fa.sock",
            "http+unix://%2Fa%00",
            "http+unix://%2",
            "http://127.0.0.1:99999",
            "http://[::1",
            "http://h/#part",
            "http://x\r\ny",
        ] {
            assert!(ServerAddress::of_url(url).is_err(), "{url:?}");
        }
        let refused = ServerAddress::of_url("https://user:secret@models.example/v1").unwrap_err().to_string();
        assert!(refused.contains("credentials") && !refused.contains("secret"), "{refused}");
    }
}
