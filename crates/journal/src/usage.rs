//! Usage of runs, summed up from the records of their calls and reconciled with the providers' bills.

#[cfg(test)]
pub(crate) mod example;
pub mod reconcile;

use belljar_contract::id::{CallId, RunId};
use belljar_contract::inference::{CallOutcome, CallRecord, CallStartRecord, Excerpt};
use belljar_contract::usage::{UsageReport, UsageSums, UsageTotals};
use jiff::Timestamp;
use std::collections::{BTreeSet, HashSet};

/// Recorded calls, and their usage reports.
#[derive(Debug, Clone, Default)]
pub struct RecordedCalls {
    reports: Vec<UsageReport>,
    /// Calls that may have reached a provider, but have no report.
    unreported: HashSet<CallId>,
    /// Calls that have begun without a recorded end: their node was gone, or they are still under way.
    unended: HashSet<CallId>,
    /// Every run, also one whose calls were all denied.
    runs: BTreeSet<RunId>,
    accounts: BTreeSet<String>,
    seen: HashSet<CallId>,
    time: Option<(Timestamp, Timestamp)>,
}

// === impl RecordedCalls ===

impl RecordedCalls {
    /// Adds a call that has begun.
    pub fn begin(&mut self, call: &CallStartRecord) {
        if !self.seen.contains(&call.call_id) {
            self.unended.insert(call.call_id.clone());
        }
        self.note((&call.run_id, &call.billing_account_id), (call.started_at, call.started_at));
    }

    /// Adds a call that is over. Duplicates are ignored.
    pub fn add(&mut self, call: &CallRecord) {
        if !self.seen.insert(call.call_id.clone()) {
            return;
        }
        self.unended.remove(&call.call_id);
        self.note((&call.run_id, &call.billing_account_id), (call.started_at, call.ended_at()));
        let was_denied = matches!(call.outcome, CallOutcome::Denied { .. });
        match UsageReport::of(call) {
            Some(report) => self.reports.push(report),
            None if call.provider_kind.is_some() && !was_denied => {
                self.unreported.insert(call.call_id.clone());
            }
            None => {}
        }
    }

    fn note(&mut self, (run, account): (&RunId, &Excerpt), (begin, end): (Timestamp, Timestamp)) {
        self.runs.insert(run.clone());
        self.accounts.insert(account.as_str().to_owned());
        let (first, last) = self.time.unwrap_or((begin, end));
        self.time = Some((first.min(begin), last.max(end)));
    }

    /// Returns true if a call may have reached a provider, but has no report.
    fn may_be_billed(&self, call: &CallId) -> bool {
        self.unreported.contains(call) || self.unended.contains(call)
    }

    /// Returns true if there are no calls at all, not even denied or unfinished ones.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns a report for each call that has one, in the order of recording.
    pub fn reports(&self) -> &[UsageReport] {
        &self.reports
    }

    /// Returns when the first call began and the last one ended.
    pub fn time(&self) -> Option<(Timestamp, Timestamp)> {
        self.time
    }

    /// Returns the billing accounts of all calls, also of those without a report.
    pub fn accounts(&self) -> &BTreeSet<String> {
        &self.accounts
    }

    /// Returns their sums.
    pub fn totals(&self) -> UsageTotals {
        self.reports.iter().collect::<UsageSums>().totals(self.unended.len() as u64)
    }
}

impl<'c> FromIterator<&'c CallRecord> for RecordedCalls {
    fn from_iter<I: IntoIterator<Item = &'c CallRecord>>(records: I) -> Self {
        let mut calls = Self::default();
        records.into_iter().for_each(|record| calls.add(record));
        calls
    }
}
