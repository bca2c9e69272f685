//! Grants of a node: `/v1/worker/grants` (`docs/contracts/agents.md#a1.3`).

use super::ApiVersion;
use crate::decode::{Decode, DecodeContext, Fields, decode_document, whole_number};
use crate::grant::{BillingAccount, ExecutionGrant, GrantScope, GrantSubject, GraphId};
use crate::id::{GrantId, UserId};
use crate::json::{self, Node};
use crate::problem::Problems;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// A request for a grant: `POST /v1/worker/grants`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct IssueGrantRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The holder: `service:NAME` or `user:NAME`.
    pub subject: GrantSubject,
    /// Account that pays for its use.
    #[schemars(with = "BillingAccount")]
    pub billing_account_id: String,
    /// User that the grant is used for.
    #[schemars(default, with = "UserId")]
    pub user_id: Option<UserId>,
    /// Graphs that may be executed.
    pub scopes: Vec<GrantScope>,
    /// Allow execution in sandboxes. Default: false. No scope implies it.
    #[schemars(default)]
    pub allow_sandbox: bool,
    /// Lifetime, in seconds. Default: valid until it is revoked.
    #[schemars(default, with = "u64", range(min = 1, max = LONGEST_LIFE_SECONDS))]
    pub expires_in_seconds: Option<u64>,
}

/// A new grant. Its secret is returned here, and never again, so the type has no form in which it could be printed by
/// accident.
#[derive(Serialize, JsonSchema)]
pub struct IssueGrantResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The grant.
    pub grant: GrantDocument,
    /// Secret, which proves possession of the grant.
    pub secret: String,
}

/// A page of a node's grants: `GET /v1/worker/grants`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GrantListResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The grants, the first issued first.
    pub grants: Vec<GrantDocument>,
    /// The `page_token` of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<GrantId>,
}

/// Result of a revocation: `POST /v1/worker/grants/{grant_id}/revoke`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RevokeGrantResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// True if it was not revoked before.
    pub revoked: bool,
}

/// A question whether a grant covers the execution of a graph in a sandbox: `POST /v1/worker/grants/{grant_id}/validate`.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ValidateGrantRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Secret of the grant.
    pub secret: String,
    /// The graph, such as `sandbox:codex`.
    #[schemars(with = "GraphId")]
    pub graph_id: String,
}

/// A grant that covers the execution of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ValidateGrantResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The grant.
    pub grant: GrantDocument,
}

/// A grant, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GrantDocument {
    /// Its id.
    pub id: GrantId,
    /// The holder: `service:NAME` or `user:NAME`.
    pub subject: String,
    /// Account that pays for its use.
    pub billing_account_id: String,
    /// User that the grant is used for; null if none is named.
    pub user_id: Option<UserId>,
    /// Graphs that may be executed.
    pub scopes: Vec<String>,
    /// True if they may be executed in sandboxes.
    pub allow_sandbox: bool,
    /// Time of issue (UTC).
    pub issued_at: Timestamp,
    /// Time from which on it is not valid any more (UTC); null if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// Time of revocation (UTC); null if it was not revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Maximum lifetime of a grant with a limited lifetime, in seconds: ten years.
pub const LONGEST_LIFE_SECONDS: u64 = 315_360_000;

// === impl IssueGrantRequest ===

impl IssueGrantRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// Returns the lifetime of the grant, if it is limited.
    pub fn life(&self) -> Option<Duration> {
        self.expires_in_seconds.map(Duration::from_secs)
    }
}

impl Decode for IssueGrantRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let subject = fields.required("subject");
        let account = fields.required("billing_account_id");
        let user_id = fields.optional("user_id");
        let scopes = fields.required("scopes");
        let allow_sandbox = fields.or("allow_sandbox", false);
        let life = fields.optional("expires_in_seconds");
        fields.finish()?;
        Some(Self {
            version: version?,
            subject: subject?,
            billing_account_id: account.map(|BillingAccount(account)| account)?,
            user_id: user_id?,
            scopes: scopes?,
            allow_sandbox: allow_sandbox?,
            expires_in_seconds: life?.map(|GrantLifetime(seconds)| seconds),
        })
    }
}

struct GrantLifetime(u64);

impl Decode for GrantLifetime {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        whole_number(node, at, 1..=LONGEST_LIFE_SECONDS).map(Self)
    }
}

// === impl ValidateGrantRequest ===

impl ValidateGrantRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for ValidateGrantRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let secret = fields.required("secret");
        let graph_id = fields.required("graph_id");
        fields.finish()?;
        Some(Self { version: version?, secret: secret?, graph_id: graph_id.map(|GraphId(graph)| graph)? })
    }
}

// === impl GrantDocument ===

impl GrantDocument {
    /// A grant and when it was issued.
    pub fn new(grant: &ExecutionGrant, issued_at: Timestamp) -> Self {
        Self {
            id: grant.id.clone(),
            subject: grant.subject.to_string(),
            billing_account_id: grant.billing_account_id.clone(),
            user_id: grant.user_id.clone(),
            scopes: grant.scopes.iter().map(ToString::to_string).collect(),
            allow_sandbox: grant.allow_sandbox,
            issued_at,
            expires_at: grant.expires_at,
            revoked_at: grant.revoked_at,
        }
    }
}
