//! The interface to approvals of calls.

use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::CallScope;
use belljar_contract::id::AgentId;
use belljar_contract::tool::{ToolName, ToolSubject};
use belljar_store::database::DatabaseError;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt::Debug;
use uuid::Uuid;

/// Stores requests for approval, and their decisions.
pub trait Approver: Debug + Send + Sync {
    /// Requests an approval of that call; an equal call has the same request. Returns the request's id.
    fn ask<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Uuid, ApproverError>>;

    /// Consumes an approval of exactly that call, if there is an unused one: this is on the disk before it returns the approval's
    /// id.
    fn begin_use<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Option<Uuid>, ApproverError>>;
}

/// A call, in all details that an approval covers.
#[derive(Debug, Clone)]
pub struct ExactCall {
    /// The decision that the approval is about.
    pub decision_id: Uuid,
    /// The agent, if it has a name.
    pub agent_id: Option<AgentId>,
    /// The caller.
    pub subject: ToolSubject,
    /// The tool.
    pub tool: ToolName,
    /// The action type.
    pub action: ActionType,
    /// The risk of that action.
    pub risk: Risk,
    /// The SHA-256 of the arguments.
    pub arguments_sha256: String,
    /// The complete arguments: the approver sees exactly what would be called.
    pub arguments: Value,
    /// Objects that the call acts on besides its arguments.
    pub scope: CallScope,
    /// The reason why an approval is required.
    pub reason: String,
}

/// Reasons why an approval can't be requested or consumed.
#[derive(Debug, thiserror::Error)]
pub enum ApproverError {
    /// The store of approvals can't be reached.
    #[error("the approval store can't be reached")]
    Database(#[from] DatabaseError),
    /// The agent's pending requests have reached their size limit.
    #[error(
        "pending approval requests of this agent have {bytes} bytes of arguments, the maximum; wait until some are decided"
    )]
    Full {
        /// Size of their arguments.
        bytes: u64,
    },
    /// The request or its use can't be recorded.
    #[error("approvals can't be recorded")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
}
