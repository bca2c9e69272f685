//! `egress`: hosts that sandboxes may reach, and credentials that the proxy injects for them.
//!
//! ```yaml
//! egress:
//!   rules:
//!     - host: api.example.com
//!       paths: [/v1/]
//!       credentials: [house]             # injected for this rule's requests, and for no others
//!   credentials:
//!     - name: house                      # its placeholder inside is `belljar:cred:house`
//!       from: {file: /etc/house/token}   # or {env: NAME}, or {command: [PROGRAM, …]}
//!       headers: [authorization]         # where the placeholder may stand
//!       query: [key]
//!   aws_keys:
//!     - name: bucket                     # requests signed with a placeholder key are signed anew
//!       access_key_id: {env: BUCKET_ID}
//!       secret_access_key: {env: BUCKET_KEY}
//!       services: [s3]
//!   authorities: /etc/house/ca.pem       # trusted besides the system's
//!   proxy:                               # upstream proxy of all connections
//!     url: http://proxy.house:3128
//!     credential: {file: /etc/house/proxy}   # USER:PASSWORD
//!     names: here                        # where names are resolved: here, or there (at the proxy)
//!     identity: false                    # whether requests to it name the task and the job
//!     except: ["*.house.example"]
//!   connections: []                      # APIs that the host calls (`api::config`)
//!   search:                              # where agents search the web
//!     kind: searxng                      # or brave
//!     connection: searches               # one of `connections`
//! ```

use super::header_filter::may_pass;
use crate::api::{ApiConnection, Connections};
use crate::audit_quota::{self, AuditLimits};
use crate::credential::{Credential, read_source};
use crate::upstream::{ResolverLocation, Upstream, UpstreamProxy, read_user};
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, list, one_of, place, quoted, text};
use belljar_policy::egress::{CREDENTIAL_NAME, EgressPolicy, HostPattern, is_credential_name};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The section, checked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WebConfig {
    /// Policy that decides which hosts may be reached.
    pub policy: EgressPolicy,
    /// Credentials that are injected, by name.
    pub(crate) credentials: Credentials,
    /// File with authorities that are trusted besides the system's, for intercepted connections.
    pub authorities: Option<PathBuf>,
    /// Upstream proxy for all connections.
    pub(crate) through: Option<UpstreamProxy>,
    /// APIs that the host calls.
    pub connections: Connections,
    /// Search service for agents, if they may search.
    pub search: Option<Search>,
    /// Limits on what a run may write to the audit log.
    pub audit: AuditLimits,
}

/// Search service for the web.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Protocol of the service.
    pub kind: SearchKind,
    /// Connection by which it is called.
    pub connection: Arc<ApiConnection>,
}

/// Protocol of a search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    /// `SearXNG`'s JSON API.
    Searxng,
    /// Brave's API, which other services speak, too.
    Brave,
}

pub(crate) type Credentials = BTreeMap<String, Arc<HeldCredential>>;

/// Credential that the host holds for a sandbox. The sandbox has only a placeholder.
#[derive(Debug, PartialEq)]
pub(crate) enum HeldCredential {
    /// Text that replaces the placeholder.
    Text {
        credential: Arc<Credential>,
        /// Headers in which the placeholder may stand, by lower-case name.
        headers: Vec<String>,
        /// Query parameters in which it may stand.
        query: Vec<String>,
    },
    /// Key that requests are signed with (AWS Signature Version 4).
    Aws {
        access_key_id: Arc<Credential>,
        secret_access_key: Arc<Credential>,
        session_token: Option<Arc<Credential>>,
        /// Services that the key may sign for.
        services: Vec<String>,
        /// Regions that the key may sign for; empty for all.
        regions: Vec<String>,
    },
}

/// Header in which a placeholder may stand by default.
const USUAL_HEADER: &str = "authorization";

// === impl WebConfig ===

impl From<EgressPolicy> for WebConfig {
    fn from(policy: EgressPolicy) -> Self {
        Self { policy, ..Self::default() }
    }
}

impl WebConfig {
    /// Reads the section. Errors in it go to `log`.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let mut credentials = Credentials::new();
        for (list, read) in [("credentials", credential as CredentialReader), ("aws_keys", aws)] {
            members.optional(list, |node, log| {
                add(&mut credentials, (node, log), read);
                Some(())
            });
        }
        let policy = members.required("rules", |node, log| {
            let policy = EgressPolicy::read_rules(node, log);
            let named = policy.rules().iter().flat_map(|rule| &rule.credentials);
            for name in named.filter(|name| !credentials.contains_key(*name)) {
                let found = format!("a rule with the credential {}", quoted(name));
                log.note(node.position, place(node), found, "the name of one of `credentials`");
            }
            policy
        });
        let authorities = members.optional("authorities", file);
        let through = members.optional("proxy", through);
        let connections = members
            .optional("connections", |node, log| Some(ApiConnection::read_all(node, log, through.as_ref())));
        let connections = connections.unwrap_or_default();
        let search = members.optional("search", |node, log| search(&connections, node, log));
        let audit = audit_quota::limits(&mut members);
        members.finish();
        Self { policy, credentials, authorities, through, connections, search, audit }
    }

    /// Returns this configuration with another policy.
    #[must_use]
    pub fn with_policy(self, policy: EgressPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Returns true if a rule has connections intercepted.
    pub fn is_inspecting(&self) -> bool {
        self.policy.looks_inside()
    }
}

fn search(connections: &Connections, node: &Node, log: &mut MistakeLog) -> Option<Search> {
    const KINDS: [(&str, SearchKind); 2] = [("searxng", SearchKind::Searxng), ("brave", SearchKind::Brave)];
    let mut members = Members::open(node, log)?;
    let kind = members.required("kind", |node, log| one_of(node, log, &KINDS));
    let connection = members.required("connection", |node, log| {
        text(node, log, "the name of one of `connections`", |text| connections.get(text).cloned())
    });
    members.finish();
    Some(Search { kind: kind?, connection: connection? })
}

fn through(node: &Node, log: &mut MistakeLog) -> Option<UpstreamProxy> {
    const NAMES: [(&str, ResolverLocation); 2] =
        [("here", ResolverLocation::Here), ("there", ResolverLocation::There)];
    let mut members = Members::open(node, log)?;
    let upstream = members.required("url", |node, log| {
        text(node, log, "http://HOST:PORT, without a path", |text| {
            let is_plain = text.starts_with("http://");
            Upstream::parse(text).ok().filter(|upstream| is_plain && upstream.prefix().is_empty())
        })
    });
    let upstream = read_user(&mut members, upstream);
    let credential = members.optional("credential", source);
    let names = members.or("names", ResolverLocation::Here, |node, log| one_of(node, log, &NAMES));
    let tells_owner = members.or("identity", false, boolean);
    let except = members.or("except", Vec::new(), |node, log| {
        list(node, log, |node, log| {
            text(node, log, "a name, *.NAME, **.NAME or an address", |text| HostPattern::parse(text).ok())
        })
    });
    members.finish();
    let upstream = match credential {
        Some(_) => upstream?,
        None => upstream?.without_credential(),
    };
    Some(UpstreamProxy { upstream, credential, names, tells_owner, except })
}

type CredentialReader = fn(&Node, &mut MistakeLog) -> Option<(String, HeldCredential)>;

/// Adds the entries of a list to the credentials.
fn add(all: &mut Credentials, (node, log): (&Node, &mut MistakeLog), read: CredentialReader) {
    for (name, held) in list(node, log, read).unwrap_or_default() {
        if all.insert(name.clone(), Arc::new(held)).is_some() {
            log.note(node.position, place(node), format!("{} twice", quoted(&name)), "each name once");
        }
    }
}

fn credential(node: &Node, log: &mut MistakeLog) -> Option<(String, HeldCredential)> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", name);
    let credential = members.required("from", source);
    let headers = members.optional("headers", |node, log| list(node, log, header));
    let query = members.optional("query", |node, log| list(node, log, parameter));
    members.finish();
    let headers = match (headers, &query) {
        (None, None) => vec![USUAL_HEADER.to_owned()],
        (headers, _) => headers.unwrap_or_default(),
    };
    Some((name?, HeldCredential::Text { credential: credential?, headers, query: query.unwrap_or_default() }))
}

fn aws(node: &Node, log: &mut MistakeLog) -> Option<(String, HeldCredential)> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", name);
    let access_key_id = members.required("access_key_id", source);
    let secret_access_key = members.required("secret_access_key", source);
    let session_token = members.optional("session_token", source);
    let services = members.required("services", |node, log| list(node, log, word));
    let regions = members.or("regions", Vec::new(), |node, log| list(node, log, word));
    members.finish();
    let (access_key_id, secret_access_key) = (access_key_id?, secret_access_key?);
    let services = services.filter(|services| !services.is_empty())?;
    Some((name?, HeldCredential::Aws { access_key_id, secret_access_key, session_token, services, regions }))
}

/// Reads a service or a region, as signatures name it.
fn word(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "letters, digits and `-`, such as s3 or eu-west-1", |text| {
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (!text.is_empty() && text.bytes().all(is_inside)).then(|| text.to_owned())
    })
}

fn name(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, CREDENTIAL_NAME, |text| is_credential_name(text).then(|| text.to_owned()))
}

fn source(node: &Node, log: &mut MistakeLog) -> Option<Arc<Credential>> {
    read_source(node, log).map(|source| Arc::new(Credential::new(source)))
}

fn header(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "the name of a header in lower case, of none that the host writes", |text| {
        let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_header = !text.is_empty()
            && text.bytes().all(is_inside)
            && may_pass(text.as_bytes())
            && text != "accept-encoding";
        is_header.then(|| text.to_owned())
    })
}

fn parameter(node: &Node, log: &mut MistakeLog) -> Option<String> {
    text(node, log, "the name of a parameter: letters, digits, `-`, `_` and `.`", |text| {
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        (!text.is_empty() && text.bytes().all(is_inside)).then(|| text.to_owned())
    })
}

fn file(node: &Node, log: &mut MistakeLog) -> Option<PathBuf> {
    text(node, log, "the absolute path of a file", |text| text.starts_with('/').then(|| PathBuf::from(text)))
}
