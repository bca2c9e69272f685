//! The approver of the gateway: stores the approvals that calls wait for in a database. The timeout comes from the access
//! rules.

use crate::daemon::WallClock;
use belljar_contract::id::ApprovalId;
use belljar_gateway::access::{Approver, ApproverError, ExactCall};
use belljar_policy::approval::{Expiry, TimeoutPolicy};
use belljar_store::approvals::{ApprovalError, ApprovalRequest, Approvals, CallKey};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use uuid::Uuid;

/// Keeps approvals of calls in a database.
pub struct StoredApprover {
    approvals: Approvals,
    timeout: TimeoutPolicy,
    clock: WallClock,
}

// === impl StoredApprover ===

impl StoredApprover {
    /// Returns an approver that stores approvals in that database, with those timeouts.
    pub fn new(approvals: Approvals, timeout: TimeoutPolicy, clock: WallClock) -> Self {
        Self { approvals, timeout, clock }
    }

    async fn asked(&self, call: &ExactCall) -> Result<Uuid, ApproverError> {
        let question = ApprovalRequest {
            id: ApprovalId::from_uuid(Uuid::now_v7()),
            decision_id: call.decision_id,
            reason: call.reason.clone(),
            arguments: call.arguments.clone(),
            action: call.action.clone(),
            risk: call.risk,
            call: key(call),
        };
        let within = Expiry::of(call.risk, &self.timeout);
        let asked = self.approvals.ask(question, (self.clock)(), within).await;
        asked.map_err(of_store).and_then(|approval| uuid(&approval.id))
    }

    async fn used(&self, call: &ExactCall) -> Result<Option<Uuid>, ApproverError> {
        let used = self.approvals.begin_use(&key(call), (self.clock)()).await.map_err(of_store)?;
        used.as_ref().map(uuid).transpose()
    }
}

impl Approver for StoredApprover {
    fn ask<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Uuid, ApproverError>> {
        self.asked(call).boxed()
    }

    fn begin_use<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Option<Uuid>, ApproverError>> {
        self.used(call).boxed()
    }
}

impl fmt::Debug for StoredApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredApprover").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

fn key(call: &ExactCall) -> CallKey {
    CallKey {
        agent_id: call.agent_id.clone(),
        subject: call.subject.clone(),
        tool: call.tool.clone(),
        arguments_sha256: call.arguments_sha256.clone(),
        scope: call.scope.clone(),
    }
}

fn uuid(id: &ApprovalId) -> Result<Uuid, ApproverError> {
    Uuid::parse_str(id.as_str()).map_err(|error| ApproverError::Record(error.into()))
}

fn of_store(error: ApprovalError) -> ApproverError {
    match error {
        ApprovalError::Database(error) => ApproverError::Database(error),
        ApprovalError::Full { bytes } => ApproverError::Full { bytes },
        other => ApproverError::Record(other.into()),
    }
}
