//! Network place in an allowlist: `HOST` at the usual ports, or `HOST:PORT`.

use crate::egress::{HostPattern, Rule};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Network place in an allowlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEndpoint {
    host: HostPattern,
    port: Option<u16>,
}

/// The text is no network place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a host, `*.NAME`, `**.NAME` or address, with or without `:PORT`")]
pub struct InvalidEndpointError;

// === impl NetworkEndpoint ===

impl NetworkEndpoint {
    /// Parses a place. An IPv6 address with a port stands in brackets.
    ///
    /// # Errors
    /// [`InvalidEndpointError`].
    pub fn parse(text: &str) -> Result<Self, InvalidEndpointError> {
        if let Ok(host) = HostPattern::parse(text) {
            return Ok(Self { host, port: None });
        }
        let (host, port) = text.rsplit_once(':').ok_or(InvalidEndpointError)?;
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_number && *port > 0).ok_or(InvalidEndpointError)?;
        let host = HostPattern::parse(host).map_err(|_| InvalidEndpointError)?;
        Ok(Self { host, port: Some(port) })
    }

    /// Returns the egress rule that allows this place.
    pub fn rule(&self) -> Rule {
        let usual = Rule::for_hosts(self.host.clone());
        match self.port {
            Some(port) => Rule { ports: vec![port], ..usual },
            None => usual,
        }
    }
}

impl fmt::Display for NetworkEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.host),
            None => self.host.fmt(f),
        }
    }
}

impl Serialize for NetworkEndpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NetworkEndpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_endpoint_is_a_host_with_an_optional_port() {
        for (text, ports) in [
            ("pkgs.example", [80, 443].as_slice()),
            ("pkgs.example:8443", &[8443]),
            ("*.pkgs.example:443", &[443]),
            ("**.pkgs.example", &[80, 443]),
            ("192.0.2.7:80", &[80]),
            ("[2001:db8::1]:443", &[443]),
        ] {
            let place = NetworkEndpoint::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(place.rule().ports, ports, "{text}");
            assert_eq!(NetworkEndpoint::parse(&place.to_string()).unwrap(), place, "{text}");
        }
        for text in [
            "",
            ":80",
            "a.example:",
            "a.example:0",
            "a.example:65536",
            "a.example:+80",
            "a.example:http",
            "*",
            "*.com:80",
            "a b",
        ] {
            assert_eq!(NetworkEndpoint::parse(text), Err(InvalidEndpointError), "{text}");
        }
    }
}
