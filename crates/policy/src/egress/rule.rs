//! Egress rule: hosts, ports, and kinds of requests.

use super::host::{Host, HostName, InvalidHost};
use super::names::NameLimits;
use super::network::Network;
use super::path::PathPrefix;
use super::tunnel::TunnelTls;
use std::fmt;

/// Egress rule. All of its conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Hosts that the rule is for.
    pub host: HostPattern,
    /// Ports, at least one.
    pub ports: Vec<u16>,
    /// Methods, in upper case; empty for all.
    pub methods: Vec<String>,
    /// Path prefixes; empty for all.
    pub paths: Vec<PathPrefix>,
    /// Networks outside the public internet that its names may lead to.
    pub networks: Vec<Network>,
    /// True if tunnels are intercepted.
    pub inspect: bool,
    /// Names of the credentials that are injected there.
    pub credentials: Vec<String>,
    /// Limits on names that a wildcard pattern allows.
    pub names: NameLimits,
    /// Requirement of TLS in tunnels.
    pub tls: TunnelTls,
    /// True if a ClientHello in its tunnels must name the host (SNI).
    pub needs_server_name: bool,
}

/// Pattern of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// One name or address.
    One(Host),
    /// Names with exactly one more label: `*.example.com`.
    OnePartBefore(HostName),
    /// Names with one or more further labels: `**.example.com`.
    AnyPartsBefore(HostName),
    /// Every host. No text is this pattern; only an access level is so wide.
    Any,
}

/// Reason why a text is no host pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// The host in it is invalid.
    #[error(transparent)]
    Host(#[from] InvalidHost),
    /// The pattern would match the names of many owners.
    #[error(
        "`*.` and `**.` must be followed by at least two labels: a single label is a whole top-level domain"
    )]
    TooWide,
    /// A star stands elsewhere.
    #[error("`*` and `**` may only stand at the beginning of a name")]
    Star,
}

/// Default ports of a rule.
pub(super) const USUAL_PORTS: [u16; 2] = [80, 443];

// === impl Rule ===

impl Rule {
    /// Creates a rule for the default ports of hosts, without further conditions.
    pub fn for_hosts(host: HostPattern) -> Self {
        let ports = USUAL_PORTS.to_vec();
        Self {
            host,
            ports,
            methods: Vec::new(),
            paths: Vec::new(),
            networks: Vec::new(),
            inspect: false,
            credentials: Vec::new(),
            names: NameLimits::default(),
            tls: TunnelTls::ByPort,
            needs_server_name: true,
        }
    }

    pub(super) fn allows_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|allowed| allowed == method)
    }

    pub(super) fn allows_path(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|place| place.holds(path))
    }

    /// Returns true if the rule has conditions on requests, and not only on destinations.
    pub(super) fn is_about_requests(&self) -> bool {
        !self.methods.is_empty() || !self.paths.is_empty()
    }

    /// Returns true if the rule requires TLS interception.
    pub fn is_inspected(&self) -> bool {
        self.inspect || self.is_about_requests() || !self.credentials.is_empty()
    }
}

// === impl HostPattern ===

impl HostPattern {
    /// Parses a host, `*.NAME` or `**.NAME`.
    ///
    /// # Errors
    /// [`InvalidPattern`], with the reason.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        let (make, name): (fn(HostName) -> Self, _) =
            match (text.strip_prefix("**."), text.strip_prefix("*.")) {
                (Some(name), _) => (Self::AnyPartsBefore, name),
                (_, Some(name)) => (Self::OnePartBefore, name),
                _ if text.contains('*') => return Err(InvalidPattern::Star),
                _ => return Ok(Self::One(Host::parse(text)?)),
            };
        if name.contains('*') {
            return Err(InvalidPattern::Star);
        }
        let name = HostName::parse(name)?;
        match name.parts().count() {
            1 => Err(InvalidPattern::TooWide),
            _ => Ok(make(name)),
        }
    }

    /// Returns true if the pattern matches a host.
    pub fn matches(&self, host: &Host) -> bool {
        match self {
            Self::One(one) => one == host,
            Self::OnePartBefore(_) => self.before(host).is_some_and(|before| !before.contains('.')),
            Self::AnyPartsBefore(_) => self.before(host).is_some(),
            Self::Any => true,
        }
    }

    /// Returns the part of a host's name before the pattern's own name, if the pattern is a wildcard.
    pub(super) fn before<'h>(&self, host: &'h Host) -> Option<&'h str> {
        match (self, host) {
            (Self::OnePartBefore(suffix) | Self::AnyPartsBefore(suffix), Host::Name(name)) => {
                name.as_str().strip_suffix(suffix.as_str())?.strip_suffix('.')
            }
            _ => None,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(host) => host.fmt(f),
            Self::OnePartBefore(name) => write!(f, "*.{name}"),
            Self::AnyPartsBefore(name) => write!(f, "**.{name}"),
            Self::Any => f.write_str("any host"),
        }
    }
}

#[cfg(test)]
mod tests;
