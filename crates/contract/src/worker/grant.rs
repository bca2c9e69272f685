//! Grants of a node: `/v1/worker/grants` (`spec/2` invariant 3).

use super::ApiVersion;
use crate::decode::{At, Decode, Fields, decode_document, whole_number};
use crate::grant::{BillingAccount, ExecutionGrant, GraphId, Scope, Subject};
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
    pub subject: Subject,
    /// The account that pays for what is done with it.
    #[schemars(with = "BillingAccount")]
    pub billing_account_id: String,
    /// The person on whose behalf it is used.
    #[schemars(default, with = "UserId")]
    pub user_id: Option<UserId>,
    /// What may be executed.
    pub scopes: Vec<Scope>,
    /// Whether that may be done in sandboxes. No scope implies it.
    #[schemars(default)]
    pub allow_sandbox: bool,
    /// How long it is valid, in seconds; until it is revoked if absent.
    #[schemars(default, with = "u64", range(min = 1, max = LONGEST_LIFE_SECONDS))]
    pub expires_in_seconds: Option<u64>,
}

/// A new grant. Its secret is told here, and never again; so there is no form of this to be shown by accident.
#[derive(Serialize, JsonSchema)]
pub struct IssueGrantResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The grant.
    pub grant: GrantDocument,
    /// The secret that shows it.
    pub secret: String,
}

/// Some of a node's grants: `GET /v1/worker/grants`.
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

/// A grant allows nothing any more: `POST /v1/worker/grants/{grant_id}/revoke`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RevokeGrantResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// Whether it was not revoked before.
    pub revoked: bool,
}

/// A question whether a grant covers the execution of a graph in a sandbox: `POST /v1/worker/grants/{grant_id}/validate`.
#[derive(Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ValidateGrantRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The secret that shows the grant.
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
    /// The account that pays for what is done with it.
    pub billing_account_id: String,
    /// The person on whose behalf it is used; null if none is named.
    pub user_id: Option<UserId>,
    /// What may be executed.
    pub scopes: Vec<String>,
    /// Whether that may be done in sandboxes.
    pub allow_sandbox: bool,
    /// When it was issued (UTC).
    pub issued_at: Timestamp,
    /// From when on it is not valid any more (UTC); null if it is valid until it is revoked.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked (UTC); null if it was not.
    pub revoked_at: Option<Timestamp>,
}

/// No grant of a limited time is valid for longer: ten years.
pub const LONGEST_LIFE_SECONDS: u64 = 315_360_000;

// === impl IssueGrantRequest ===

impl IssueGrantRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }

    /// How long the grant is valid, if that is limited.
    pub fn life(&self) -> Option<Duration> {
        self.expires_in_seconds.map(Duration::from_secs)
    }
}

impl Decode for IssueGrantRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
            expires_in_seconds: life?.map(|Life(seconds)| seconds),
        })
    }
}

struct Life(u64);

impl Decode for Life {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
        whole_number(node, at, 1..=LONGEST_LIFE_SECONDS).map(Self)
    }
}

// === impl ValidateGrantRequest ===

impl ValidateGrantRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// [`Problems`]: every one that is found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for ValidateGrantRequest {
    fn decode(node: &Node, at: &mut At<'_, '_>) -> Option<Self> {
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
