//! `git`: remotes that the host's git may use, and forges.
//!
//! ```yaml
//! git:
//!   hosts: [git.house.example, "**.corp.example"]   # may lead anywhere that can be granted
//!   networks: [10.0.0.0/8]                          # any host may lead there
//!   forges:
//!     - host: git.house.example                     # of the repositories
//!       kind: gitea                                 # github, gitea, gitlab
//!       connection: forge                           # one of `egress.connections`: its API, with the credential
//!   remotes: ["https://git.house.example/team/"]    # for agents' clones and pushes: all below, or one repository
//! ```

use super::{Forge, ForgeKind, GitRules, RemotePattern};
use crate::egress::{Host, HostPattern, Network};
use belljar_contract::yaml::{Members, MistakeLog, Node, list, one_of, place, quoted, text};

// === impl GitRules ===

impl GitRules {
    /// Reads the section. Errors in it go to `log`.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let hosts = members.or("hosts", Vec::new(), |node, log| list(node, log, host));
        let networks = members.or("networks", Vec::new(), |node, log| list(node, log, network));
        let forges = members.or("forges", Vec::new(), |node, log| Some(forges(node, log)));
        let remotes = members.or("remotes", Vec::new(), |node, log| list(node, log, remote));
        members.finish();
        Self { hosts, networks, forges, remotes }
    }
}

fn forges(node: &Node, log: &mut MistakeLog) -> Vec<Forge> {
    let mut all: Vec<Forge> = Vec::new();
    for forge in list(node, log, forge).unwrap_or_default() {
        if all.iter().any(|known| known.host == forge.host) {
            let found = format!("{} twice", quoted(&forge.host.to_string()));
            log.note(node.position, place(node), found, "each host once");
        }
        all.push(forge);
    }
    all
}

fn forge(node: &Node, log: &mut MistakeLog) -> Option<Forge> {
    let mut members = Members::open(node, log)?;
    let host = members
        .required("host", |node, log| text(node, log, "a name or an address", |text| Host::parse(text).ok()));
    let kind = members.required("kind", |node, log| one_of(node, log, &ForgeKind::ALL));
    let connection = members.required("connection", |node, log| {
        text(node, log, "the name of one of `egress.connections`", |text| Some(text.to_owned()))
    });
    members.finish();
    Some(Forge { host: host?, kind: kind?, connection: connection? })
}

fn host(node: &Node, log: &mut MistakeLog) -> Option<HostPattern> {
    text(node, log, "a name, *.NAME, **.NAME or an address", |text| HostPattern::parse(text).ok())
}

fn remote(node: &Node, log: &mut MistakeLog) -> Option<RemotePattern> {
    let would_be = "the address of a repository, or one with a slash at its end for all below it";
    text(node, log, would_be, |text| RemotePattern::parse(text).ok())
}

fn network(node: &Node, log: &mut MistakeLog) -> Option<Network> {
    text(node, log, "a network, such as 10.0.0.0/8, that names its first address", Network::parse)
}

#[cfg(test)]
mod tests;
