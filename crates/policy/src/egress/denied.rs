//! Reasons for denials, for the client and for the operator of the host.
//!
//! The client learns the smallest rule that its request would need. It learns nothing about the existing rules.

use super::address::AddressClass;
use super::{Destination, EgressRequest, Host};
use core::net::IpAddr;
use std::borrow::Cow;
use std::fmt;

/// Destination that was denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{destination} is denied: {reason}")]
pub struct EgressDenial {
    /// The destination.
    pub destination: Destination,
    /// Reason, for the operator of the host.
    pub reason: DenyReason,
    /// Method that a rule would name, if the request has one.
    method: Option<String>,
    /// The smallest rule that would allow the request; `None` if no rule could.
    needed: Option<String>,
}

/// Reason of a denial. Each has a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenyReason {
    /// There are no rules, so nothing is allowed.
    NoRules,
    /// No rule is for that host.
    Host,
    /// No rule for that host has that port.
    Port,
    /// No rule for that host and port has that method.
    Method,
    /// No rule for that host, port and method has that path.
    Path,
    /// The path is ambiguous, and rules limit paths.
    AmbiguousPath,
    /// It would be a git push, and this policy refuses all.
    Push,
    /// It would be a git clone or fetch, and this policy refuses all.
    Fetch,
    /// Only a wildcard pattern matches the host, and the part before the pattern's name is too long or carries too much
    /// information.
    NameSaysTooMuch,
    /// Only wildcard patterns match the host, and their limit on new names is reached for now.
    TooManyNames,
    /// The name has no address.
    NoAddress,
    /// The name has too many addresses.
    TooManyAddresses,
    /// The destination has an address that a sandbox may not reach.
    Address {
        /// The address.
        address: IpAddr,
        /// Its class.
        class: AddressClass,
    },
    /// The destination is this machine.
    OwnAddress {
        /// The address.
        address: IpAddr,
    },
}

// === impl EgressDenial ===

impl EgressDenial {
    pub(super) fn new(destination: Destination, asked: &EgressRequest<'_>, reason: DenyReason) -> Self {
        // The address of a literal is known; a name is not resolved yet.
        let found = match destination.host {
            Host::Address(address) => vec![address],
            Host::Name(_) => Vec::new(),
        };
        Self { destination, reason, method: named_method(asked), needed: None }.leading_to(&found, &[])
    }

    /// Adds the addresses of a name, of which `own` belong to this machine. The needed rule then names the networks of
    /// addresses that require it. There is no such rule if one of them can't be granted.
    #[must_use]
    pub fn leading_to(self, found: &[IpAddr], own: &[IpAddr]) -> Self {
        let mut networks = Vec::new();
        let mut can_be_granted = self.reason.could_be_granted();
        for address in found.iter().map(IpAddr::to_canonical) {
            let class = AddressClass::of(address);
            can_be_granted &= class.may_be_granted();
            let is_own = own.iter().any(|own| own.to_canonical() == address);
            if (class != AddressClass::Global || is_own) && !networks.contains(&address) {
                networks.push(address);
            }
        }
        let needed = can_be_granted.then(|| rule(&self.destination, self.method.as_deref(), &networks));
        Self { needed, ..self }
    }

    /// Returns the smallest rule that would allow the request, in the terms of a policy. It reveals nothing about the existing
    /// rules.
    pub fn needed(&self) -> Option<&str> {
        self.needed.as_deref()
    }
}

/// Methods that are plain YAML scalars. Others may look like a list's dash, an alias or `NULL`.
const PLAIN_METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// Returns a method (a token, RFC 9110 §5.6.2) as a YAML scalar. A token contains no quote and no backslash.
pub fn method_in_yaml(method: &str) -> Cow<'_, str> {
    match PLAIN_METHODS.contains(&method) {
        true => Cow::Borrowed(method),
        false => Cow::Owned(format!("\"{method}\"")),
    }
}

/// Maximum length of a method; no real one is longer.
const LONGEST_METHOD: usize = 20;

fn named_method(asked: &EgressRequest<'_>) -> Option<String> {
    let EgressRequest::Request { method, .. } = asked else { return None };
    let is_plain = method.len() <= LONGEST_METHOD && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_plain.then(|| (*method).to_owned())
}

fn rule(destination: &Destination, method: Option<&str>, networks: &[IpAddr]) -> String {
    let Destination { host, port } = destination;
    let mut rule = format!("{{host: \"{host}\", ports: [{port}]");
    if let Some(method) = method {
        rule.push_str(&format!(", methods: [{}]", method_in_yaml(method)));
    }
    if !networks.is_empty() {
        let networks: Vec<_> = networks.iter().map(|address| format!("\"{address}\"")).collect();
        rule.push_str(&format!(", networks: [{}]", networks.join(", ")));
    }
    rule.push('}');
    rule
}

// === impl DenyReason ===

impl DenyReason {
    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoRules => "no_rules",
            Self::Host => "no_rule_for_host",
            Self::Port => "no_rule_for_port",
            Self::Method => "no_rule_for_method",
            Self::Path => "no_rule_for_path",
            Self::AmbiguousPath => "ambiguous_path",
            Self::Push => "git_push",
            Self::Fetch => "git_fetch",
            Self::NameSaysTooMuch => "name_says_too_much",
            Self::TooManyNames => "too_many_names",
            Self::NoAddress => "no_address",
            Self::TooManyAddresses => "too_many_addresses",
            Self::Address { class, .. } => class.code(),
            Self::OwnAddress { .. } => "own_address",
        }
    }

    /// Returns true if a rule could allow it.
    const fn could_be_granted(self) -> bool {
        match self {
            Self::NoRules | Self::Host | Self::Port | Self::Method | Self::Path => true,
            Self::NameSaysTooMuch | Self::TooManyNames | Self::OwnAddress { .. } => true,
            Self::AmbiguousPath | Self::Push | Self::Fetch | Self::NoAddress | Self::TooManyAddresses => {
                false
            }
            Self::Address { class, .. } => class.may_be_granted(),
        }
    }
}

impl fmt::Display for DenyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRules => f.write_str("the policy has no rules, so it allows nothing"),
            Self::Host => f.write_str("no rule matches that host"),
            Self::Port => f.write_str("no rule for that host allows that port"),
            Self::Method => f.write_str("no rule for that host and port allows that method"),
            Self::Path => f.write_str("no rule for that host, port and method allows that path"),
            Self::AmbiguousPath => f.write_str(
                "its path is ambiguous, and the rules for that host restrict paths",
            ),
            Self::Push => f.write_str("it is a git push, and this sandbox has read-only git access"),
            Self::Fetch => f.write_str("it is a git clone or fetch, and this sandbox has no remote git access"),
            Self::NameSaysTooMuch => f.write_str(
                "no rule names that host exactly, and it is longer or has more entropy than the wildcard rule's `names` limit allows",
            ),
            Self::TooManyNames => f.write_str(
                "no rule names that host exactly, and the run has reached the wildcard rule's `names` limit for now",
            ),
            Self::NoAddress => f.write_str("the name resolves to no address"),
            Self::TooManyAddresses => f.write_str("the name resolves to too many addresses"),
            Self::Address { address, class } => {
                write!(f, "it resolves to {address}, a {}", class.code().replace('_', " "))
            }
            Self::OwnAddress { address } => write!(f, "it resolves to {address}, which is this machine"),
        }
    }
}
