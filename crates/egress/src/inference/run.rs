//! What one run may have of models, and what it has had.

use super::budget::Budget;
use super::exchange;
use super::ledger::Ledger;
use super::models::Models;
use crate::http1::limits::Times;
use crate::identity::Identity;
use crate::pace::Pace;
use crate::proxy::{Answering, Service};
use crate::room::Room;
use crate::upstream::Pool;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::{TcpStream, UnixStream};

/// A run, as its proxy knows it. Which run calls is known by the socket that the call comes in by.
pub struct Run {
    /// Who it is for those who bill it.
    pub identity: Identity,
    /// The models that it may use.
    pub models: Models,
    /// How much of them.
    pub budget: Budget,
    /// How long anything is waited for.
    pub times: Times,
    /// Whether what is said in calls is written down, too.
    pub keeps_bodies: bool,
    /// Where its calls are written down.
    pub ledger: Arc<dyn Ledger>,
}

/// What all connections of a run share.
pub(crate) struct Served {
    pub(crate) run: Arc<Run>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) room: Room,
    pub(crate) pace: Pace,
}

// === impl Run ===

impl Run {
    /// Has calls that were only counted so far recorded as one. Called when the run has ended.
    pub fn flush_audit(&self) {
        if let Some(folded) = self.budget.audit.flush(&self.identity.run_id) {
            self.ledger.record_folded(folded);
        }
    }
}

// === impl Served ===

impl Served {
    pub(crate) fn new(run: Arc<Run>, pool: Rc<Pool>) -> Self {
        Self { run, pool, room: Room::new(), pace: Pace::new() }
    }
}

impl Service for Served {
    fn tcp(self: Rc<Self>, stream: TcpStream) -> Answering {
        Box::pin(async move { exchange::serve(stream, &self).await })
    }

    fn local(self: Rc<Self>, stream: UnixStream) -> Answering {
        Box::pin(async move { exchange::serve(stream, &self).await })
    }
}
