//! What a sandbox may reach of the outside: names and ports by rules, addresses by what kind they are.
//!
//! Two questions, in this order, and each has its answer here alone:
//!
//! ```text
//! host, port, request ─► EgressPolicy::decide ─► Allowed<Destination> ─► resolved, once ─► vet ─► Allowed<Vetted> ─► dialed
//!                             │ no rule                                                     │ no address for a sandbox
//!                             └──────────────────► Denied ◄─────────────────────────────────┘
//! ```
//! Nothing is allowed by default: no rules, no destination. Rules have no order: what one of them allows is allowed. No name is
//! looked up before a rule allows it, and one bad address among those that a name leads to refuses all of them.

pub mod address;
mod config;
mod denied;
mod host;
mod names;
mod network;
mod path;
mod rule;
mod tunnel;
mod vet;

pub use config::{CREDENTIAL_NAME, is_credential_name};
pub use denied::{Denied, DenyReason, method_in_yaml};
pub use host::{Host, HostName, InvalidHost};
pub use names::{NameLimits, Wildcard};
pub use network::Network;
pub use path::PathPrefix;
pub use rule::{HostPattern, InvalidPattern, Rule};
pub use tunnel::{TunnelStart, TunnelTls};
pub use vet::{MOST_ADDRESSES, Vetted};

use std::fmt;

/// The rules of one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    rules: Vec<Rule>,
    /// Whether nobody may push by git to what they reach: then all of it is looked into.
    refuses_pushes: bool,
    /// The same of clones and fetches.
    refuses_fetches: bool,
}

/// Where somebody wants to get to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The host, in its one form.
    pub host: Host,
    /// The port of TCP.
    pub port: u16,
}

/// What they want there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'r> {
    /// Bytes, both ways, that nobody looks into.
    Tunnel,
    /// One request of HTTP.
    Request {
        /// Its method.
        method: &'r str,
        /// Its path, with the query.
        path: &'r str,
    },
}

/// Something that the policy lets through. It can't be made outside of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed<T> {
    value: T,
    /// The rule that allows it, by its place in the policy.
    rule: usize,
    /// Networks that it may lead to besides the open internet.
    networks: Vec<Network>,
    is_inspected: bool,
    /// Whether all that it may be is by rules about methods or paths.
    is_about_requests: bool,
    /// Whether all that it may be is by rules about paths.
    is_about_paths: bool,
    /// Credentials whose placeholders are filled in there.
    credentials: Vec<String>,
    /// The patterns that let its name in, where no rule names it.
    wildcards: Vec<Wildcard>,
    /// What a tunnel there may begin with.
    tunnel_start: TunnelStart,
}

// === impl EgressPolicy ===

impl EgressPolicy {
    /// A policy of these rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules, refuses_pushes: false, refuses_fetches: false }
    }

    /// The same, by which nothing is pushed anywhere with git: tunnels are looked into, and what receives pushes is not asked.
    #[must_use]
    pub fn refusing_pushes(self) -> Self {
        Self { refuses_pushes: true, ..self }
    }

    /// The same, by which nothing is cloned or fetched from anywhere with git.
    #[must_use]
    pub fn refusing_fetches(self) -> Self {
        Self { refuses_fetches: true, ..self }
    }

    /// Whether something of git is refused, wherever it goes.
    fn refuses_git(&self) -> bool {
        self.refuses_pushes || self.refuses_fetches
    }

    /// Whether something that goes by it is looked into.
    pub fn looks_inside(&self) -> bool {
        self.refuses_git() || self.rules.iter().any(Rule::is_inspected)
    }

    /// Its rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether somebody may get there with that.
    ///
    /// A tunnel into which the rules want to look (`inspect`, or methods or paths) is allowed as one: what is asked inside is
    /// decided then, request by request.
    ///
    /// # Errors
    /// [`Denied`], with the reason that comes nearest to being allowed.
    pub fn decide(&self, destination: Destination, asked: Asked<'_>) -> Result<Allowed<Destination>, Denied> {
        let refuse = |destination, reason| Err(Denied::new(destination, &asked, reason));
        if self.rules.is_empty() {
            return refuse(destination, DenyReason::NoRules);
        }
        let of_host =
            || self.rules.iter().enumerate().filter(|(_, rule)| rule.host.matches(&destination.host));
        if of_host().next().is_none() {
            return refuse(destination, DenyReason::Host);
        }
        let there: Vec<_> = of_host().filter(|(_, rule)| rule.ports.contains(&destination.port)).collect();
        if there.is_empty() {
            return refuse(destination, DenyReason::Port);
        }
        if let Asked::Request { path, .. } = asked
            && self.refuses_git()
        {
            // Whoever is asked may read it as something else.
            if !path::is_plain(path) {
                return refuse(destination, DenyReason::AmbiguousPath);
            }
            if self.refuses_pushes && path::receives_pushes(path) {
                return refuse(destination, DenyReason::Push);
            }
            if self.refuses_fetches && path::serves_fetches(path) {
                return refuse(destination, DenyReason::Fetch);
            }
        }
        let allowing: Vec<_> = match asked {
            Asked::Tunnel => there,
            Asked::Request { method, path } => {
                let by_method = there.into_iter().filter(|(_, rule)| rule.allows_method(method));
                let by_method: Vec<_> = by_method.collect();
                if by_method.is_empty() {
                    return refuse(destination, DenyReason::Method);
                }
                let has_any_path = by_method.iter().any(|(_, rule)| rule.paths.is_empty());
                if !has_any_path && !path::is_plain(path) {
                    return refuse(destination, DenyReason::AmbiguousPath);
                }
                let by_path: Vec<_> = by_method
                    .into_iter()
                    .filter(|(_, rule)| {
                        rule.allows_path(path) && (rule.paths.is_empty() || path::is_plain(path))
                    })
                    .collect();
                if by_path.is_empty() {
                    return refuse(destination, DenyReason::Path);
                }
                by_path
            }
        };
        // Also by one that doesn't let the name in: a longer name is no way around being looked into.
        let is_inspected = self.refuses_git() || allowing.iter().any(|(_, rule)| rule.is_inspected());
        let allowing: Vec<_> =
            allowing.into_iter().filter(|(_, rule)| rule.allows_name(&destination.host)).collect();
        let Some(&(rule, _)) = allowing.first() else {
            return refuse(destination, DenyReason::NameSaysTooMuch);
        };
        let tunnel_start = TunnelStart::of(allowing.iter().map(|&(_, rule)| rule), destination.port);
        let wildcards: Option<Vec<_>> = allowing.iter().map(|(_, rule)| rule.wildcard()).collect();
        let networks = allowing.iter().flat_map(|(_, rule)| rule.networks.iter().copied()).collect();
        let is_about_requests = allowing.iter().all(|(_, rule)| rule.is_about_requests());
        let is_about_paths = allowing.iter().all(|(_, rule)| !rule.paths.is_empty());
        let credentials = allowing.iter().flat_map(|(_, rule)| rule.credentials.iter().cloned()).collect();
        let wildcards = wildcards.unwrap_or_default();
        let value = destination;
        Ok(Allowed {
            value,
            rule,
            networks,
            is_inspected,
            is_about_requests,
            is_about_paths,
            credentials,
            wildcards,
            tunnel_start,
        })
    }
}

// === impl Destination ===

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

// === impl Allowed ===

impl<T> Allowed<T> {
    /// What is allowed.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The place in the policy of the rule that allows it.
    pub fn rule(&self) -> usize {
        self.rule
    }

    /// Whether somebody is to look into it.
    pub fn is_inspected(&self) -> bool {
        self.is_inspected
    }

    /// Whether a request by that method may have content. That of `GET` and `HEAD` means nothing (RFC 9110 §9.3.1), and
    /// whoever allows these alone allows to read; `TRACE` has none (§9.3.8). Rules that are about neither methods nor paths allow
    /// to send whatever there is.
    pub fn may_have_content(&self, method: &str) -> bool {
        !self.is_about_requests || !matches!(method, "GET" | "HEAD" | "TRACE")
    }

    /// Whether it is allowed by its path: no rule allows all paths there. What else a request names counts, too, then.
    pub fn is_about_paths(&self) -> bool {
        self.is_about_paths
    }

    /// The credentials whose placeholders are filled in there, by their names.
    pub fn credentials(&self) -> &[String] {
        &self.credentials
    }

    /// The patterns that let its name in; none, where a rule names it.
    pub fn wildcards(&self) -> &[Wildcard] {
        &self.wildcards
    }

    /// What a tunnel there may begin with.
    pub fn tunnel_start(&self) -> TunnelStart {
        self.tunnel_start
    }

    fn map<U>(self, make: impl FnOnce(T) -> U) -> Allowed<U> {
        Allowed {
            value: make(self.value),
            rule: self.rule,
            networks: self.networks,
            is_inspected: self.is_inspected,
            is_about_requests: self.is_about_requests,
            is_about_paths: self.is_about_paths,
            credentials: self.credentials,
            wildcards: self.wildcards,
            tunnel_start: self.tunnel_start,
        }
    }
}

#[cfg(test)]
mod tests;
