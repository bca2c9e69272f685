//! `egress`: hosts that sandboxes may reach.
//!
//! ```yaml
//! egress:
//!   rules:
//!     - host: pkgs.example                 # this name, at 80 and 443
//!     - host: "*.files.example"     # names with one more label; `**.` for any number
//!       ports: [443]
//!       names: {at_once: 512, an_hour: 512, characters: 64, bits: 264}
//!     - host: api.example.com
//!       methods: [GET]                 # these require TLS interception
//!       paths: [/v1/]
//!     - host: git.house
//!       networks: [10.0.0.0/8]         # private networks that its name may lead to
//!     - host: ssh.house
//!       ports: [443]
//!       tls: optional                  # another protocol than TLS, at the port of HTTPS
//! ```

use super::names::{MOST_BITS, MOST_CHARACTERS};
use super::rule::USUAL_PORTS;
use super::{EgressPolicy, HostPattern, NameLimits, Network, PathPrefix, Rule, TunnelTls};
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, list, one_of, place, text, whole};

/// Format that [`is_credential_name`] requires, in words.
pub const CREDENTIAL_NAME: &str = "1 to 64 letters, digits, `-` and `_`";

/// Maximum of the name limits. A higher number would be no limit.
const MOST_NAMES: u32 = 1_000_000;

/// Returns true if the text may be a credential's name. The name has to end where other text follows.
pub fn is_credential_name(text: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&text.len()) && text.bytes().all(is_inside)
}

// === impl EgressPolicy ===

impl EgressPolicy {
    /// Reads the section. Errors in it go to `log`.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let policy = members.required("rules", Self::read_rules);
        members.finish();
        policy
    }

    /// Reads only the list of rules, for a section with further members.
    pub fn read_rules(node: &Node, log: &mut MistakeLog) -> Self {
        Self::new(list(node, log, rule).unwrap_or_default())
    }
}

fn rule(node: &Node, log: &mut MistakeLog) -> Option<Rule> {
    let mut members = Members::open(node, log)?;
    let host = members.required("host", host);
    let ports = members.or("ports", USUAL_PORTS.to_vec(), |node, log| some(node, log, port));
    let methods = members.or("methods", Vec::new(), |node, log| some(node, log, method));
    let paths = members.or("paths", Vec::new(), |node, log| some(node, log, path));
    let networks = members.or("networks", Vec::new(), |node, log| some(node, log, network));
    let inspect = members.or("inspect", false, boolean);
    let credentials = members.or("credentials", Vec::new(), |node, log| some(node, log, credential));
    let names = members.optional("names", names);
    let tls = members.or("tls", TunnelTls::ByPort, tls);
    let needs_server_name = members.or("sni", true, needs_server_name);
    if names.is_some() && matches!(host, Some(HostPattern::One(_))) {
        let expected = "a host with `*.` or `**.`, or no `names`";
        members.log.note(node.position, place(node), "`names` for one host", expected);
    }
    members.finish();
    let names = names.unwrap_or_default();
    Some(Rule {
        host: host?,
        ports,
        methods,
        paths,
        networks,
        inspect,
        credentials,
        names,
        tls,
        needs_server_name,
    })
}

fn tls(node: &Node, log: &mut MistakeLog) -> Option<TunnelTls> {
    one_of(node, log, &[("optional", TunnelTls::Optional), ("required", TunnelTls::Required)])
}

fn needs_server_name(node: &Node, log: &mut MistakeLog) -> Option<bool> {
    one_of(node, log, &[("optional", false), ("required", true)])
}

fn names(node: &Node, log: &mut MistakeLog) -> Option<NameLimits> {
    let mut members = Members::open(node, log)?;
    let usual = NameLimits::default();
    let mut figure = |name, usual, most: u32| {
        members.or(name, usual, |node, log| {
            whole(node, log, 1..=u64::from(most)).and_then(|figure| u32::try_from(figure).ok())
        })
    };
    let limits = NameLimits {
        at_once: figure("at_once", usual.at_once, MOST_NAMES),
        an_hour: figure("an_hour", usual.an_hour, MOST_NAMES),
        characters: figure("characters", usual.characters, MOST_CHARACTERS),
        bits: figure("bits", usual.bits, MOST_BITS),
    };
    members.finish();
    Some(limits)
}

/// Reads a non-empty list: an empty one could mean none or all.
fn some<T>(
    node: &Node,
    log: &mut MistakeLog,
    read: impl Fn(&Node, &mut MistakeLog) -> Option<T>,
) -> Option<Vec<T>> {
    let all = list(node, log, read)?;
    if all.is_empty() {
        log.note(node.position, place(node), "an empty list", "at least one, or no list");
        return None;
    }
    Some(all)
}

fn host(node: &Node, log: &mut MistakeLog) -> Option<HostPattern> {
    text(node, log, "a name, *.NAME, **.NAME or an address", |text| HostPattern::parse(text).ok())
}

fn port(node: &Node, log: &mut MistakeLog) -> Option<u16> {
    whole(node, log, 1..=u64::from(u16::MAX)).and_then(|port| u16::try_from(port).ok())
}

fn method(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "a method in upper case, such as GET", |text| {
        let is_method =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        is_method.then(|| text.to_owned())
    })
}

fn path(node: &Node, log: &mut MistakeLog) -> Option<PathPrefix> {
    text(node, log, "a path that begins with a slash", PathPrefix::parse)
}

fn credential(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, CREDENTIAL_NAME, |text| is_credential_name(text).then(|| text.to_owned()))
}

fn network(node: &Node, log: &mut MistakeLog) -> Option<Network> {
    text(node, log, "a network, such as 10.0.0.0/8, that names its first address", Network::parse)
}
