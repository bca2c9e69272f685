//! Execution grants: permission for a caller to execute graphs, with or without sandboxes (`docs/contracts/agents.md#a1.3`).

use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::id::{GrantId, UserId};
use crate::json::{self, Node};
use crate::problem::Problems;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A grant as its issuer wrote it. Its permissions are evaluated elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionGrant {
    /// This grant.
    pub id: GrantId,
    /// Subject that holds the grant.
    pub subject: GrantSubject,
    /// Account that pays for its use.
    pub billing_account_id: String,
    /// User that the grant is used for.
    pub user_id: Option<UserId>,
    /// Graphs that may be executed.
    pub scopes: Vec<GrantScope>,
    /// True if graphs may be executed in sandboxes. No scope implies it.
    pub allow_sandbox: bool,
    /// Time from which on it is not valid any more.
    pub expires_at: Option<Timestamp>,
    /// Time of revocation; `None` if it was not revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Holder of a grant: `service:NAME` or `user:NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantSubject {
    /// A part of the system.
    Service(String),
    /// A person.
    User(String),
}

/// Graphs that may be executed: `graph:execute:GRAPH`, or `graph:execute:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantScope {
    /// All graphs.
    AnyGraph,
    /// A single graph, for example `sandbox:codex`.
    Graph(String),
}

/// A grant in a file, with the signature of the deployment that has issued it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SignedGrant {
    /// Content of the grant.
    pub grant: ExecutionGrant,
    /// The signature, in hexadecimal.
    pub signature: String,
}

/// A grant as it is written.
#[derive(Serialize)]
struct SerializedGrant<'g> {
    id: &'g GrantId,
    subject: String,
    billing_account_id: &'g str,
    user_id: Option<&'g UserId>,
    scopes: Vec<String>,
    allow_sandbox: bool,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

/// A billing account, as providers know it.
pub(crate) struct BillingAccount(pub(crate) String);

/// The id of a graph: its provider, a colon, its name.
pub(crate) struct GraphId(pub(crate) String);

/// The text is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}")]
pub struct ParseGrantError {
    expected: &'static str,
}

const SUBJECT: &str = "`service:NAME` or `user:NAME`";
const SCOPE: &str = "`graph:execute:PROVIDER:NAME` or `graph:execute:*`";
const ACCOUNT: &str = "1 to 256 visible characters of ASCII";
const TIME: &str = "a time such as 2026-01-31T12:00:00Z";

const LONGEST: usize = 256;
const EXECUTE: &str = "graph:execute:";

// === impl ExecutionGrant ===

impl ExecutionGrant {
    /// Reads a grant from a JSON document.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Serialize for ExecutionGrant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = SerializedGrant {
            id: &self.id,
            subject: self.subject.to_string(),
            billing_account_id: &self.billing_account_id,
            user_id: self.user_id.as_ref(),
            scopes: self.scopes.iter().map(ToString::to_string).collect(),
            allow_sandbox: self.allow_sandbox,
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
        };
        written.serialize(serializer)
    }
}

// === impl SignedGrant ===

impl SignedGrant {
    /// Parses a signed grant from a JSON document. The signature is verified elsewhere.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for SignedGrant {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let grant = fields.required("grant");
        let signature = fields.required("signature");
        fields.finish()?;
        Some(Self { grant: grant?, signature: signature? })
    }
}

impl Decode for ExecutionGrant {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let id = fields.required("id");
        let subject = fields.required("subject");
        let account = fields.required("billing_account_id");
        let user_id = fields.optional("user_id");
        let scopes = fields.required("scopes");
        let allow_sandbox = fields.required("allow_sandbox");
        let expires_at = fields.optional("expires_at");
        let revoked_at = fields.optional("revoked_at");
        fields.finish()?;
        Some(Self {
            id: id?,
            subject: subject?,
            billing_account_id: account.map(|BillingAccount(account)| account)?,
            user_id: user_id?.and_then(|NullableUserId(user)| user),
            scopes: scopes?,
            allow_sandbox: allow_sandbox?,
            expires_at: expires_at?.and_then(|NullableTimestamp(time)| time),
            revoked_at: revoked_at?.and_then(|NullableTimestamp(time)| time),
        })
    }
}

// === impl GrantSubject ===

impl GrantSubject {
    /// Reads one.
    ///
    /// # Errors
    /// [`ParseGrantError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseGrantError> {
        match text.split_once(':') {
            Some(("service", name)) if is_plain(name) => Ok(Self::Service(name.to_owned())),
            Some(("user", name)) if is_plain(name) => Ok(Self::User(name.to_owned())),
            _ => Err(ParseGrantError { expected: SUBJECT }),
        }
    }
}

impl fmt::Display for GrantSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(name) => write!(f, "service:{name}"),
            Self::User(name) => write!(f, "user:{name}"),
        }
    }
}

impl Decode for GrantSubject {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, SUBJECT, Self::parse)
    }
}

// === impl GrantScope ===

impl GrantScope {
    /// Reads one.
    ///
    /// # Errors
    /// [`ParseGrantError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseGrantError> {
        match text.strip_prefix(EXECUTE) {
            Some("*") => Ok(Self::AnyGraph),
            Some(graph) if is_graph_id(graph) => Ok(Self::Graph(graph.to_owned())),
            _ => Err(ParseGrantError { expected: SCOPE }),
        }
    }

    /// Returns true if the scope covers that graph. Names are compared as a whole; there are no patterns.
    pub fn covers(&self, graph_id: &str) -> bool {
        match self {
            Self::AnyGraph => true,
            Self::Graph(graph) => graph == graph_id,
        }
    }
}

impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnyGraph => f.write_str("graph:execute:*"),
            Self::Graph(graph) => write!(f, "graph:execute:{graph}"),
        }
    }
}

impl Decode for GrantScope {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, SCOPE, Self::parse)
    }
}

/// Returns true if a text is the id of a graph: its provider, a colon, and its name.
pub fn is_graph_id(text: &str) -> bool {
    let has_parts =
        text.split_once(':').is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty());
    // A star would look like a pattern to a person who reads the grant.
    has_parts && is_plain(text) && !text.contains('*')
}

fn is_plain(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl Decode for BillingAccount {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str().filter(|text| is_plain(text)) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, ACCOUNT),
        }
    }
}

impl JsonSchema for BillingAccount {
    fn schema_name() -> Cow<'static, str> {
        "BillingAccount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[!-~]{1,256}$" })
    }
}

impl Decode for GraphId {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node.as_str().filter(|text| is_graph_id(text)) {
            Some(text) => Some(Self(text.to_owned())),
            None => at.mistyped(node, "the id of a graph, such as sandbox:codex"),
        }
    }
}

impl JsonSchema for GraphId {
    fn schema_name() -> Cow<'static, str> {
        "GraphId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[!-)+-9;-~]+:[!-)+-~]+$", "maxLength": LONGEST })
    }
}

impl JsonSchema for GrantSubject {
    fn schema_name() -> Cow<'static, str> {
        "GrantSubject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(service|user):[!-~]{1,256}$" })
    }
}

impl JsonSchema for GrantScope {
    fn schema_name() -> Cow<'static, str> {
        "GrantScope".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = "^graph:execute:([*]|[!-)+-9;-~]+:[!-)+-~]+)$";
        json_schema!({ "type": "string", "pattern": pattern, "maxLength": EXECUTE.len() + LONGEST })
    }
}

/// A user, or null.
struct NullableUserId(Option<UserId>);

impl Decode for NullableUserId {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Null => Some(Self(None)),
            node => UserId::decode(node, at).map(|user| Self(Some(user))),
        }
    }
}

/// A time, or null.
struct NullableTimestamp(Option<Timestamp>);

impl Decode for NullableTimestamp {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Null => Some(Self(None)),
            node => at.parsed(node, TIME, str::parse::<Timestamp>).map(|time| Self(Some(time))),
        }
    }
}
