//! What passes a run's proxy, noted on its way into the book: how much, and when the last denial of each destination was.

use super::begun::{Begun, Verdict};
use belljar_contract::audit::FoldedRecords;
use belljar_contract::egress::{DeniedDestination, PassageBegun, PassageOutcome, PassageRecord, WebUsage};
use belljar_egress::inference::ledger::Written;
use belljar_egress::web::ledger::WebLedger;
use belljar_egress::web::run::{Denial, Denials};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A ledger that notes what another one takes.
pub(crate) struct Noted {
    ledger: Arc<dyn WebLedger>,
    begun: Begun,
    notes: Mutex<Notes>,
}

/// What a run has had of the web, and when it was denied what.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// What is told of it.
    pub usage: WebUsage,
    /// When each of its `denied` was denied for the last time.
    last_denied_at: Vec<Option<Timestamp>>,
}

#[derive(Debug, Default)]
struct Notes {
    passages: u64,
    sent_bytes: u64,
    received_bytes: u64,
    last_denied_at: HashMap<(String, u16), Timestamp>,
}

/// Denials are noted for so many destinations: more than are listed, as they may come in another order.
const MOST_NOTED: usize = 1_000;

// === impl Noted ===

impl Noted {
    pub(crate) fn of(ledger: Arc<dyn WebLedger>) -> Self {
        Self { ledger, begun: Begun::default(), notes: Mutex::default() }
    }

    /// What there has been so far, with what was denied.
    pub(crate) fn seen(&self, denials: Denials) -> Seen {
        let Denials { listed, unlisted } = denials;
        let notes = self.locked();
        let at = |denial: &Denial| {
            let asked = (denial.destination.host.to_string(), denial.destination.port);
            notes.last_denied_at.get(&asked).copied()
        };
        let last_denied_at = listed.iter().map(at).collect();
        let usage = WebUsage {
            passages: notes.passages,
            sent_bytes: notes.sent_bytes,
            received_bytes: notes.received_bytes,
            denied: listed.into_iter().map(told).collect(),
            denied_unlisted: unlisted,
        };
        Seen { usage, last_denied_at }
    }

    fn locked(&self) -> MutexGuard<'_, Notes> {
        // Nothing in there is ever half done.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebLedger for Noted {
    fn begin(&self, record: PassageBegun) -> Written {
        self.begun.begin(&record);
        self.ledger.begin(record)
    }

    fn record(&self, record: PassageRecord) {
        let verdict = self.begun.end(&record);
        self.locked().note(&record, verdict);
        self.ledger.record(record);
    }

    fn count(&self, record: &PassageRecord) {
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
    let Denial { destination, reason, needed } = denial;
    let (host, port) = (destination.host.to_string(), destination.port);
    DeniedDestination { host, port, reason: reason.to_owned(), rule_needed: needed }
}

// === impl Notes ===

impl Notes {
    fn note(&mut self, record: &PassageRecord, verdict: Verdict) {
        self.sent_bytes = self.sent_bytes.saturating_add(record.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(record.received_bytes);
        if verdict == Verdict::LetThrough {
            self.passages += 1;
        }
        let (PassageOutcome::Denied { .. }, Some(asked)) = (&record.outcome, &record.asked) else { return };
        let asked = (asked.host.as_str().to_owned(), asked.port);
        if self.last_denied_at.len() < MOST_NOTED || self.last_denied_at.contains_key(&asked) {
            let last = self.last_denied_at.entry(asked).or_insert(record.started_at);
            *last = record.started_at.max(*last);
        }
    }
}

// === impl Seen ===

impl Seen {
    /// What was denied from then on.
    pub fn denied_since(&self, began: Timestamp) -> Vec<&DeniedDestination> {
        let all = self.usage.denied.iter().zip(&self.last_denied_at);
        all.filter(|(_, at)| at.is_some_and(|at| at >= began)).map(|(denied, _)| denied).collect()
    }
}
