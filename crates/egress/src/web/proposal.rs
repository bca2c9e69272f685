//! The smallest policy for what a run has tried, from what was recorded of it: for whoever writes a policy.
//!
//! Nobody is let out by it, nothing is dialed and no name is resolved. What was tried is what somebody in a sandbox wanted,
//! not what they should get: it is a proposal.

mod text;

use crate::upstream::is_of_this_machine;
use belljar_contract::egress::{Asked, PassageBegun, PassageOutcome, PassageRecord};
use belljar_contract::id::PassageId;
use belljar_contract::inference::Excerpt;
use belljar_policy::egress::address::AddressClass;
use belljar_policy::egress::{EgressPolicy, Host, HostPattern, Network, Rule};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What a run has tried, as its records come.
#[derive(Debug, Default)]
pub struct Tried {
    places: BTreeMap<(String, u16), Place>,
    /// Let through, and what became of it isn't known yet.
    begun: Vec<(PassageId, Asked)>,
    unreadable: u64,
    unlisted: u64,
}

/// A policy for it, and what of it no policy is proposed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// The rules, by host and port.
    pub rules: Vec<ProposedRule>,
    /// What is not proposed.
    pub not_proposed: Vec<NotProposed>,
    /// How many requests could not be read: they ask for no host.
    pub unreadable: u64,
    /// How many more were there, beyond so many places and methods as anybody reads.
    pub unlisted: u64,
    #[serde(skip)]
    policy: EgressPolicy,
}

/// A rule, in the words of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposedRule {
    /// The host.
    pub host: String,
    /// The ports.
    pub ports: Vec<u16>,
    /// The methods of plain HTTP; empty where there were tunnels, in which anything may be said.
    pub methods: Vec<String>,
    /// Where it leads besides the open internet.
    pub networks: Vec<String>,
}

/// A place to which no rule is proposed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotProposed {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why: a stable code.
    pub reason: String,
    /// The same in words.
    pub detail: &'static str,
}

/// What was wanted at one port of one host.
#[derive(Debug)]
struct Place {
    host: Host,
    has_tunnels: bool,
    methods: BTreeSet<String>,
    networks: BTreeSet<IpAddr>,
    refused: BTreeSet<String>,
}

/// A sandbox may try as many as it likes; nobody reads more than these.
const MOST_PLACES: usize = 256;
const MOST_METHODS: usize = 16;

const TUNNEL: &str = "CONNECT";
const NO_METHOD_OF_RULES: &str = "method_not_nameable";

/// Codes of what no rule allows, and what is said of them.
const HOPELESS: [(&str, &str); 9] = [
    (AddressClass::LinkLocal.code(), NO_RULE),
    (AddressClass::Metadata.code(), NO_RULE),
    (AddressClass::Multicast.code(), NO_RULE),
    (AddressClass::Broadcast.code(), NO_RULE),
    (AddressClass::Unspecified.code(), NO_RULE),
    (AddressClass::Tunnel.code(), NO_RULE),
    ("too_many_addresses", "the name leads to more addresses than a name does"),
    ("no_such_host", "the name leads nowhere"),
    (NO_METHOD_OF_RULES, "a rule can't name that method"),
];

const NO_RULE: &str = "no rule may lead there";

/// Codes of names that lead into the house: who grants that has to say where.
const IN_THE_HOUSE: [&str; 5] = [
    AddressClass::Loopback.code(),
    AddressClass::Private.code(),
    AddressClass::Shared.code(),
    AddressClass::Reserved.code(),
    "own_address",
];

const NETWORK_NEEDED: &str =
    "it is not on the open internet: a rule for it has to name the network that it leads to";

// === impl Tried ===

impl Tried {
    /// Takes the record of one who was about to be let through.
    pub fn begin(&mut self, record: PassageBegun) {
        self.begun.push((record.passage_id, record.asked));
    }

    /// Takes the record of what became of somebody.
    pub fn end(&mut self, record: &PassageRecord) {
        self.begun.retain(|(begun, _)| *begun != record.passage_id);
        let Some(asked) = &record.asked else {
            self.unreadable += 1;
            return;
        };
        let code = match &record.outcome {
            PassageOutcome::Completed => None,
            PassageOutcome::Denied { reason: code } | PassageOutcome::Failed { code } => Some(code.as_str()),
        };
        self.take(asked, code, record.address);
    }

    fn take(&mut self, asked: &Asked, code: Option<&str>, dialed: Option<IpAddr>) {
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
        let place = self.places.entry(key).or_insert_with(|| Place::of(host));
        let is_taken = place.take(asked.method.as_str(), code, leads_to);
        self.unlisted += u64::from(!is_taken);
    }

    /// The proposal.
    pub fn propose(mut self) -> Proposal {
        // Whoever was let through and of whom nothing more is known has tried it, too.
        for (_, asked) in std::mem::take(&mut self.begun) {
            self.take(&asked, None, None);
        }
        let mut rules: Vec<Rule> = Vec::new();
        let mut not_proposed = BTreeSet::new();
        for ((host, port), place) in self.places {
            let refused = place.refused.iter();
            not_proposed.extend(refused.map(|reason| NotProposed::of(&host, port, reason)));
            let Some(rule) = place.rule(port) else { continue };
            // Places come by host.
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

// === impl Place ===

impl Place {
    fn of(host: Host) -> Self {
        Self {
            host,
            has_tunnels: false,
            methods: BTreeSet::new(),
            networks: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Takes one attempt. False if there are too many methods already.
    fn take(&mut self, method: &str, code: Option<&str>, leads_to: Option<IpAddr>) -> bool {
        let class = leads_to.map(AddressClass::of);
        let of_address = class.filter(|class| !class.may_be_granted()).map(AddressClass::code);
        // Where an address is known, nobody has to be told which one to name.
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

    /// The rule for it. In a tunnel anybody may say anything: one that names methods would not allow it.
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

/// Whether a policy can name it, and it was recorded as a whole.
fn is_method_of_rules(method: &str) -> bool {
    (1..Excerpt::LONGEST_BYTES).contains(&method.len())
        && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

// === impl Proposal ===

impl Proposal {
    /// The rules as the policy that they are.
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

// === impl NotProposed ===

impl NotProposed {
    fn of(host: &str, port: u16, reason: &str) -> Self {
        let hopeless = HOPELESS.iter().find(|(code, _)| *code == reason).map(|(_, detail)| *detail);
        let detail = hopeless.unwrap_or(NETWORK_NEEDED);
        Self { host: host.to_owned(), port, reason: reason.to_owned(), detail }
    }
}

#[cfg(test)]
mod tests;
