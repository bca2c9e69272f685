//! `connections`: APIs that the host may call for agents.
//!
//! ```yaml
//! connections:
//!   - name: forge
//!     url: https://forge.example/api/v1   # calls stay below it
//!     credential: {file: /etc/house/forge}
//!     as: bearer                          # bearer, basic, header NAME or query NAME
//!     methods: [GET, HEAD, POST]          # without it, GET and HEAD
//!     writes: ask                         # approval of calls that change something: ask, allow
//!     calls_a_minute: 60
//!     networks: [10.0.0.0/8]              # private networks that its name may lead to
//!     authorities: /etc/house/ca.pem      # trusted besides the system's
//!     operations: []                      # calls that agents may make (`operation`)
//! ```

use super::allowance::Allowance;
use super::operation::Operation;
use crate::credential::{Credential, read_source};
use crate::upstream::UpstreamProxy;
use crate::web::explain::ExplainQuery;
use belljar_contract::yaml::{Members, MistakeLog, Node, list, one_of, place, quoted, text, whole};
use belljar_policy::egress::{
    Destination, EgressPolicy, EgressRequest, HostPattern, Network, PathPrefix, Rule, is_credential_name,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// All connections, by name.
pub type Connections = BTreeMap<String, Arc<ApiConnection>>;

/// API that the host may call.
#[derive(Debug)]
pub struct ApiConnection {
    /// Name of the connection.
    pub name: String,
    pub(super) destination: Destination,
    pub(super) is_secure: bool,
    /// Path prefix of all calls, without a slash at its end.
    pub(super) prefix: String,
    /// Policy of a single rule: the host, its port, the methods, and the paths below the prefix.
    pub(super) policy: EgressPolicy,
    pub(super) credential: Option<Arc<Credential>>,
    /// Place of the credential in a request, if there is one.
    pub(super) placement: CredentialPlacement,
    /// File with authorities that are trusted besides the system's.
    pub(super) authorities: Option<PathBuf>,
    pub(super) asks_for_writes: bool,
    pub(super) allowance: Allowance,
    /// Upstream proxy of the configuration, if there is one.
    pub(super) through: Option<Arc<UpstreamProxy>>,
    /// Operations that agents may call; empty for a connection that only the host uses.
    pub operations: Vec<Operation>,
}

/// Place of a credential in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CredentialPlacement {
    Bearer,
    /// Basic authentication with a user and a password, separated by a colon.
    Basic,
    /// Value of this header.
    Header(String),
    /// Parameter of the query.
    Query(String),
}

/// Effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing (RFC 9110 §9.2.1).
    Read,
    /// May change something.
    Write,
}

const USUAL_METHODS: [&str; 2] = ["GET", "HEAD"];
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
const USUAL_RATE: u32 = 60;

/// Compares the configuration. The use of the rate limit is no part of it.
impl PartialEq for ApiConnection {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && (&self.destination, self.is_secure, &self.prefix)
                == (&other.destination, other.is_secure, &other.prefix)
            && (&self.policy, &self.credential, &self.placement, &self.authorities)
                == (&other.policy, &other.credential, &other.placement, &other.authorities)
            && (self.asks_for_writes, self.allowance.a_minute(), &self.operations, &self.through)
                == (other.asks_for_writes, other.allowance.a_minute(), &other.operations, &other.through)
    }
}

// === impl Effect ===

impl Effect {
    /// Returns the effect that a method has by definition.
    pub fn of(method: &str) -> Self {
        if READING.contains(&method) { Self::Read } else { Self::Write }
    }
}

// === impl ApiConnection ===

impl ApiConnection {
    /// Returns the base URL of the operations' paths, without credentials.
    pub fn address(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.destination, self.prefix)
    }

    /// Returns true if a call by that method requires an approval.
    pub fn takes_approval(&self, method: &str) -> bool {
        self.asks_for_writes && Effect::of(method) == Effect::Write
    }

    /// Returns true if the connection allows that method at that path.
    pub fn is_for(&self, method: &str, path: &str) -> bool {
        let path = format!("{}{path}", self.prefix);
        let wanted = EgressRequest::Request { method, path: &path };
        self.policy.decide(self.destination.clone(), wanted).is_ok()
    }

    /// Reads the list of connections, which are reached through this upstream proxy. Errors in it go to `log`.
    pub(crate) fn read_all(
        node: &Node,
        log: &mut MistakeLog,
        through: Option<&UpstreamProxy>,
    ) -> Connections {
        let through = through.map(|through| Arc::new(through.clone()));
        let mut all = Connections::new();
        for connection in list(node, log, connection).unwrap_or_default() {
            let name = connection.name.clone();
            let connection = Self { through: through.clone(), ..connection };
            if all.insert(name.clone(), Arc::new(connection)).is_some() {
                log.note(node.position, place(node), format!("{} twice", quoted(&name)), "each name once");
            }
        }
        all
    }
}

fn connection(node: &Node, log: &mut MistakeLog) -> Option<ApiConnection> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", |node, log| {
        let expected = belljar_policy::egress::CREDENTIAL_NAME;
        text(node, log, expected, |text| is_credential_name(text).then(|| text.to_owned()))
    });
    let base = members.required("url", |node, log| {
        text(node, log, "https://HOST[:PORT][/PATH], or http:// without a credential", base)
    });
    let source = members.optional("credential", read_source);
    let placement = members.or("as", CredentialPlacement::Bearer, placement);
    let usual = USUAL_METHODS.map(str::to_owned).to_vec();
    let methods = members.or("methods", usual, |node, log| list(node, log, method));
    const WRITES: [(&str, bool); 2] = [("ask", true), ("allow", false)];
    let asks_for_writes = members.or("writes", true, |node, log| one_of(node, log, &WRITES));
    let rate = members.or("calls_a_minute", u64::from(USUAL_RATE), |node, log| whole(node, log, 1..=60_000));
    let networks = members.or("networks", Vec::new(), |node, log| {
        list(node, log, |node, log| {
            text(node, log, "a network, such as 10.0.0.0/8, that names its first address", Network::parse)
        })
    });
    let authorities = members.optional("authorities", |node, log| {
        text(node, log, "the absolute path of a file", |text| {
            text.starts_with('/').then(|| PathBuf::from(text))
        })
    });
    let operations = members.or("operations", Vec::new(), |node, log| list(node, log, Operation::read));
    let is_open = base.as_ref().is_some_and(|base| !base.is_secure);
    if is_open && source.is_some() {
        let expected = "a url that begins with https://";
        members.log.note(node.position, place(node), "`credential` for a url without TLS", expected);
    }
    members.finish();
    let BaseUrl { destination, is_secure, prefix } = base?;
    let rule = Rule {
        ports: vec![destination.port],
        methods,
        paths: vec![PathPrefix::parse(&format!("{prefix}/"))?],
        networks,
        ..Rule::for_hosts(HostPattern::One(destination.host.clone()))
    };
    let connection = ApiConnection {
        name: name?,
        destination,
        is_secure,
        prefix,
        policy: EgressPolicy::new(vec![rule]),
        credential: source.map(|source| Arc::new(Credential::new(source))),
        placement,
        authorities,
        asks_for_writes,
        allowance: Allowance::new(u32::try_from(rate).unwrap_or(USUAL_RATE)),
        through: None,
        operations,
    };
    check(&connection, node, log);
    Some(connection)
}

/// Reports operations that can never be called, and duplicate names.
fn check(connection: &ApiConnection, node: &Node, log: &mut MistakeLog) {
    for (number, operation) in connection.operations.iter().enumerate() {
        let mut note = |found: &str, expected| {
            let found = format!("the operation {} {found}", quoted(&operation.name));
            log.note(node.position, place(node), found, expected);
        };
        if connection.operations[..number].iter().any(|other| other.name == operation.name) {
            note("twice", "each name once");
        }
        if !connection.is_for(&operation.method, &operation.example()) {
            note(
                "with a method or path that the connection does not allow",
                "one of its `methods`, and a plain path",
            );
        }
    }
}

struct BaseUrl {
    destination: Destination,
    is_secure: bool,
    prefix: String,
}

fn base(text: &str) -> Option<BaseUrl> {
    let is_secure = text.starts_with("https://");
    if !is_secure && !text.starts_with("http://") {
        return None;
    }
    let (destination, path) = ExplainQuery::parse(text, None).ok()?.into_place();
    let prefix = path.trim_end_matches('/').to_owned();
    PathPrefix::parse(&format!("{prefix}/"))?;
    Some(BaseUrl { destination, is_secure, prefix })
}

fn placement(node: &Node, log: &mut MistakeLog) -> Option<CredentialPlacement> {
    text(node, log, "bearer, basic, `header NAME` or `query NAME`", |text| match text.split_once(' ') {
        None if text == "bearer" => Some(CredentialPlacement::Bearer),
        None if text == "basic" => Some(CredentialPlacement::Basic),
        Some(("header", name)) => header(name).map(CredentialPlacement::Header),
        Some(("query", name)) => {
            is_credential_name(name).then(|| CredentialPlacement::Query(name.to_owned()))
        }
        _ => None,
    })
}

fn header(text: &str) -> Option<String> {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_good = !text.is_empty() && text.bytes().all(is_inside) && text != "host";
    is_good.then(|| text.to_owned())
}

pub(super) fn method(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "a method in upper case, such as GET", |text| {
        let is_good =
            !text.is_empty() && text != "CONNECT" && text.bytes().all(|byte| byte.is_ascii_uppercase());
        is_good.then(|| text.to_owned())
    })
}
