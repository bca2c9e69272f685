//! Where approvals are: at a node, which is asked, or in this machine's own state.

use super::ApprovalNodeArguments;
use crate::access::whoever_runs_this;
use crate::approvals;
use crate::client::{Client, ClientToken, NodeRequest};
use crate::error::CliError;
use belljar_contract::approval::{Approval, ApprovalPage, ApprovalStatus, Ruling};
use belljar_contract::id::ApprovalId;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::approval::{
    ApprovalListResponse, ApprovalResponse, ApproveRequest, DenyRequest,
};
use belljar_store::approvals::{ApprovalDecision, ApprovalError, Approvals};
use jiff::Timestamp;
use serde::Serialize;
use tokio::runtime::Runtime;

/// Where they are.
pub(super) enum ApprovalSource {
    Node(Client),
    Here { approvals: Approvals, runtime: Runtime },
}

/// An answer.
pub(super) struct OperatorDecision {
    pub(super) ruling: Ruling,
    pub(super) reason: Option<String>,
    /// The digest of the arguments that were reviewed.
    pub(super) digest: Option<String>,
}

// === impl ApprovalSource ===

impl ApprovalSource {
    pub(super) fn open(reach: &ApprovalNodeArguments) -> Result<Self, CliError> {
        match (&reach.node, &reach.token_file) {
            (Some(node), Some(file)) => {
                let user = reach.node_user.unwrap_or_default();
                Ok(Self::Node(Client::new(node.clone(), ClientToken::read(file)?, user)))
            }
            (Some(_), None) => {
                let what =
                    "--node also needs --token-file FILE, or BELLJAR_NODE_TOKEN_FILE: the node's token";
                Err(CliError::usage(what.to_owned()))
            }
            (None, _) => {
                let runtime = approvals::runtime()?;
                let approvals = runtime.block_on(approvals::open(&approvals::audit()?))?;
                Ok(Self::Here { approvals, runtime })
            }
        }
    }

    pub(super) fn page(
        &self,
        status: Option<ApprovalStatus>,
        (token, limit): (Option<&str>, u32),
    ) -> Result<ApprovalPage, CliError> {
        match self {
            Self::Node(client) => {
                let status = status.map_or(String::new(), |status| format!("&status={status}"));
                // A node's page tokens are numbers; other tokens are dropped.
                let token = token.and_then(|token| token.parse::<u64>().ok());
                let token = token.map_or(String::new(), |token| format!("&page_token={token}"));
                let path = format!("/approvals?limit={limit}{status}{token}");
                let told = client.document::<ApprovalListResponse>(&NodeRequest {
                    path: &path,
                    ..NodeRequest::default()
                })?;
                Ok(told.known.page)
            }
            Self::Here { approvals, runtime } => {
                let place = (token.and_then(|token| token.parse().ok()), limit);
                let page = runtime.block_on(approvals.list(status, place, Timestamp::now()))?;
                let next_page_token = page.next.map(|number| number.to_string());
                Ok(ApprovalPage { approvals: page.entries, next_page_token })
            }
        }
    }

    pub(super) fn find(&self, id: &ApprovalId) -> Result<Approval, CliError> {
        match self {
            Self::Node(client) => {
                let path = format!("/approvals/{id}");
                let told = client
                    .document::<ApprovalResponse>(&NodeRequest { path: &path, ..NodeRequest::default() })?;
                Ok(told.known.approval)
            }
            Self::Here { approvals, runtime } => {
                let found = runtime.block_on(approvals.find(id, Timestamp::now()))?;
                Ok(found.ok_or_else(|| ApprovalError::Unknown { id: id.clone() })?)
            }
        }
    }

    pub(super) fn decide(
        &self,
        id: &ApprovalId,
        OperatorDecision { ruling, reason, digest }: OperatorDecision,
    ) -> Result<Approval, CliError> {
        match (self, ruling, reason) {
            (Self::Node(client), Ruling::Deny, Some(reason)) => {
                let request = DenyRequest { version: ApiVersion, reason, arguments_sha256: digest };
                post(client, &format!("/approvals/{id}:deny"), &request)
            }
            (Self::Node(client), Ruling::Approve, reason) => {
                let request = ApproveRequest { version: ApiVersion, reason, arguments_sha256: digest };
                post(client, &format!("/approvals/{id}:approve"), &request)
            }
            (Self::Node(_), Ruling::Deny, None) => Err(ApprovalError::Reason.into()),
            (Self::Here { approvals, runtime }, ruling, reason) => {
                let by = whoever_runs_this()?;
                let answer = ApprovalDecision { ruling, by, reason, arguments_sha256: digest };
                Ok(runtime.block_on(approvals.decide(id, answer, Timestamp::now()))?)
            }
        }
    }
}

fn post(client: &Client, path: &str, request: &impl Serialize) -> Result<Approval, CliError> {
    let body = serde_json::to_vec(request).map_err(|error| CliError::output(error.into()))?;
    let ask = NodeRequest { is_post: true, path, body: Some(&body), ..NodeRequest::default() };
    Ok(client.document::<ApprovalResponse>(&ask)?.known.approval)
}
