//! Explains how a policy decides about a request, for the author of a policy. Names are resolved as the proxy would; nothing is
//! dialed.

use super::decision::read;
use crate::upstream::is_of_this_machine;
use crate::upstream::names::{NameResolver, NameSource};
use belljar_policy::egress::{
    AllowedDestination, DenyReason, Destination, EgressDenial, EgressPolicy, EgressRequest, Host,
};
use serde::Serialize;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::runtime::LocalOptions;
use tokio::time::timeout;

/// Request to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainQuery {
    destination: Destination,
    method: String,
    path: String,
    /// True if it would come as a tunnel.
    is_tunnel: bool,
}

/// Decision about the request, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// `allowed` or `denied`.
    pub verdict: Verdict,
    /// Why it is denied: a stable code; null if it isn't.
    pub reason: Option<&'static str>,
    /// The reason in words.
    pub detail: Option<String>,
    /// The rule that allows it, by its index in the policy, from 0; null if none does.
    pub rule: Option<usize>,
    /// The smallest rule that would allow it; null if no rule could, or if it is allowed.
    pub rule_needed: Option<String>,
    /// Addresses that the name resolves to; empty for what no rule could allow.
    pub addresses: Vec<IpAddr>,
    /// True if rules require TLS interception of the tunnel.
    pub inspected: bool,
}

/// Decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The request is allowed.
    Allowed,
    /// The request is denied.
    Denied,
}

/// Text that is no request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a valid request: {why}")]
pub struct InvalidExplainQuery {
    /// Text that was given.
    pub found: String,
    /// Error in it.
    pub why: String,
}

/// Time limit for a name lookup; the same as the proxy's. 2 s.
const NAMES: Duration = Duration::from_secs(2);

// === impl ExplainQuery ===

impl ExplainQuery {
    /// Reads `https://HOST[:PORT][/PATH]`, `http://…` or `HOST:PORT`.
    ///
    /// # Errors
    /// [`InvalidExplainQuery`], if the text can't be read.
    pub fn parse(text: &str, method: Option<&str>) -> Result<Self, InvalidExplainQuery> {
        let invalid = |why: String| InvalidExplainQuery { found: text.to_owned(), why };
        let schemes = [("https://", Some(443), true), ("http://", Some(80), false), ("", None, true)];
        let found = schemes
            .into_iter()
            .find_map(|(scheme, port, is_tunnel)| Some((text.strip_prefix(scheme)?, port, is_tunnel)));
        let (rest, usual_port, is_tunnel) = found.ok_or_else(|| invalid("it is empty".to_owned()))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let path = match &rest[end..] {
            "" => "/".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        let destination = read(&rest[..end], usual_port).map_err(|refusal| invalid(refusal.to_string()))?;
        Ok(Self { destination, method: method.unwrap_or("GET").to_owned(), path, is_tunnel })
    }

    /// Returns the destination and the path.
    pub(crate) fn into_place(self) -> (Destination, String) {
        (self.destination, self.path)
    }

    /// Explains how that policy decides about the request.
    ///
    /// # Errors
    /// The system's, if no lookup can be started.
    pub fn ask(self, policy: &EgressPolicy, names: NameSource) -> io::Result<Explanation> {
        let allowed = match self.decide(policy) {
            Ok(allowed) => allowed,
            Err(denied) => return Explanation::leading_on(denied, names),
        };
        let addresses = match &allowed.value().host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => resolve(name.as_str(), names)?,
        };
        Ok(vetted(allowed, addresses))
    }

    /// Explains by the rules alone, without a name lookup: every name is taken to resolve to a public address.
    pub fn by_rules(self, policy: &EgressPolicy) -> Explanation {
        match self.decide(policy) {
            Err(denied) => Explanation::denied(&denied, None, Vec::new()),
            Ok(allowed) => match allowed.value().host {
                Host::Address(address) => vetted(allowed, vec![address]),
                Host::Name(_) => Explanation::allowed(&allowed, Vec::new()),
            },
        }
    }

    fn decide(self, policy: &EgressPolicy) -> Result<AllowedDestination<Destination>, EgressDenial> {
        let Self { destination, method, path, is_tunnel } = self;
        let request = EgressRequest::Request { method: &method, path: &path };
        if !is_tunnel {
            return policy.decide(destination, request);
        }
        // The request inside is decided about later, if rules require interception.
        let tunnel = policy.decide(destination.clone(), EgressRequest::Tunnel)?;
        if tunnel.is_inspected() { policy.decide(destination, request) } else { Ok(tunnel) }
    }
}

fn resolve(name: &str, names: NameSource) -> io::Result<Vec<IpAddr>> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default())?;
    let names = NameResolver::new(names);
    let asked = runtime.block_on(async { timeout(NAMES, names.resolve_whole(name)).await });
    // A name that can't be resolved has no addresses.
    Ok(asked.ok().and_then(Result::ok).unwrap_or_default())
}

fn vetted(allowed: AllowedDestination<Destination>, addresses: Vec<IpAddr>) -> Explanation {
    let own: Vec<_> = addresses.iter().copied().filter(|&address| is_of_this_machine(address)).collect();
    let explanation = Explanation::allowed(&allowed, addresses.clone());
    match allowed.vet(&addresses, &own) {
        Ok(_) => explanation,
        Err(denied) => Explanation::denied(&denied, explanation.rule, addresses),
    }
}

// === impl Explanation ===

impl Explanation {
    fn allowed(allowed: &AllowedDestination<Destination>, addresses: Vec<IpAddr>) -> Self {
        Self {
            verdict: Verdict::Allowed,
            reason: None,
            detail: None,
            rule: Some(allowed.rule()),
            rule_needed: None,
            addresses,
            inspected: allowed.is_inspected(),
        }
    }

    /// Explanation of a denied request. A rule that allows it must also allow the addresses that its name resolves to.
    fn leading_on(denied: EgressDenial, names: NameSource) -> io::Result<Self> {
        let addresses = match (&denied.destination.host, denied.needed()) {
            (Host::Name(name), Some(_)) => resolve(name.as_str(), names)?,
            _ => Vec::new(),
        };
        let own: Vec<_> = addresses.iter().copied().filter(|&address| is_of_this_machine(address)).collect();
        let denied = if addresses.is_empty() { denied } else { denied.leading_to(&addresses, &own) };
        let mut explanation = Self::denied(&denied, None, addresses);
        if denied.needed().is_none() && !explanation.addresses.is_empty() {
            let detail = explanation.detail.get_or_insert_default();
            detail.push_str("; and no rule can allow the addresses that its name resolves to");
        }
        Ok(explanation)
    }

    fn denied(denied: &EgressDenial, rule: Option<usize>, addresses: Vec<IpAddr>) -> Self {
        Self {
            verdict: Verdict::Denied,
            reason: Some(denied.reason.code()),
            detail: Some(match denied.reason {
                DenyReason::NoAddress => "the name does not resolve, or the lookup timed out".to_owned(),
                reason => reason.to_string(),
            }),
            rule,
            rule_needed: denied.needed().map(str::to_owned),
            addresses,
            inspected: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::egress::{HostPattern, Rule};

    fn ask(text: &str, method: Option<&str>) -> Explanation {
        let rule = |host: &str| Rule::for_hosts(HostPattern::parse(host).unwrap());
        let api = Rule { methods: vec!["GET".to_owned()], ..rule("93.184.216.34") };
        let below = rule("**.below.test");
        let policy = EgressPolicy::new(vec![rule("127.0.0.1"), api, rule("nowhere.test"), below]);
        let names = NameSource::at("/nonexistent".into(), Vec::new());
        ExplainQuery::parse(text, method).unwrap().ask(&policy, names).unwrap()
    }

    #[test]
    fn explanation_names_the_allowing_rule_or_the_reason_for_denial() {
        let allowed = ask("https://93.184.216.34/x", None);
        assert_eq!((allowed.verdict, allowed.rule, allowed.inspected), (Verdict::Allowed, Some(1), true));
        for (text, method, reason) in [
            ("https://93.184.216.34/x", Some("POST"), "no_rule_for_method"),
            ("93.184.216.34:22", None, "no_rule_for_port"),
            ("http://other.test", None, "no_rule_for_host"),
            ("http://127.0.0.1", None, "loopback_address"),
            ("https://nowhere.test", None, "no_address"),
            (
                &format!("https://{}.{}.below.test", "a".repeat(60), "b".repeat(60)),
                None,
                "name_says_too_much",
            ),
        ] {
            let denied = ask(text, method);
            assert_eq!((denied.verdict, denied.reason), (Verdict::Denied, Some(reason)), "{text}");
        }
        for bad in ["", "example.com", "https://", "http://127.1/", "https://a.example:0"] {
            assert!(ExplainQuery::parse(bad, None).is_err(), "{bad}");
        }
    }
}
