//! Models and budget of one run.

use super::budget::Budget;
use super::exchange;
use super::ledger::Ledger;
use super::models::Models;
use crate::http1::limits::Times;
use crate::identity::Identity;
use crate::memory_quota::MemoryQuota;
use crate::proxy::{ConnectionFuture, Service};
use crate::rate_limit::RateLimit;
use crate::upstream::Pool;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpStream, UnixStream};

/// One run, as its proxy sees it. The socket of a connection identifies the run.
pub struct Run {
    /// Identity of the run for billing.
    pub identity: Identity,
    /// Models that the run may use.
    pub models: Models,
    /// Budget for them.
    pub budget: Budget,
    /// Time limits.
    pub times: Times,
    /// True if the bodies of calls are recorded.
    pub keeps_bodies: bool,
    /// Ledger for audit records.
    pub ledger: Arc<dyn Ledger>,
}

/// State that all connections of a run share.
pub(crate) struct InferenceProxy {
    pub(crate) run: Arc<Run>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) room: MemoryQuota,
    pub(crate) pace: RateLimit,
}

// === impl Run ===

impl Run {
    /// Writes the calls that were only counted so far as one record. Called when the run has ended.
    pub fn flush_audit(&self) {
        if let Some(folded) = self.budget.audit.flush(&self.identity.run_id) {
            self.ledger.record_folded(folded);
        }
    }
}

// === impl InferenceProxy ===

impl InferenceProxy {
    pub(crate) fn new(run: Arc<Run>, pool: Rc<Pool>) -> Self {
        Self { run, pool, room: MemoryQuota::new(), pace: RateLimit::new() }
    }
}

impl Service for InferenceProxy {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> ConnectionFuture {
        Box::pin(async move { exchange::serve(stream, &self).await })
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> ConnectionFuture {
        Box::pin(async move { exchange::serve(stream, &self).await })
    }
}
