//! Audit records of calls.

use belljar_contract::audit::FoldedRecords;
use belljar_contract::inference::{BodiesRecord, CallRecord, CallStartRecord};
use std::pin::Pin;

/// Future that returns true once a record is on the disk.
pub type WriteConfirmation = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Takes one record of each call, made or refused; and for a call that is made another record before it begins.
pub trait Ledger: Send + Sync {
    /// Takes the record of a call that is about to be made. It is made once the record is on the disk, and not at all if
    /// writing fails.
    fn begin(&self, record: CallStartRecord) -> WriteConfirmation;

    /// Takes a record without waiting for the disk. Either it is written, or the ledger stops being sound.
    fn record(&self, record: CallRecord);

    /// Takes the record of calls that were counted instead of being recorded one by one.
    fn record_folded(&self, folded: FoldedRecords) {
        let _ = folded;
    }

    /// Takes the bodies of a call, for a run that keeps them.
    fn record_bodies(&self, record: BodiesRecord);

    /// Returns true if records are written. If not, no more calls are made.
    fn is_sound(&self) -> bool;

    /// Returns true if there is space for the records of calls under way, and for more. Without it no call begins.
    fn has_room(&self) -> bool {
        true
    }
}
