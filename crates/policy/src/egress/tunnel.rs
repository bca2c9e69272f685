//! What a tunnel may begin with: TLS alone or another protocol as well, and a ClientHello with or without a server name.

use super::Rule;

/// Whether tunnels of a rule must carry TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TunnelTls {
    /// TLS alone at port 443; TLS or another protocol at other ports.
    #[default]
    ByPort,
    /// TLS alone, at every port of the rule.
    Required,
    /// TLS or another protocol, at every port of the rule.
    Optional,
}

/// What a tunnel that was allowed may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelStart {
    /// Whether it must be a ClientHello of TLS.
    pub needs_tls: bool,
    /// Whether a ClientHello to a named host must name that host (SNI).
    pub needs_server_name: bool,
}

/// The port of HTTPS, at which a tunnel carries TLS unless a rule says otherwise.
const HTTPS: u16 = 443;

// === impl TunnelStart ===

impl TunnelStart {
    /// What the rules that allow a tunnel to that port demand of it together. Rules have no order: what one of them allows is
    /// allowed.
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
    use crate::egress::{Asked, Destination, EgressPolicy, Host, HostPattern};

    fn start(rules: &[(TunnelTls, bool)], port: u16) -> TunnelStart {
        let rule = |&(tls, needs_server_name): &(TunnelTls, bool)| Rule {
            ports: vec![port],
            tls,
            needs_server_name,
            ..Rule::for_hosts(HostPattern::parse("one.test").unwrap())
        };
        let policy = EgressPolicy::new(rules.iter().map(rule).collect());
        let destination = Destination { host: Host::parse("one.test").unwrap(), port };
        policy.decide(destination, Asked::Tunnel).unwrap().tunnel_start()
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
