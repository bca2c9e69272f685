//! Requirements for the opening of a tunnel: TLS only or other protocols as well, and a ClientHello with or without a server
//! name.

use super::Rule;

/// Requirement of TLS in a rule's tunnels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TunnelTls {
    /// TLS only at port 443; TLS or another protocol at other ports.
    #[default]
    ByPort,
    /// TLS only, at every port of the rule.
    Required,
    /// TLS or another protocol, at every port of the rule.
    Optional,
}

/// Requirements for the opening of an allowed tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelStart {
    /// True if it must be a TLS ClientHello.
    pub needs_tls: bool,
    /// True if a ClientHello to a named host must name that host (SNI).
    pub needs_server_name: bool,
}

/// Port of HTTPS, at which a tunnel must carry TLS by default.
const HTTPS: u16 = 443;

// === impl TunnelStart ===

impl TunnelStart {
    /// Returns the combined requirements of the rules that allow a tunnel to that port. Rules have no order: an opening is
    /// allowed if any rule allows it.
    pub(super) fn of<'r>(rules: impl Iterator<Item = &'r Rule> + Clone, port: u16) -> Self {
        let needs_tls = rules.clone().all(|rule| match rule.tls {
            TunnelTls::ByPort => port == HTTPS,
            TunnelTls::Required => true,
            TunnelTls::Optional => false,
        });
        let mut rules = rules;
        Self { needs_tls, needs_server_name: rules.all(|rule| rule.needs_server_name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::{Destination, EgressPolicy, EgressRequest, Host, HostPattern};

    fn start(rules: &[(TunnelTls, bool)], port: u16) -> TunnelStart {
        let rule = |&(tls, needs_server_name): &(TunnelTls, bool)| Rule {
            ports: vec![port],
            tls,
            needs_server_name,
            ..Rule::for_hosts(HostPattern::parse("one.test").unwrap())
        };
        let policy = EgressPolicy::new(rules.iter().map(rule).collect());
        let destination = Destination { host: Host::parse("one.test").unwrap(), port };
        policy.decide(destination, EgressRequest::Tunnel).unwrap().tunnel_start()
    }

    #[test]
    fn port_443_carries_tls_unless_one_rule_allows_another_protocol() {
        use TunnelTls::{ByPort, Optional, Required};
        for (rules, port, needs_tls) in [
            (&[(ByPort, true)][..], 443, true),
            (&[(ByPort, true)], 22, false),
            (&[(Optional, true)], 443, false),
            (&[(Required, true)], 22, true),
            (&[(Required, true), (Optional, true)], 22, false),
            (&[(ByPort, true), (Required, true)], 443, true),
        ] {
            assert_eq!(start(rules, port), TunnelStart { needs_tls, needs_server_name: true }, "{rules:?}");
        }
        assert!(!start(&[(ByPort, true), (ByPort, false)], 443).needs_server_name);
    }
}
