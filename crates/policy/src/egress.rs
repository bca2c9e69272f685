//! Egress policy of sandboxes: names and ports by rules, addresses by their class.
//!
//! There are two decisions, in this order, and both are made only here:
//!
//! ```text
//! host, port, request ─► EgressPolicy::decide ─► Allowed<Destination> ─► resolved, once ─► vet ─► Allowed<Vetted> ─► dialed
//!                             │ no rule                                                     │ no address for a sandbox
//!                             └──────────────────► Denied ◄─────────────────────────────────┘
//! ```
//! Nothing is allowed by default. Rules have no order: a destination is allowed if any rule allows it. No name is resolved
//! before a rule allows it. If a name has one forbidden address, all its addresses are refused.

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
pub use denied::{DenyReason, EgressDenial, method_in_yaml};
pub use host::{Host, HostName, InvalidHost};
pub use names::{NameLimits, Wildcard};
pub use network::Network;
pub use path::PathPrefix;
pub use rule::{HostPattern, InvalidPattern, Rule};
pub use tunnel::{TunnelStart, TunnelTls};
pub use vet::{MOST_ADDRESSES, VettedDestination};

use std::fmt;

/// Rules of one policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    rules: Vec<Rule>,
    /// True if git pushes are refused everywhere; then all connections are intercepted.
    refuses_pushes: bool,
    /// True if git clones and fetches are refused everywhere.
    refuses_fetches: bool,
}

/// Destination of a request or tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Host, in its canonical form.
    pub host: Host,
    /// TCP port.
    pub port: u16,
}

/// Request to be decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressRequest<'r> {
    /// Tunnel of bytes in both directions, without interception.
    Tunnel,
    /// One HTTP request.
    Request {
        /// HTTP method.
        method: &'r str,
        /// Path with the query.
        path: &'r str,
    },
}

/// Destination that the policy allows. It can't be created outside of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedDestination<T> {
    value: T,
    /// Rule that allows it, by its index in the policy.
    rule: usize,
    /// Networks outside the public internet that its name may lead to.
    networks: Vec<Network>,
    is_inspected: bool,
    /// True if it is only allowed by rules about methods or paths.
    is_about_requests: bool,
    /// True if it is only allowed by rules about paths.
    is_about_paths: bool,
    /// Credentials that are injected there.
    credentials: Vec<String>,
    /// Wildcard patterns that allow the name, if no rule names it.
    wildcards: Vec<Wildcard>,
    /// Requirements for the opening of a tunnel.
    tunnel_start: TunnelStart,
}

// === impl EgressPolicy ===

impl EgressPolicy {
    /// Creates a policy of these rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules, refuses_pushes: false, refuses_fetches: false }
    }

    /// Refuses all git pushes: tunnels are intercepted, and requests to receive pushes are denied.
    #[must_use]
    pub fn refusing_pushes(self) -> Self {
        Self { refuses_pushes: true, ..self }
    }

    /// Refuses all git clones and fetches.
    #[must_use]
    pub fn refusing_fetches(self) -> Self {
        Self { refuses_fetches: true, ..self }
    }

    /// Returns true if some git operation is refused everywhere.
    fn refuses_git(&self) -> bool {
        self.refuses_pushes || self.refuses_fetches
    }

    /// Returns true if some connections are intercepted.
    pub fn looks_inside(&self) -> bool {
        self.refuses_git() || self.rules.iter().any(Rule::is_inspected)
    }

    /// Returns the rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides about a request to a destination.
    ///
    /// A tunnel that the rules want to intercept (because of `inspect`, methods or paths) is allowed as a tunnel. Each request
    /// inside is decided about separately.
    ///
    /// # Errors
    /// [`EgressDenial`], with the reason that is closest to being allowed.
    pub fn decide(
        &self,
        destination: Destination,
        asked: EgressRequest<'_>,
    ) -> Result<AllowedDestination<Destination>, EgressDenial> {
        let refuse = |destination, reason| Err(EgressDenial::new(destination, &asked, reason));
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
        if let EgressRequest::Request { path, .. } = asked
            && self.refuses_git()
        {
            // A server may interpret the path differently.
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
            EgressRequest::Tunnel => there,
            EgressRequest::Request { method, path } => {
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
        // This includes rules that deny the name for its length: a longer name must not avoid interception.
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
        Ok(AllowedDestination {
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

// === impl AllowedDestination ===

impl<T> AllowedDestination<T> {
    /// Returns what is allowed.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the index in the policy of the rule that allows it.
    pub fn rule(&self) -> usize {
        self.rule
    }

    /// Returns true if the tunnel must be intercepted.
    pub fn is_inspected(&self) -> bool {
        self.is_inspected
    }

    /// Returns true if a request by that method may have a body. A body of `GET` or `HEAD` has no meaning (RFC 9110 §9.3.1),
    /// and a rule that only allows these only allows reading. `TRACE` has no body (§9.3.8). A rule without methods and paths
    /// allows any body.
    pub fn may_have_content(&self, method: &str) -> bool {
        !self.is_about_requests || !matches!(method, "GET" | "HEAD" | "TRACE")
    }

    /// Returns true if no rule allows all paths there. Then other resources that a request names are checked, too.
    pub fn is_about_paths(&self) -> bool {
        self.is_about_paths
    }

    /// Returns the names of the credentials that are injected there.
    pub fn credentials(&self) -> &[String] {
        &self.credentials
    }

    /// Returns the wildcard patterns that allow the name; empty if a rule names it.
    pub fn wildcards(&self) -> &[Wildcard] {
        &self.wildcards
    }

    /// Returns the requirements for the opening of a tunnel.
    pub fn tunnel_start(&self) -> TunnelStart {
        self.tunnel_start
    }

    fn map<U>(self, make: impl FnOnce(T) -> U) -> AllowedDestination<U> {
        AllowedDestination {
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
