//! The journal of one run: its model calls and other events of the run, each written into the audit log; and the usage of recorded calls.

#![forbid(unsafe_code)]

pub mod usage;

use belljar_contract::audit::{FOLDED, FoldedRecords};
use belljar_contract::egress::{self, ProxiedRequestRecord, ProxiedRequestStartRecord};
use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{BEGUN, BODIES, BodiesRecord, CALL, CallRecord, CallStartRecord};
use belljar_contract::usage::{UsageReport, UsageSums, UsageTotals};
use belljar_egress::inference::ledger::{Ledger, WriteConfirmation};
use belljar_egress::web::ledger::WebLedger;
use belljar_store::audit::{AuditError, AuditLog, Event, EventError, Receipt, folder_in};
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// An open journal of a run. Its entries are on the disk once [`RunJournal::close`] has returned `Ok`.
pub struct RunJournal {
    log: Arc<AuditLog>,
    entries: Arc<Mutex<JournalEntries>>,
    /// Maximum number of calls that are held in memory for listing.
    most_calls: usize,
}

/// Model calls of a run that its journal holds.
#[derive(Debug, Clone, Default)]
pub struct ModelCalls {
    /// Calls, in the order in which they ended.
    pub listed: Vec<CallRecord>,
    /// Number of further calls, which are in the audit log only: a program may make more calls than memory could hold.
    pub unlisted: u64,
}

/// Range of a run's records in the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRange {
    /// Its first record.
    pub first: u64,
    /// Its last one.
    pub last: Receipt,
}

/// The audit log is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum RunJournalError {
    /// The audit log accepts no record.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// An event can't be serialized.
    #[error(transparent)]
    Event(#[from] EventError),
    /// An earlier record was lost.
    #[error("not everything that happened could be recorded")]
    Incomplete,
}

#[derive(Debug, Default)]
struct JournalEntries {
    calls: ModelCalls,
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

/// Maximum number of listed calls that reached a provider. Each is a line of a bill.
const MOST_CALLS: usize = 100_000;

/// Maximum number of listed calls that were denied here. Making them costs nothing.
const MOST_DENIED: usize = 1_000;

/// Maximum number of records that may wait for the disk; beyond it, new calls wait. It is a part of what the audit log's
/// queue takes: the rest is for calls that are under way already and for other writers.
const MOST_WAITING: usize = 4_096;

// === impl RunJournal ===

impl RunJournal {
    /// Opens the audit log of a state directory. This starts a thread.
    ///
    /// # Errors
    /// [`RunJournalError`] when it can't be opened, or takes no records.
    pub fn open(state: &Path) -> Result<Self, RunJournalError> {
        let log = Arc::new(AuditLog::open(&folder_in(state))?);
        Ok(Self { log, entries: Arc::default(), most_calls: MOST_CALLS })
    }

    /// Returns a journal in an audit log that is open already, for several runs. It lists at most `most_calls` calls.
    pub fn of(log: &Arc<AuditLog>, most_calls: usize) -> Self {
        Self { log: Arc::clone(log), entries: Arc::default(), most_calls }
    }

    /// Enters an event, and waits until it is on the disk.
    ///
    /// # Errors
    /// [`RunJournalError`] when it can't be written.
    pub fn enter(
        &self,
        kind: &str,
        run: Option<&RunId>,
        event: &impl Serialize,
    ) -> Result<Receipt, RunJournalError> {
        let receipt = self.log.append(Event::new(kind, run, event)?)?;
        locked(&self.entries).note(receipt.clone());
        Ok(receipt)
    }

    /// Enters an event without waiting for the disk. If it can't be written, no further call is admitted, and the journal is
    /// closed as incomplete.
    pub fn note(&self, kind: &str, run: Option<&RunId>, event: &impl Serialize) {
        self.submit(Event::new(kind, run, event), None);
    }

    /// Notes that records are missing: no further call is admitted, and the journal is closed as incomplete.
    pub fn lose(&self) {
        locked(&self.entries).is_broken = true;
    }

    /// The calls so far, from that index on.
    pub fn calls_from(&self, number: usize) -> Vec<CallRecord> {
        locked(&self.entries).calls.listed.get(number..).unwrap_or_default().to_vec()
    }

    /// Enters the last event, and returns the run's range of records once everything is on the disk.
    ///
    /// # Errors
    /// [`RunJournalError`] when a record of the run could not be written.
    pub fn close(
        self: Arc<Self>,
        kind: &str,
        run: Option<&RunId>,
        event: &impl Serialize,
    ) -> Result<AuditRange, RunJournalError> {
        let last = self.enter(kind, run, event)?;
        let entries = locked(&self.entries);
        match entries.is_broken {
            true => Err(RunJournalError::Incomplete),
            false => Ok(AuditRange { first: entries.first.unwrap_or(last.sequence), last }),
        }
    }

    /// Returns the calls so far.
    pub fn calls(&self) -> ModelCalls {
        locked(&self.entries).calls.clone()
    }

    /// Returns the usage of all calls so far, summed up from their records.
    pub fn usage(&self) -> UsageTotals {
        let entries = locked(&self.entries);
        entries.sums.totals(entries.unended.len() as u64)
    }
}

impl RunJournal {
    /// Enters an event without waiting for the disk, and lists the call if there is one.
    fn submit(&self, event: Result<Event, EventError>, call: Option<CallRecord>) {
        call.into_iter().for_each(|call| locked(&self.entries).list(call, self.most_calls));
        match event {
            Ok(event) => self.log.submit(event, self.noted()),
            Err(_) => locked(&self.entries).is_broken = true,
        }
    }

    /// Counts a record that waits for the disk, until its outcome is reported.
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

impl RunJournal {
    /// Enters the begin of a call; resolves to true once it is on the disk.
    fn begin(&self, event: Result<Event, EventError>) -> WriteConfirmation {
        let (done, written) = oneshot::channel();
        match event {
            Ok(event) => {
                let noted = self.noted();
                self.log.submit_urgent(event, move |outcome| {
                    // The receiver is gone if the caller has given up.
                    let _ = done.send(outcome.is_ok());
                    noted(outcome);
                });
            }
            Err(_) => locked(&self.entries).is_broken = true,
        }
        Box::pin(async { written.await.unwrap_or(false) })
    }
}

impl Ledger for RunJournal {
    fn begin(&self, record: CallStartRecord) -> WriteConfirmation {
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

impl WebLedger for RunJournal {
    fn begin(&self, record: ProxiedRequestStartRecord) -> WriteConfirmation {
        Self::begin(self, Event::new(egress::BEGUN, Some(&record.run_id), &record))
    }

    fn record(&self, record: ProxiedRequestRecord) {
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

// === impl JournalEntries ===

impl JournalEntries {
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

/// Ignores poisoning: each change of the entries is complete.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
