//! Sums up a run's web usage, from records on their way into the journal.

use super::begun_requests::{RequestsInProgress, Verdict};
use belljar_contract::audit::FoldedRecords;
use belljar_contract::egress::{
    DeniedDestination, ProxiedRequestRecord, ProxiedRequestStartRecord, WebUsage,
};
use belljar_egress::inference::ledger::WriteConfirmation;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::run::{Denial, Denials};
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A ledger that sums up records and passes them to another ledger.
pub struct SummingLedger {
    ledger: Arc<dyn WebLedger>,
    begun: RequestsInProgress,
    notes: Mutex<LedgerSums>,
}

/// Web usage of a run, and the times of its denials.
#[derive(Debug, Clone, Default)]
pub struct WebTotals {
    /// The reported usage.
    pub usage: WebUsage,
    /// Time of the last request to each destination in `denied`.
    last_denied_at: Vec<Timestamp>,
}

#[derive(Debug, Default)]
struct LedgerSums {
    passages: u64,
    sent_bytes: u64,
    received_bytes: u64,
}

// === impl SummingLedger ===

impl SummingLedger {
    /// Creates a ledger that passes records to this one.
    pub fn of(ledger: Arc<dyn WebLedger>) -> Self {
        Self { ledger, begun: RequestsInProgress::default(), notes: Mutex::default() }
    }

    /// Returns the usage so far, with these denials.
    pub fn seen(&self, denials: Denials) -> WebTotals {
        let Denials { listed, unlisted } = denials;
        let notes = self.locked();
        let last_denied_at = listed.iter().map(|denial| denial.last_at).collect();
        let usage = WebUsage {
            passages: notes.passages,
            sent_bytes: notes.sent_bytes,
            received_bytes: notes.received_bytes,
            denied: listed.into_iter().map(told).collect(),
            denied_unlisted: unlisted,
        };
        WebTotals { usage, last_denied_at }
    }

    fn locked(&self) -> MutexGuard<'_, LedgerSums> {
        // Ignores poisoning: each change is complete.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebLedger for SummingLedger {
    fn begin(&self, record: ProxiedRequestStartRecord) -> WriteConfirmation {
        self.begun.begin(&record);
        self.ledger.begin(record)
    }

    fn record(&self, record: ProxiedRequestRecord) {
        let verdict = self.begun.end(&record);
        self.locked().note(&record, verdict);
        self.ledger.record(record);
    }

    fn count(&self, record: &ProxiedRequestRecord) {
        let verdict = self.begun.end(record);
        self.locked().note(record, verdict);
        self.ledger.count(record);
    }

    fn record_folded(&self, folded: FoldedRecords) {
        self.ledger.record_folded(folded);
    }

    fn is_sound(&self) -> bool {
        self.ledger.is_sound()
    }

    fn lose(&self) {
        self.ledger.lose();
    }
}

fn told(denial: Denial) -> DeniedDestination {
    let Denial { destination, reason, needed, last_at: _ } = denial;
    let (host, port) = (destination.host.to_string(), destination.port);
    DeniedDestination { host, port, reason: reason.to_owned(), rule_needed: needed }
}

// === impl LedgerSums ===

impl LedgerSums {
    fn note(&mut self, record: &ProxiedRequestRecord, verdict: Verdict) {
        self.sent_bytes = self.sent_bytes.saturating_add(record.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(record.received_bytes);
        if verdict == Verdict::LetThrough {
            self.passages += 1;
        }
    }
}

// === impl WebTotals ===

impl WebTotals {
    /// Returns the destinations that were denied from that time on.
    pub fn denied_since(&self, began: Timestamp) -> Vec<&DeniedDestination> {
        let all = self.usage.denied.iter().zip(&self.last_denied_at);
        all.filter(|(_, at)| **at >= began).map(|(denied, _)| denied).collect()
    }
}
