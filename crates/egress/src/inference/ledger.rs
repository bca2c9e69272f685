//! Where calls are written down.

use belljar_contract::audit::FoldedRecords;
use belljar_contract::inference::{BegunRecord, BodiesRecord, CallRecord};
use std::pin::Pin;

/// Whether something is on the disk.
pub type Written = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Takes one record for each call, made or refused; and before that, for each that is made, one that it begins.
pub trait Ledger: Send + Sync {
    /// Takes the record of a call that is to be made when this is on the disk, and not at all if it isn't.
    fn begin(&self, record: BegunRecord) -> Written;

    /// Takes a record, without waiting for a disk. What was taken is written down, or the ledger isn't sound any more.
    fn record(&self, record: CallRecord);

    /// Takes the record of calls that were counted instead of being recorded one by one.
    fn record_folded(&self, folded: FoldedRecords) {
        let _ = folded;
    }

    /// Takes what was said in a call, for a run that keeps that.
    fn record_bodies(&self, record: BodiesRecord);

    /// Whether what it takes is written down. If not, no more calls are made.
    fn is_sound(&self) -> bool;

    /// Whether there is room for what calls under way will bring, and for more. While there isn't, no call begins.
    fn has_room(&self) -> bool {
        true
    }
}
