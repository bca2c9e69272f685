//! `git`: where the host's git may go.
//!
//! ```yaml
//! git:
//!   hosts: [git.house.example, "**.corp.example"]   # may lead anywhere that can be granted
//!   networks: [10.0.0.0/8]                          # any host may lead there
//! ```

use super::GitRules;
use crate::egress::{HostPattern, Network};
use belljar_contract::yaml::{Log, Members, Node, list, text};

// === impl GitRules ===

impl GitRules {
    /// Reads the section; what is wrong with it is noted.
    pub fn read(node: &Node, log: &mut Log) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let hosts = members.or("hosts", Vec::new(), |node, log| list(node, log, host));
        let networks = members.or("networks", Vec::new(), |node, log| list(node, log, network));
        members.finish();
        Self { hosts, networks }
    }
}

fn host(node: &Node, log: &mut Log) -> Option<HostPattern> {
    text(node, log, "a name, *.NAME, **.NAME or an address", |text| HostPattern::parse(text).ok())
}

fn network(node: &Node, log: &mut Log) -> Option<Network> {
    text(node, log, "a network, such as 10.0.0.0/8, that names its first address", Network::parse)
}
