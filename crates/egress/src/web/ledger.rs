//! Audit records of requests and tunnels.

use crate::inference::ledger::WriteConfirmation;
use belljar_contract::audit::FoldedRecords;
use belljar_contract::egress::{ProxiedRequestRecord, ProxiedRequestStartRecord};

/// Takes one record of each request or tunnel; and for an allowed one another record before it begins.
pub trait WebLedger: Send + Sync {
    /// Takes the record of an allowed request or tunnel. It begins once the record is on the disk, and not at all if writing
    /// fails.
    fn begin(&self, record: ProxiedRequestStartRecord) -> WriteConfirmation;

    /// Takes a record without waiting for the disk. Either it is written, or the ledger stops being sound.
    fn record(&self, record: ProxiedRequestRecord);

    /// Counts a record that is not written by itself because it repeats another one. [`WebLedger::record_folded`] reports how
    /// many did.
    fn count(&self, record: &ProxiedRequestRecord) {
        let _ = record;
    }

    /// Takes the record that stands for the counted ones.
    fn record_folded(&self, folded: FoldedRecords) {
        let _ = folded;
    }

    /// Returns true if records are written. If not, nothing is allowed.
    fn is_sound(&self) -> bool;

    /// Notes that records are missing, because the run's proxy could not be stopped: the ledger isn't sound any more.
    fn lose(&self) {}
}
