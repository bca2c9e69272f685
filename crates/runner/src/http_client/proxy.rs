//! The proxy that the environment names for servers outside of the sandbox (`docs/contracts/job.md#j6.4`): `HTTP_PROXY`,
//! `HTTPS_PROXY` and `NO_PROXY`, in either case.

use super::place::{ServerAddress, ServerUrlError};
use super::stream::Stream;
use super::tls;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    place: ServerAddress,
}

/// Timeout for a proxy to reach a server.
const PATIENCE: Duration = Duration::from_secs(10);

const LONGEST_HEAD: usize = 8 << 10;

// === impl Proxy ===

impl Proxy {
    /// Returns the proxy for that place, if the environment names one.
    pub(super) fn of_environment(place: &ServerAddress) -> Result<Option<Self>, ServerUrlError> {
        let variable = |names: [&str; 2]| {
            names.iter().find_map(|name| std::env::var(name).ok()).filter(|value| !value.trim().is_empty())
        };
        let named = match place.is_encrypted() {
            true => variable(["HTTPS_PROXY", "https_proxy"]),
            false => variable(["HTTP_PROXY", "http_proxy"]),
        };
        let excluded = variable(["NO_PROXY", "no_proxy"]).unwrap_or_default();
        match named.filter(|_| !place.is_here() && !is_excluded(place, &excluded)) {
            Some(url) => ServerAddress::of_url(url.trim()).map(|place| Some(Self { place })),
            None => Ok(None),
        }
    }

    /// Connects to a place through the proxy. Without TLS, the request itself names the destination.
    pub(super) fn connect(&self, to: &ServerAddress, glance: Duration) -> io::Result<Stream> {
        if self.place.is_encrypted() {
            return Err(io::Error::other("https proxies are not supported: use an http:// proxy URL"));
        }
        let mut stream = self.place.dial()?;
        if !to.is_encrypted() {
            return Stream::tcp(stream, glance);
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let host = if to.host().contains(':') { format!("[{}]", to.host()) } else { to.host().to_owned() };
        let target = format!("{host}:{}", to.port());
        write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
        match status(&mut stream)? {
            200..=299 => Stream::encrypted(tls::open(stream, to.host())?, glance),
            status => Err(io::Error::other(format!("the proxy returned status {status} for {target}"))),
        }
    }
}

/// Reads the answer to `CONNECT`; returns its status. The server's own bytes follow.
fn status(stream: &mut TcpStream) -> io::Result<u16> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= LONGEST_HEAD {
            return Err(io::Error::other("the proxy's response head is too long"));
        }
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(&head).map_err(|_| io::Error::other("the proxy's response is not HTTP"))?;
    match (parsed.is_complete(), response.code) {
        (true, Some(code)) => Ok(code),
        _ => Err(io::Error::other("the proxy's response is not HTTP")),
    }
}

/// Returns true if `NO_PROXY` lists the place: by its name, by a domain above it, by its address or network, each
/// perhaps with a port.
fn is_excluded(place: &ServerAddress, excluded: &str) -> bool {
    let host = place.host().trim_end_matches('.');
    excluded.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let (entry, port) = match entry.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
                (name.to_owned(), Some(port.to_owned()))
            }
            _ => (entry, None),
        };
        if port.is_some_and(|port| port != place.port().to_string()) {
            return false;
        }
        let entry = entry.trim_matches(['[', ']']);
        let domain = entry.trim_start_matches("*.").trim_start_matches('.');
        let is_below =
            || host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        entry == "*"
            || match host.parse::<IpAddr>() {
                Ok(address) => is_in_network(address, entry),
                Err(_) => is_below(),
            }
    })
}

fn is_in_network(address: IpAddr, network: &str) -> bool {
    let (base, length) =
        network.split_once('/').map_or((network, None), |(base, length)| (base, Some(length)));
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let Ok(base) = base.parse::<IpAddr>() else { return false };
    let ((address_bits, size), (base_bits, base_size)) = (bits(address), bits(base));
    let length = length.map_or(Ok(size), str::parse::<u32>);
    match length {
        Ok(length) if size == base_size && length <= size => {
            let mask = if length == 0 { 0 } else { u128::MAX << (128 - length) };
            address_bits & mask == base_bits & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_matches_name_domain_address_and_network() {
        let excluded = |url: &str, list: &str| is_excluded(&ServerAddress::of_url(url).unwrap(), list);
        for (url, list) in [
            ("http://orchestrator", "localhost,orchestrator"),
            ("http://a.example.com", ".example.com"),
            ("http://a.example.com", "*.example.com"),
            ("http://example.com", "example.com"),
            ("http://10.1.2.3", "10.0.0.0/8"),
            ("http://10.1.2.3", "10.1.2.3"),
            ("http://[fd00::1]", "fd00::/8"),
            ("http://h:8080", "h:8080"),
            ("http://anything", "*"),
        ] {
            assert!(excluded(url, list), "{url} {list}");
        }
        for (url, list) in [
            ("http://notexample.com", "example.com"),
            ("http://h:80", "h:8080"),
            ("http://11.1.2.3", "10.0.0.0/8"),
            ("http://11.1.2.3", "10.0.0.0/33"),
            ("http://h", ""),
        ] {
            assert!(!excluded(url, list), "{url} {list}");
        }
    }
}
