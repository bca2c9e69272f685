//! Reading a log, record by record.

use super::error::AuditError;
use super::record::Record;
use super::snapshot::Snapshot;
use std::path::Path;

/// Passes every record with its line to `see`, in order; hashes and signatures are checked on the way. Records that
/// were never acknowledged are not passed.
///
/// # Errors
/// [`AuditError`] when the log can't be read, or is damaged: the records before the fault have been passed.
pub fn each(folder: &Path, see: &mut dyn FnMut(&Record<'_>, &[u8])) -> Result<(), AuditError> {
    let snapshot = Snapshot::take(folder)?;
    snapshot.each(&mut |record, seen| {
        see(record, seen.line);
        Ok(())
    })?;
    Ok(())
}
