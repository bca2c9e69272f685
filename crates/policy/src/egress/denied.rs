//! Why somebody may not get somewhere, for whoever asked and for whoever runs the host.
//!
//! Whoever asked learns what they would need, in terms of what they have asked for. Which rules there are is none of their
//! business.

use super::address::AddressClass;
use super::{Asked, Destination, Host};
use core::net::IpAddr;
use std::borrow::Cow;
use std::fmt;

/// A destination that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{destination} is denied: {reason}")]
pub struct Denied {
    /// Which.
    pub destination: Destination,
    /// Why, for whoever runs the host.
    pub reason: DenyReason,
    /// The method that a rule would name, where it is asked for by one.
    method: Option<String>,
    /// The smallest rule that would allow what was asked for; nothing where no rule would.
    needed: Option<String>,
}

/// Why. Each has a stable code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DenyReason {
    /// There are no rules: nothing is allowed.
    NoRules,
    /// No rule is for that host.
    Host,
    /// No rule for that host has that port.
    Port,
    /// No rule for that host and port has that method.
    Method,
    /// No rule for that host, port and method has that path.
    Path,
    /// It can't be known which path is meant, and paths count.
    AmbiguousPath,
    /// It would be a push of git, and this policy lets none through.
    Push,
    /// It would be a clone or a fetch of git, and this policy lets none through.
    Fetch,
    /// No rule names that host, and what stands before the name of a pattern is longer, or says more, than it may.
    NameSaysTooMuch,
    /// No rule names that host, and the patterns that let it in let in no more names for now.
    TooManyNames,
    /// The name leads nowhere.
    NoAddress,
    /// The name leads to more addresses than a name does.
    TooManyAddresses,
    /// It leads to an address that is none for a sandbox.
    Address {
        /// The address.
        address: IpAddr,
        /// What it is.
        class: AddressClass,
    },
    /// It leads to this machine.
    OwnAddress {
        /// The address.
        address: IpAddr,
    },
}

// === impl Denied ===

impl Denied {
    pub(super) fn new(destination: Destination, asked: &Asked<'_>, reason: DenyReason) -> Self {
        // Where an address leads is plain; where a name leads is not known yet.
        let found = match destination.host {
            Host::Address(address) => vec![address],
            Host::Name(_) => Vec::new(),
        };
        Self { destination, reason, method: named_method(asked), needed: None }.leading_to(&found, &[])
    }

    /// The same of a name that leads to these addresses, of which `own` are this machine's: the rule that it takes names the networks
    /// of those that take one, and there is none where one of them can't be granted.
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

    /// The smallest rule that would allow what was asked for, in the words of a policy. It says nothing of the rules that
    /// there are.
    pub fn needed(&self) -> Option<&str> {
        self.needed.as_deref()
    }
}

/// Methods that are texts of YAML as they are. Another one may be a list's dash, an alias or `NULL`.
const PLAIN_METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// A method, a token of HTTP (RFC 9110 §5.6.2), as a text of YAML. No token has a quote in it or a backslash.
pub fn method_in_yaml(method: &str) -> Cow<'_, str> {
    match PLAIN_METHODS.contains(&method) {
        true => Cow::Borrowed(method),
        false => Cow::Owned(format!("\"{method}\"")),
    }
}

/// No method that there is is longer.
const LONGEST_METHOD: usize = 20;

fn named_method(asked: &Asked<'_>) -> Option<String> {
    let Asked::Request { method, .. } = asked else { return None };
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
    /// The stable code.
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

    /// Whether there could be a rule that allows it.
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
            Self::NoRules => f.write_str("the policy has no rules, and allows nothing"),
            Self::Host => f.write_str("no rule is for that host"),
            Self::Port => f.write_str("no rule for that host has that port"),
            Self::Method => f.write_str("no rule for that host and port has that method"),
            Self::Path => f.write_str("no rule for that host, port and method has that path"),
            Self::AmbiguousPath => f.write_str(
                "its path could be read as another one, and the rules for that host are about paths",
            ),
            Self::Push => f.write_str("it would be a push of git, and whoever asks may only read by git"),
            Self::Fetch => f.write_str("it would be a clone or a fetch of git, and whoever asks has no git but its own"),
            Self::NameSaysTooMuch => f.write_str(
                "no rule names that host, and it is longer, or says more, than a pattern lets in (`names` of its rule)",
            ),
            Self::TooManyNames => f.write_str(
                "no rule names that host, and the run has had as many names as a pattern lets in for now (`names` of its rule)",
            ),
            Self::NoAddress => f.write_str("the name leads nowhere"),
            Self::TooManyAddresses => f.write_str("the name leads to more addresses than a name does"),
            Self::Address { address, class } => {
                write!(f, "it leads to {address}, a {}", class.code().replace('_', " "))
            }
            Self::OwnAddress { address } => write!(f, "it leads to {address}, which is this machine"),
        }
    }
}
