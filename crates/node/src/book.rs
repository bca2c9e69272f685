//! The book of one run: its calls of models and what else is to be remembered of it, each written into the audit.

use belljar_contract::audit::{FOLDED, FoldedRecords};
use belljar_contract::egress::{self, PassageBegun, PassageRecord};
use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{BEGUN, BODIES, BegunRecord, BodiesRecord, CALL, CallRecord};
use belljar_contract::usage::{UsageReport, UsageSums, UsageTotals};
use belljar_egress::inference::ledger::{Ledger, Written};
use belljar_egress::web::ledger::WebLedger;
use belljar_store::audit::{AuditError, AuditLog, Event, EventError, Receipt, folder_in};
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// An open book. What is entered is on the disk when [`Book::close`] has said so.
pub struct Book {
    log: Arc<AuditLog>,
    entries: Arc<Mutex<Entries>>,
    /// As many of its calls it holds, for somebody who asks for them.
    most_calls: usize,
}

/// What a book holds of its run's calls.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    /// Calls, in the order in which they ended.
    pub listed: Vec<CallRecord>,
    /// How many more are in the audit alone: a program may make calls faster than anybody would hold them.
    pub unlisted: u64,
}

/// Where a run is in the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Its first record.
    pub first: u64,
    /// Its last one.
    pub last: Receipt,
}

/// Not everything is in the audit.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The audit takes nothing.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Something has no form in which it could be recorded.
    #[error(transparent)]
    Event(#[from] EventError),
    /// An earlier record was lost.
    #[error("not everything that happened could be recorded")]
    Incomplete,
}

#[derive(Debug, Default)]
struct Entries {
    calls: Calls,
    /// Sums of all calls, also of those that are not listed.
    sums: UsageSums,
    /// Calls that have begun and not ended.
    unended: HashSet<CallId>,
    denied: usize,
    /// Records that aren't on the disk yet.
    waiting: usize,
    first: Option<u64>,
    last: Option<Receipt>,
    is_broken: bool,
}

/// Calls that reached a provider; each is a line of a bill.
const MOST_CALLS: usize = 100_000;

/// Calls that were refused here, which cost nothing to make.
const MOST_DENIED: usize = 1_000;

/// Records that may wait for the disk before calls do: a part of those that the audit takes, for calls that are under way
/// already and others who write there.
const MOST_WAITING: usize = 4_096;

// === impl Book ===

impl Book {
    /// Opens the audit of a state directory. This starts a thread.
    ///
    /// # Errors
    /// [`BookError`] when it can't be opened, or takes no records.
    pub fn open(state: &Path) -> Result<Self, BookError> {
        let log = Arc::new(AuditLog::open(&folder_in(state))?);
        Ok(Self { log, entries: Arc::default(), most_calls: MOST_CALLS })
    }

    /// One in an audit that is open already, for other runs too. It holds no more calls than that.
    pub fn of(log: &Arc<AuditLog>, most_calls: usize) -> Self {
        Self { log: Arc::clone(log), entries: Arc::default(), most_calls }
    }

    /// Enters something, and waits until it is on the disk.
    ///
    /// # Errors
    /// [`BookError`] when it isn't.
    pub fn enter(
        &self,
        kind: &str,
        run: Option<&RunId>,
        event: &impl Serialize,
    ) -> Result<Receipt, BookError> {
        let receipt = self.log.append(Event::new(kind, run, event)?)?;
        locked(&self.entries).note(receipt.clone());
        Ok(receipt)
    }

    /// Enters something without waiting for the disk. If it can't be written, nothing is let through any more, and the book is
    /// closed as incomplete.
    pub fn note(&self, kind: &str, run: Option<&RunId>, event: &impl Serialize) {
        self.submit(Event::new(kind, run, event), None);
    }

    /// Notes that records are missing: nothing is let through any more, and the book is closed as incomplete.
    pub fn lose(&self) {
        locked(&self.entries).is_broken = true;
    }

    /// The calls so far, from that one on.
    pub fn calls_from(&self, number: usize) -> Vec<CallRecord> {
        locked(&self.entries).calls.listed.get(number..).unwrap_or_default().to_vec()
    }

    /// Enters something last of all, and gives what the book holds once everything before it is on the disk, too.
    ///
    /// # Errors
    /// [`BookError`] when something isn't.
    pub fn close(
        self: Arc<Self>,
        kind: &str,
        run: Option<&RunId>,
        event: &impl Serialize,
    ) -> Result<Span, BookError> {
        let last = self.enter(kind, run, event)?;
        let entries = locked(&self.entries);
        match entries.is_broken {
            true => Err(BookError::Incomplete),
            false => Ok(Span { first: entries.first.unwrap_or(last.sequence), last }),
        }
    }

    /// What there is of calls.
    pub fn calls(&self) -> Calls {
        locked(&self.entries).calls.clone()
    }

    /// What all calls so far have used together, as their records say it.
    pub fn usage(&self) -> UsageTotals {
        let entries = locked(&self.entries);
        entries.sums.totals(entries.unended.len() as u64)
    }
}

impl Book {
    /// Enters something without waiting for the disk, and lists the call that it is, if it is one.
    fn submit(&self, event: Result<Event, EventError>, call: Option<CallRecord>) {
        call.into_iter().for_each(|call| locked(&self.entries).list(call, self.most_calls));
        match event {
            Ok(event) => self.log.submit(event, self.noted()),
            Err(_) => locked(&self.entries).is_broken = true,
        }
    }

    /// Counts a record that waits for the disk, until it is told what became of it.
    fn noted(&self) -> impl FnOnce(Result<Receipt, AuditError>) + Send + use<> {
        locked(&self.entries).waiting += 1;
        let entries = Arc::clone(&self.entries);
        move |written| {
            let mut entries = locked(&entries);
            entries.waiting -= 1;
            match written {
                Ok(receipt) => entries.note(receipt),
                Err(_) => entries.is_broken = true,
            }
        }
    }
}

impl Book {
    /// Enters that something begins; whether that is on the disk.
    fn begin(&self, event: Result<Event, EventError>) -> Written {
        let (done, written) = oneshot::channel();
        match event {
            Ok(event) => {
                let noted = self.noted();
                self.log.submit_urgent(event, move |outcome| {
                    // Who has given it up doesn't wait for it any more.
                    let _ = done.send(outcome.is_ok());
                    noted(outcome);
                });
            }
            Err(_) => locked(&self.entries).is_broken = true,
        }
        Box::pin(async { written.await.unwrap_or(false) })
    }
}

impl Ledger for Book {
    fn begin(&self, record: BegunRecord) -> Written {
        locked(&self.entries).unended.insert(record.call_id.clone());
        Self::begin(self, Event::new(BEGUN, Some(&record.run_id), &record))
    }

    fn record(&self, record: CallRecord) {
        let event = Event::new(CALL, Some(&record.run_id), &record);
        self.submit(event, Some(record));
    }

    fn record_folded(&self, folded: FoldedRecords) {
        self.submit(Event::new(FOLDED, Some(&folded.run_id), &folded), None);
    }

    fn record_bodies(&self, record: BodiesRecord) {
        self.submit(Event::new(BODIES, Some(&record.run_id), &record), None);
    }

    fn is_sound(&self) -> bool {
        !locked(&self.entries).is_broken
    }

    fn has_room(&self) -> bool {
        locked(&self.entries).waiting < MOST_WAITING
    }
}

impl WebLedger for Book {
    fn begin(&self, record: PassageBegun) -> Written {
        Self::begin(self, Event::new(egress::BEGUN, Some(&record.run_id), &record))
    }

    fn record(&self, record: PassageRecord) {
        self.submit(Event::new(egress::ENDED, Some(&record.run_id), &record), None);
    }

    fn record_folded(&self, folded: FoldedRecords) {
        Ledger::record_folded(self, folded);
    }

    fn is_sound(&self) -> bool {
        let entries = locked(&self.entries);
        !entries.is_broken && entries.waiting < MOST_WAITING
    }

    fn lose(&self) {
        Self::lose(self);
    }
}

// === impl Entries ===

impl Entries {
    fn note(&mut self, receipt: Receipt) {
        self.first.get_or_insert(receipt.sequence);
        self.last = Some(receipt);
    }

    fn list(&mut self, record: CallRecord, most: usize) {
        self.unended.remove(&record.call_id);
        UsageReport::of(&record).iter().for_each(|report| self.sums.add(report));
        let was_asked = record.provider.is_some();
        let has_room = match was_asked {
            true => self.calls.listed.len() - self.denied < most,
            false => self.denied < most.min(MOST_DENIED),
        };
        if !has_room {
            self.calls.unlisted += 1;
            return;
        }
        self.denied += usize::from(!was_asked);
        self.calls.listed.push(record);
    }
}

/// Nothing in there is ever half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
