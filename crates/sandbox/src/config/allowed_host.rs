//! A host and a port that a sandbox may reach, as `allowed_hosts` lists them.

use belljar_contract::yaml::{Log, Node, text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// A host by name or by IPv4 address, and a TCP port. No wildcards, no IPv6.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AllowedHost {
    host: String,
    port: u16,
}

// === impl AllowedHost ===

impl AllowedHost {
    /// Reads `host:port`; nothing if it is not exactly that.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.split_once(':')?;
        let is_plain = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
        let port = port.parse().ok().filter(|_| is_plain)?;
        let host = host.to_ascii_lowercase();
        is_host(&host).then_some(Self { host, port })
    }

    /// The name in lower case, or the address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, from 1 on.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn read(node: &Node, log: &mut Log) -> Option<Self> {
        let expected =
            "host:port, such as db.example.com:5432: a name or an IPv4 address, a port from 1 to 65535";
        text(node, log, expected, Self::parse)
    }
}

fn is_host(host: &str) -> bool {
    const LONGEST: usize = 253;
    // What ends in a number is an address to resolvers, in notations (`127.1`) that checks overlook.
    let ends_in_number =
        host.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    match ends_in_number {
        true => host.parse::<Ipv4Addr>().is_ok(),
        false => host.len() <= LONGEST && host.split('.').all(is_label),
    }
}

/// One part of a name.
pub(super) fn is_label(label: &str) -> bool {
    const LONGEST: usize = 63;
    (1..=LONGEST).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_a_port() {
        for (text, read) in [
            ("db:5432", "db:5432"),
            ("PyPI.org:443", "pypi.org:443"),
            ("10.0.0.1:65535", "10.0.0.1:65535"),
            ("a-b.example:1", "a-b.example:1"),
        ] {
            assert_eq!(AllowedHost::parse(text).unwrap().to_string(), read);
        }
        for other in [
            "db",
            "db:",
            ":443",
            "db:0",
            "db:65536",
            "db:0443",
            "db:+443",
            "db:443:1",
            "*:443",
            "*.example.com:443",
            "[::1]:443",
            "::1",
            "http://db:443",
            "db/x:443",
            "127.1:80",
            "0x7f.1:80",
            "2130706433:80",
            "300.1.1.1:80",
            "010.0.0.1:80",
            "-db:443",
            "db-:443",
            "db..x:443",
            "db.:443",
            "d b:443",
            "dä:443",
            "db_x:443",
        ] {
            assert_eq!(AllowedHost::parse(other), None, "{other}");
        }
    }
}
