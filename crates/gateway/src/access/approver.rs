//! Who is asked where a person has to say yes.

use belljar_contract::action::{ActionType, Risk};
use belljar_contract::approval::CallScope;
use belljar_contract::id::AgentId;
use belljar_contract::tool::{ToolName, ToolSubject};
use belljar_store::database::DatabaseError;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::fmt::Debug;
use uuid::Uuid;

/// Keeps what people are asked, and what they have answered.
pub trait Approver: Debug + Send + Sync {
    /// Asks for a yes to that call; the same again is the same question. The question's id.
    fn ask<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Uuid, ApproverError>>;

    /// Uses up a yes to exactly that call, if there is one that nobody has used: on the disk before this is back. Its id.
    fn begin_use<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Option<Uuid>, ApproverError>>;
}

/// A call, as exactly as it has to be approved.
#[derive(Debug, Clone)]
pub struct ExactCall {
    /// The decision that a person is asked about.
    pub decision_id: Uuid,
    /// The agent, if it has a name.
    pub agent_id: Option<AgentId>,
    /// Who calls.
    pub subject: ToolSubject,
    /// Which tool.
    pub tool: ToolName,
    /// What is done by it.
    pub action: ActionType,
    /// How much may go wrong by that.
    pub risk: Risk,
    /// The SHA-256 of the arguments.
    pub arguments_sha256: String,
    /// The arguments, whole: a person is shown what would be called.
    pub arguments: Value,
    /// What it acts on besides its arguments.
    pub scope: CallScope,
    /// Why a person is asked.
    pub reason: String,
}

/// It can't be asked or used.
#[derive(Debug, thiserror::Error)]
pub enum ApproverError {
    /// What is kept can't be reached.
    #[error("approvals can't be reached")]
    Database(#[from] DatabaseError),
    /// Too much waits for an answer already.
    #[error(
        "the calls of this agent that wait for an answer have {bytes} bytes of arguments; no more is asked until some are answered"
    )]
    Full {
        /// How much.
        bytes: u64,
    },
    /// It can't be recorded.
    #[error("approvals can't be recorded")]
    Record(#[source] Box<dyn std::error::Error + Send + Sync>),
}
