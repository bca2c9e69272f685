//! Proposes the smallest policy for what a run has tried, from its audit records. It is for the author of a policy.
//!
//! A proposal allows nothing by itself: nothing is dialed and no name is resolved. It reports what programs in a sandbox tried,
//! not what they should be allowed.

mod text;

use crate::upstream::is_of_this_machine;
use belljar_contract::egress::{
    ProxiedRequestOutcome, ProxiedRequestRecord, ProxiedRequestStartRecord, RequestedDestination,
};
use belljar_contract::id::PassageId;
use belljar_contract::inference::Excerpt;
use belljar_policy::egress::address::AddressClass;
use belljar_policy::egress::{EgressPolicy, Host, HostPattern, Network, Rule};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Attempts of a run, collected from its records.
#[derive(Debug, Default)]
pub struct RunAttempts {
    places: BTreeMap<(String, u16), HostAttempts>,
    /// Allowed requests and tunnels whose result isn't known yet.
    begun: Vec<(PassageId, RequestedDestination)>,
    unreadable: u64,
    unlisted: u64,
}

/// Proposed policy, and attempts that no policy is proposed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The rules, by host and port.
    pub rules: Vec<ProposedRule>,
    /// Attempts that no rule is proposed for.
    pub not_proposed: Vec<UnproposedHost>,
    /// Number of requests that could not be read and name no host.
    pub unreadable: u64,
    /// Number of further attempts, beyond the maximum number of hosts, ports and methods.
    pub unlisted: u64,
    #[serde(skip)]
    policy: EgressPolicy,
}

/// A rule, in the terms of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposedRule {
    /// The host.
    pub host: String,
    /// The ports.
    pub ports: Vec<u16>,
    /// The methods of plain HTTP; empty if there were tunnels, in which any method may be used.
    pub methods: Vec<String>,
    /// Networks outside the public internet that the host's name resolves to.
    pub networks: Vec<String>,
}

/// A host and port that no rule is proposed for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UnproposedHost {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Stable code of the reason.
    pub reason: String,
    /// The reason in words.
    pub detail: &'static str,
}

/// Attempts at one port of one host.
#[derive(Debug)]
struct HostAttempts {
    host: Host,
    has_tunnels: bool,
    methods: BTreeSet<String>,
    networks: BTreeSet<IpAddr>,
    refused: BTreeSet<String>,
}

/// Maximum number of listed hosts and ports, and of methods at each. A sandbox may try any number.
const MOST_PLACES: usize = 256;
const MOST_METHODS: usize = 16;

const TUNNEL: &str = "CONNECT";
const NO_METHOD_OF_RULES: &str = "method_not_nameable";

/// Codes of denials that no rule can allow, with their explanation.
const HOPELESS: [(&str, &str); 9] = [
    (AddressClass::LinkLocal.code(), NO_RULE),
    (AddressClass::Metadata.code(), NO_RULE),
    (AddressClass::Multicast.code(), NO_RULE),
    (AddressClass::Broadcast.code(), NO_RULE),
    (AddressClass::Unspecified.code(), NO_RULE),
    (AddressClass::Tunnel.code(), NO_RULE),
    ("too_many_addresses", "the name resolves to too many addresses"),
    ("no_such_host", "the name does not resolve"),
    (NO_METHOD_OF_RULES, "a rule can't name that method"),
];

const NO_RULE: &str = "no rule can allow that address";

/// Codes of names that lead into a private network: the rule has to name the network.
const IN_THE_HOUSE: [&str; 5] = [
    AddressClass::Loopback.code(),
    AddressClass::Private.code(),
    AddressClass::Shared.code(),
    AddressClass::Reserved.code(),
    "own_address",
];

const NETWORK_NEEDED: &str =
    "it is not on the public internet: a rule must name the network that it resolves to";

// === impl RunAttempts ===

impl RunAttempts {
    /// Takes the record of a request or tunnel that was about to begin.
    pub fn begin(&mut self, record: ProxiedRequestStartRecord) {
        self.begun.push((record.passage_id, record.asked));
    }

    /// Takes the record of how a request or tunnel ended.
    pub fn end(&mut self, record: &ProxiedRequestRecord) {
        self.begun.retain(|(begun, _)| *begun != record.passage_id);
        let Some(asked) = &record.asked else {
            self.unreadable += 1;
            return;
        };
        let code = match &record.outcome {
            ProxiedRequestOutcome::Completed => None,
            ProxiedRequestOutcome::Denied { reason: code } | ProxiedRequestOutcome::Failed { code } => {
                Some(code.as_str())
            }
        };
        self.take(asked, code, record.address);
    }

    fn take(&mut self, asked: &RequestedDestination, code: Option<&str>, dialed: Option<IpAddr>) {
        let Ok(host) = Host::parse(asked.host.as_str()) else {
            self.unreadable += 1;
            return;
        };
        let key = (host.to_string(), asked.port);
        if !self.places.contains_key(&key) && self.places.len() == MOST_PLACES {
            self.unlisted += 1;
            return;
        }
        let leads_to = match &host {
            Host::Address(address) => Some(*address),
            Host::Name(_) => dialed,
        };
        let place = self.places.entry(key).or_insert_with(|| HostAttempts::of(host));
        let is_taken = place.take(asked.method.as_str(), code, leads_to);
        self.unlisted += u64::from(!is_taken);
    }

    /// Returns the proposal.
    pub fn propose(mut self) -> Proposal {
        // A request that was allowed and has no further record was tried, too.
        for (_, asked) in std::mem::take(&mut self.begun) {
            self.take(&asked, None, None);
        }
        let mut rules: Vec<Rule> = Vec::new();
        let mut not_proposed = BTreeSet::new();
        for ((host, port), place) in self.places {
            let refused = place.refused.iter();
            not_proposed.extend(refused.map(|reason| UnproposedHost::of(&host, port, reason)));
            let Some(rule) = place.rule(port) else { continue };
            // Places are sorted by host.
            match rules
                .iter_mut()
                .rev()
                .take_while(|other| other.host == rule.host)
                .find(|other| (&other.methods, &other.networks) == (&rule.methods, &rule.networks))
            {
                Some(other) => other.ports.push(port),
                None => rules.push(rule),
            }
        }
        Proposal {
            rules: rules.iter().map(ProposedRule::of).collect(),
            not_proposed: not_proposed.into_iter().collect(),
            unreadable: self.unreadable,
            unlisted: self.unlisted,
            policy: EgressPolicy::new(rules),
        }
    }
}

// === impl HostAttempts ===

impl HostAttempts {
    fn of(host: Host) -> Self {
        Self {
            host,
            has_tunnels: false,
            methods: BTreeSet::new(),
            networks: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Adds one attempt. Returns false if there are too many methods already.
    fn take(&mut self, method: &str, code: Option<&str>, leads_to: Option<IpAddr>) -> bool {
        let class = leads_to.map(AddressClass::of);
        let of_address = class.filter(|class| !class.may_be_granted()).map(AddressClass::code);
        // If an address is known, the rule can name its network.
        let is_refusal = |code: &&str| {
            HOPELESS.iter().any(|(hopeless, _)| hopeless == code)
                || (leads_to.is_none() && IN_THE_HOUSE.contains(code))
        };
        let of_method = (method != TUNNEL && !is_method_of_rules(method)).then_some(NO_METHOD_OF_RULES);
        if let Some(reason) = of_address.or(code.filter(is_refusal)).or(of_method) {
            self.refused.insert(reason.to_owned());
            return true;
        }
        let is_in_the_house = |address: &IpAddr| {
            AddressClass::of(*address) != AddressClass::Global || is_of_this_machine(*address)
        };
        self.networks.extend(leads_to.filter(is_in_the_house));
        if method == TUNNEL {
            self.has_tunnels = true;
            return true;
        }
        let has_room = self.methods.contains(method) || self.methods.len() < MOST_METHODS;
        if has_room {
            self.methods.insert(method.to_owned());
        }
        has_room
    }

    /// Returns the rule for this place. A tunnel may carry any method, so a rule that names methods would not allow it.
    fn rule(self, port: u16) -> Option<Rule> {
        if !self.has_tunnels && self.methods.is_empty() {
            return None;
        }
        let methods = if self.has_tunnels { Vec::new() } else { self.methods.into_iter().collect() };
        let networks = self.networks.iter().filter_map(|address| Network::parse(&address.to_string()));
        let networks = networks.collect();
        Some(Rule { ports: vec![port], methods, networks, ..Rule::for_hosts(HostPattern::One(self.host)) })
    }
}

/// Returns true if a policy can name the method, and the record has all of it.
fn is_method_of_rules(method: &str) -> bool {
    (1..Excerpt::LONGEST_BYTES).contains(&method.len())
        && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

// === impl Proposal ===

impl Proposal {
    /// Returns the rules as a policy.
    pub fn policy(&self) -> &EgressPolicy {
        &self.policy
    }
}

// === impl ProposedRule ===

impl ProposedRule {
    fn of(rule: &Rule) -> Self {
        Self {
            host: rule.host.to_string(),
            ports: rule.ports.clone(),
            methods: rule.methods.clone(),
            networks: rule.networks.iter().map(ToString::to_string).collect(),
        }
    }
}

// === impl UnproposedHost ===

impl UnproposedHost {
    fn of(host: &str, port: u16, reason: &str) -> Self {
        let hopeless = HOPELESS.iter().find(|(code, _)| *code == reason).map(|(_, detail)| *detail);
        let detail = hopeless.unwrap_or(NETWORK_NEEDED);
        Self { host: host.to_owned(), port, reason: reason.to_owned(), detail }
    }
}

#[cfg(test)]
mod tests;
