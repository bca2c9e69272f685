//! Audit records of git: the begin of each fetch and push before it is sent, and its end.

use belljar_contract::git::{
    FETCH, FETCH_BEGUN, FetchRecord, FetchStartRecord, PUSH, PUSH_BEGUN, PushRecord, PushStartRecord,
};
use belljar_journal::{RunJournal, RunJournalError};
use std::path::Path;

/// The audit log, opened for each record: a process that makes a sandbox afterwards must be single-threaded.
pub(crate) struct Journal<'j> {
    state: &'j Path,
}

// === impl Journal ===

impl<'j> Journal<'j> {
    pub(crate) fn of(state: &'j Path) -> Self {
        Self { state }
    }

    pub(crate) fn fetch_begun(&self, record: &FetchStartRecord) -> Result<(), RunJournalError> {
        RunJournal::open(self.state)?.enter(FETCH_BEGUN, record.run_id.as_ref(), record).map(|_| ())
    }

    pub(crate) fn fetched(&self, record: &FetchRecord) -> Result<(), RunJournalError> {
        RunJournal::open(self.state)?.enter(FETCH, record.run_id.as_ref(), record).map(|_| ())
    }

    pub(crate) fn push_begun(&self, record: &PushStartRecord) -> Result<(), RunJournalError> {
        RunJournal::open(self.state)?.enter(PUSH_BEGUN, record.run_id.as_ref(), record).map(|_| ())
    }

    pub(crate) fn pushed(&self, record: &PushRecord) -> Result<(), RunJournalError> {
        RunJournal::open(self.state)?.enter(PUSH, record.run_id.as_ref(), record).map(|_| ())
    }
}
