//! Address of a node: `http://ADDRESS[:PORT][/PREFIX]`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Address of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeAddress {
    url: String,
    addresses: Vec<SocketAddr>,
    host: String,
    prefix: String,
}

/// A text is no valid node address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NodeAddressError {
    /// The URL has another scheme than `http`.
    #[error("a node URL has the scheme http: http://ADDRESS:PORT; reach a node behind TLS through a tunnel")]
    Scheme,
    /// The host is a name.
    #[error("host names are not resolved: use an address such as 127.0.0.1 or [::1], or localhost")]
    Name,
    /// The URL is malformed otherwise.
    #[error("expected http://ADDRESS:PORT, with a path at most")]
    Form,
}

/// Default port of a node.
const USUAL_PORT: u16 = 12090;

// === impl NodeAddress ===

impl NodeAddress {
    pub(crate) fn parse(url: &str) -> Result<Self, NodeAddressError> {
        let (scheme, rest) = url.split_once("://").ok_or(NodeAddressError::Scheme)?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(NodeAddressError::Scheme);
        }
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte);
        if !rest.bytes().all(is_plain) {
            return Err(NodeAddressError::Form);
        }
        let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let addresses = addresses(host)?;
        let prefix = path.trim_end_matches('/').to_owned();
        Ok(Self { url: url.to_owned(), addresses, host: host.to_owned(), prefix })
    }

    /// Returns the place of a node that listens on this address.
    pub(crate) fn of(address: SocketAddr) -> Self {
        let host = address.to_string();
        Self { url: format!("http://{host}"), addresses: vec![address], host, prefix: String::new() }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.url
    }

    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }
}

fn addresses(host: &str) -> Result<Vec<SocketAddr>, NodeAddressError> {
    let port = |text: &str| match text {
        "" => Ok(USUAL_PORT),
        text if text.starts_with('+') => Err(NodeAddressError::Form),
        text => text.parse().map_err(|_| NodeAddressError::Form),
    };
    if let Some(rest) = host.strip_prefix('[') {
        let (address, rest) = rest.split_once(']').ok_or(NodeAddressError::Form)?;
        let address: Ipv6Addr = address.parse().map_err(|_| NodeAddressError::Form)?;
        let port = match rest.strip_prefix(':') {
            Some(text) if !text.is_empty() => port(text)?,
            _ if rest.is_empty() => USUAL_PORT,
            _ => return Err(NodeAddressError::Form),
        };
        return Ok(vec![SocketAddr::new(address.into(), port)]);
    }
    let (name, text) = host.split_once(':').unwrap_or((host, ""));
    if name.is_empty() || text.contains(':') || host.ends_with(':') {
        return Err(NodeAddressError::Form);
    }
    let port = port(text)?;
    let of = |address: IpAddr| SocketAddr::new(address, port);
    if name.eq_ignore_ascii_case("localhost") {
        return Ok(vec![of(Ipv4Addr::LOCALHOST.into()), of(Ipv6Addr::LOCALHOST.into())]);
    }
    let address: Ipv4Addr = name.parse().map_err(|_| NodeAddressError::Name)?;
    Ok(vec![of(address.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_url_yields_addresses_and_path_prefix() {
        let parse = |url: &str| {
            let place = NodeAddress::parse(url).map_err(|error| error.to_string()).unwrap();
            (place.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "), place.prefix)
        };
        let is = |addresses: &str, prefix: &str| (addresses.to_owned(), prefix.to_owned());
        assert_eq!(parse("http://127.0.0.1:12090"), is("127.0.0.1:12090", ""));
        assert_eq!(parse("http://10.0.0.7"), is("10.0.0.7:12090", ""));
        assert_eq!(parse("HTTP://localhost:80/a/b/"), is("127.0.0.1:80 [::1]:80", "/a/b"));
        assert_eq!(parse("http://[::1]:8080/"), is("[::1]:8080", ""));
        assert_eq!(parse("http://[fd00::7]"), is("[fd00::7]:12090", ""));
    }

    #[test]
    fn invalid_node_url_is_refused_with_the_reason() {
        for (url, expected) in [
            ("https://127.0.0.1", NodeAddressError::Scheme),
            ("127.0.0.1:12090", NodeAddressError::Scheme),
            ("http://node.example:12090", NodeAddressError::Name),
            ("http://", NodeAddressError::Form),
            ("http://127.0.0.1:", NodeAddressError::Form),
            ("http://127.0.0.1:+80", NodeAddressError::Form),
            ("http://127.0.0.1:70000", NodeAddressError::Form),
            ("http://127.0.0.1:1:2", NodeAddressError::Form),
            ("http://::1", NodeAddressError::Form),
            ("http://[::1", NodeAddressError::Form),
            ("http://[::1]x", NodeAddressError::Form),
            ("http://user@127.0.0.1", NodeAddressError::Form),
            ("http://127.0.0.1/a?b", NodeAddressError::Form),
            ("http://127.0.0.1/a b", NodeAddressError::Form),
            ("http://127.0.0.1/a\r\nx: y", NodeAddressError::Form),
        ] {
            assert_eq!(NodeAddress::parse(url), Err(expected), "{url}");
        }
    }
}
