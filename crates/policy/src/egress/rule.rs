//! One rule: which hosts, at which ports, for what.

use super::host::{Host, HostName, InvalidHost};
use super::names::NameLimits;
use super::network::Network;
use super::path::PathPrefix;
use super::tunnel::TunnelTls;
use std::fmt;

/// A rule. All that it says must be so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which hosts it is for.
    pub host: HostPattern,
    /// At which ports; never none.
    pub ports: Vec<u16>,
    /// By which methods, in upper case; all, if it names none.
    pub methods: Vec<String>,
    /// Below which places; all, if it names none.
    pub paths: Vec<PathPrefix>,
    /// Networks that its names may lead to besides the open internet.
    pub networks: Vec<Network>,
    /// Whether tunnels are looked into.
    pub inspect: bool,
    /// The credentials whose placeholders are filled in there, by their names.
    pub credentials: Vec<String>,
    /// Where it is for a pattern, which names that lets in, and how many.
    pub names: NameLimits,
    /// Whether its tunnels must carry TLS.
    pub tls: TunnelTls,
    /// Whether a ClientHello in its tunnels must name the host (SNI).
    pub needs_server_name: bool,
}

/// Hosts of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// This one: a name, or an address.
    One(Host),
    /// Names with exactly one part more before this one: `*.example.com`.
    OnePartBefore(HostName),
    /// Names with one part more before this one, or several: `**.example.com`.
    AnyPartsBefore(HostName),
    /// Every host. No text is this pattern: only a level of access is so wide.
    Any,
}

/// Text that is no pattern of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// The host in it is none.
    #[error(transparent)]
    Host(#[from] InvalidHost),
    /// It would be for everybody's names.
    #[error("behind `*.` or `**.` stand two parts of a name at least: one alone belongs to everybody")]
    TooWide,
    /// Stars stand elsewhere.
    #[error("`*` stands for the first part of a name, and `**` for its first parts, and nowhere else")]
    Star,
}

/// The ports of a rule that names none.
pub(super) const USUAL_PORTS: [u16; 2] = [80, 443];

// === impl Rule ===

impl Rule {
    /// A rule for the usual ports of hosts, without anything else.
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

    /// Whether it is about what is asked, and not only about where.
    pub(super) fn is_about_requests(&self) -> bool {
        !self.methods.is_empty() || !self.paths.is_empty()
    }

    /// Whether it takes a look inside to hold it.
    pub fn is_inspected(&self) -> bool {
        self.inspect || self.is_about_requests() || !self.credentials.is_empty()
    }
}

// === impl HostPattern ===

impl HostPattern {
    /// Reads a host, `*.NAME` or `**.NAME`.
    ///
    /// # Errors
    /// [`InvalidPattern`] says what is wrong with it.
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

    /// Whether a host is of this kind.
    pub fn matches(&self, host: &Host) -> bool {
        match self {
            Self::One(one) => one == host,
            Self::OnePartBefore(_) => self.before(host).is_some_and(|before| !before.contains('.')),
            Self::AnyPartsBefore(_) => self.before(host).is_some(),
            Self::Any => true,
        }
    }

    /// What stands before its own name in that of a host, if it is for more than one host.
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
