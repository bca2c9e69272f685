//! What one run may reach, and what it was denied.

use super::asked_names::AskedNames;
use super::authority::Authority;
use super::ledger::WebLedger;
use super::limits::WebLimits;
use super::live::LivePolicy;
use crate::audit_quota::AuditQuota;
use belljar_contract::id::RunId;
use belljar_policy::egress::{Denied, Destination};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run, as its proxy knows it. Which run asks is known by the socket that it comes in by.
pub struct WebRun {
    /// Which.
    pub run_id: RunId,
    /// What it may reach.
    pub policy: Arc<LivePolicy>,
    /// How much, and for how long.
    pub limits: WebLimits,
    /// Where it is written down.
    pub ledger: Arc<dyn WebLedger>,
    /// Who shows itself to the run for others, where rules have connections looked into.
    pub(super) authority: Option<Arc<Authority>>,
    pub(super) asked_names: AskedNames,
    /// How much is recorded of it.
    pub(super) audit: AuditQuota,
    spent: Spent,
    denials: Mutex<Denials>,
}

/// What was denied to a run, for whoever tells of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Denials {
    /// Each destination once, in the order in which they were asked for.
    pub listed: Vec<Denial>,
    /// How many more there were.
    pub unlisted: u64,
}

/// Something that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Where somebody wanted to get to.
    pub destination: Destination,
    /// Why not: a stable code.
    pub reason: &'static str,
    /// The smallest rule that would allow it; nothing where no rule would.
    pub needed: Option<String>,
}

/// Bytes, both ways.
#[derive(Debug, Default)]
struct Spent {
    sent: AtomicU64,
    received: AtomicU64,
}

/// So many destinations are listed.
const MOST_LISTED: usize = 100;

// === impl WebRun ===

impl WebRun {
    /// A run that has reached nothing yet.
    pub fn new(
        run_id: RunId,
        policy: Arc<LivePolicy>,
        limits: WebLimits,
        ledger: Arc<dyn WebLedger>,
    ) -> Self {
        let (asked_names, spent, denials) = (AskedNames::default(), Spent::default(), Mutex::default());
        let audit = AuditQuota::new(limits.audit);
        Self { run_id, policy, limits, ledger, authority: None, asked_names, audit, spent, denials }
    }

    /// Has connections looked into, where rules want it, as this authority: the run trusts it.
    #[must_use]
    pub fn inspecting_as(self, authority: Arc<Authority>) -> Self {
        Self { authority: Some(authority), ..self }
    }

    /// Has records that were only counted so far written as one. Called when the run has ended.
    pub fn flush_audit(&self) {
        if let Some(folded) = self.audit.flush(&self.run_id) {
            self.ledger.record_folded(folded);
        }
    }

    /// What it was denied so far.
    pub fn denials(&self) -> Denials {
        self.locked().clone()
    }

    pub(crate) fn deny(&self, denied: &Denied) {
        let mut denials = self.locked();
        if denials.listed.iter().any(|denial| denial.destination == denied.destination) {
            return;
        }
        if denials.listed.len() >= MOST_LISTED {
            denials.unlisted += 1;
            return;
        }
        let needed = denied.needed().map(str::to_owned);
        let (destination, reason) = (denied.destination.clone(), denied.reason.code());
        denials.listed.push(Denial { destination, reason, needed });
    }

    /// Counts bytes; whether there may be more.
    pub(crate) fn may_send(&self, bytes: u64) -> bool {
        self.spent.sent.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.limits.bytes
    }

    /// The same the other way.
    pub(crate) fn may_receive(&self, bytes: u64) -> bool {
        self.spent.received.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.limits.bytes
    }

    fn locked(&self) -> MutexGuard<'_, Denials> {
        // Nothing in there is ever half done.
        self.denials.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
