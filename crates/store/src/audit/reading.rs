//! Reading a log, record by record.

use super::error::AuditError;
use super::record::Record;
use super::snapshot::Snapshot;
use std::path::Path;

/// Shows every record with its line, in order; their hashes and signatures are checked on the way. Nothing is shown
/// that was never acknowledged.
///
/// # Errors
/// [`AuditError`] when the log can't be read, or is damaged: what comes before that has been shown.
pub fn each(folder: &Path, see: &mut dyn FnMut(&Record<'_>, &[u8])) -> Result<(), AuditError> {
    let snapshot = Snapshot::take(folder)?;
    snapshot.each(&mut |record, seen| {
        see(record, seen.line);
        Ok(())
    })?;
    Ok(())
}
