//! Remotes that the host's git may use: all on the public internet, and configured ones; and their forges.

use super::{Forge, Remote, RemotePattern};
use crate::egress::{
    AllowedDestination, Destination, EgressDenial, EgressPolicy, EgressRequest, HostPattern, Network, Rule,
};

/// Rules for the host's git, besides the public internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitRules {
    /// Hosts that may lead to any address that can be granted.
    pub hosts: Vec<HostPattern>,
    /// Networks that any host may lead to.
    pub networks: Vec<Network>,
    /// Forges, at most one for each host.
    pub forges: Vec<Forge>,
    /// Remotes that agents' tools may clone and push to. Without any, these tools are not available.
    pub remotes: Vec<RemotePattern>,
}

// === impl GitRules ===

impl GitRules {
    /// Decides about a remote before its name is resolved. Returns `None` for a directory of this host, which needs no
    /// connection.
    ///
    /// # Errors
    /// [`EgressDenial`], which is not expected here: the later check of the addresses decides.
    pub fn decide(&self, remote: &Remote) -> Result<Option<AllowedDestination<Destination>>, EgressDenial> {
        let Some(destination) = remote.destination() else { return Ok(None) };
        let is_named = self.hosts.iter().any(|pattern| pattern.matches(&destination.host));
        let everywhere = ["0.0.0.0/0", "::/0"].into_iter().filter(|_| is_named).filter_map(Network::parse);
        let rule = Rule {
            ports: vec![destination.port],
            networks: self.networks.iter().copied().chain(everywhere).collect(),
            ..Rule::for_hosts(HostPattern::One(destination.host.clone()))
        };
        EgressPolicy::new(vec![rule]).decide(destination.clone(), EgressRequest::Tunnel).map(Some)
    }

    /// Returns true if agents' tools may use this remote.
    pub fn is_for_agents(&self, remote: &Remote) -> bool {
        self.remotes.iter().any(|pattern| pattern.matches(remote))
    }

    /// Returns the forge of a remote's repository, if one is configured.
    pub fn forge(&self, remote: &Remote) -> Option<&Forge> {
        self.forges.iter().find(|forge| forge.has(remote))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ForgeKind;
    use super::*;
    use crate::egress::Host;
    use core::net::IpAddr;

    fn may(rules: &GitRules, url: &str, addresses: &[&str]) -> Result<(), &'static str> {
        let remote = Remote::parse(url, false).unwrap();
        let found: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let allowed = rules.decide(&remote).unwrap().unwrap();
        allowed.vet(&found, &[]).map(|_| ()).map_err(|denied| denied.reason.code())
    }

    #[test]
    fn git_rules_allow_public_hosts_and_only_listed_private_ones() {
        let none = GitRules::default();
        let house = GitRules { networks: vec![Network::parse("10.0.0.0/8").unwrap()], ..GitRules::default() };
        let named =
            GitRules { hosts: vec![HostPattern::parse("git.house.example").unwrap()], ..GitRules::default() };
        let url = "https://git.house.example/a";
        assert_eq!(may(&none, url, &["93.184.216.34"]), Ok(()));
        assert_eq!(may(&none, url, &["93.184.216.34", "10.0.0.1"]), Err("private_address"));
        assert_eq!(may(&none, url, &[]), Err("no_address"));
        for rules in [&house, &named] {
            assert_eq!(may(rules, url, &["10.0.0.1"]), Ok(()));
            assert_eq!(may(rules, url, &["10.0.0.1", "169.254.169.254"]), Err("link_local_address"));
            assert_eq!(may(rules, url, &["100.100.100.200"]), Err("metadata_address"));
        }
        assert_eq!(may(&house, url, &["192.168.0.1"]), Err("private_address"));
        assert_eq!(may(&named, "https://other.example/a", &["10.0.0.1"]), Err("private_address"));
        assert_eq!(may(&house, "git@git.house.example:a", &["::ffff:10.0.0.1"]), Ok(()));
    }

    #[test]
    fn host_directory_as_git_remote_is_denied() {
        let remote = Remote::parse("file:///srv/a", true).unwrap();
        assert_eq!(GitRules::default().decide(&remote), Ok(None));
    }

    #[test]
    fn remote_gets_the_forge_of_its_host_only() {
        let forge = |host: &str, connection: &str| Forge {
            host: Host::parse(host).unwrap(),
            kind: ForgeKind::Gitea,
            connection: connection.to_owned(),
        };
        let rules = GitRules {
            forges: vec![forge("a.example", "of a"), forge("b.example", "of b")],
            ..GitRules::default()
        };
        let connection = |url: &str| {
            let remote = Remote::parse(url, true).unwrap();
            rules.forge(&remote).map(|forge| forge.connection.clone())
        };
        assert_eq!(connection("https://a.example/x/y").as_deref(), Some("of a"));
        assert_eq!(connection("git@b.example:x/y").as_deref(), Some("of b"));
        assert_eq!(connection("https://c.example/x/y"), None);
        assert_eq!(connection("file:///a.example/x/y"), None);
    }
}
