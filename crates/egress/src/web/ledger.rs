//! Where it is written down who was let through.

use crate::inference::ledger::Written;
use belljar_contract::audit::FoldedRecords;
use belljar_contract::egress::{PassageBegun, PassageRecord};

/// Takes one record for each who wanted to get through; and before that, for each who is let, one that they are.
pub trait WebLedger: Send + Sync {
    /// Takes the record of a passage that begins when this is on the disk, and not at all if it isn't.
    fn begin(&self, record: PassageBegun) -> Written;

    /// Takes a record, without waiting for a disk. What was taken is written down, or the ledger isn't sound any more.
    fn record(&self, record: PassageRecord);

    /// Takes note of a record that is not written by itself: it repeats another one, and [`WebLedger::record_folded`] tells how many
    /// did.
    fn count(&self, record: &PassageRecord) {
        let _ = record;
    }

    /// Takes the record of those that were counted.
    fn record_folded(&self, folded: FoldedRecords) {
        let _ = folded;
    }

    /// Whether what it takes is written down. If not, nobody is let through.
    fn is_sound(&self) -> bool;

    /// Notes that records are missing, as the run's proxy could not be ended: the ledger isn't sound any more.
    fn lose(&self) {}
}
