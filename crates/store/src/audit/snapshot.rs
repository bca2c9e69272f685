//! A snapshot of a log, for reading while other processes go on writing: its records don't change any more.

use super::error::{AuditError, Fault};
use super::folder::{HEAD, KEY, LOCK, LogFolder, LogLock, PUBLIC_KEY};
use super::head::Head;
use super::key::PublicKey;
use super::segment;
use super::torn::TORN;
use super::walk::{CheckpointEnd, RecordVisitor, UncoveredLines, walk};
use std::path::Path;

/// A log at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) folder: LogFolder,
    pub(super) key: PublicKey,
    pub(super) head: Head,
    /// Size of each segment, in bytes.
    sizes: Vec<u64>,
    /// Lock that is held only if the log still contains what a crash left.
    unsettled: Option<LogLock>,
}

// === impl Snapshot ===

impl Snapshot {
    /// Takes a snapshot while no process writes.
    ///
    /// # Errors
    /// [`AuditError::Damaged`] also where a file is missing, or an unexpected file exists.
    pub(super) fn take(path: &Path) -> Result<Self, AuditError> {
        let folder = LogFolder::of_log(path)?;
        let lock = folder.lock_file()?;
        let locked = folder.lock_shared(&lock)?;
        let key = folder.public_key()?;
        folder.secret_key()?;
        let head = Head::parse(&folder.read_small(HEAD)?, &key)
            .map_err(|fault| AuditError::damaged(HEAD, None, fault))?;
        let last = folder.last_segment()?;
        check_names(&folder)?;
        let mut sizes = Vec::new();
        for number in 1..=last {
            let name = segment::name(number);
            let metadata = folder.open_to_read(&name)?.metadata();
            let failed = |error| AuditError::io("read", &folder.path().join(&name), error);
            sizes.push(metadata.map_err(failed)?.len());
        }
        let is_settled =
            head.next == head.done && head.done.segment == last && sizes.last() == Some(&head.done.end);
        Ok(Self { folder, key, head, sizes, unsettled: (!is_settled).then_some(locked) })
    }

    /// Returns true if a process was writing, or may have been.
    pub(super) fn is_unsettled(&self) -> bool {
        self.unsettled.is_some()
    }

    /// Passes every record up to the last checkpoint to `see`; returns the end, and what follows it.
    pub(super) fn each(
        &self,
        see: &mut RecordVisitor<'_>,
    ) -> Result<(CheckpointEnd, Option<UncoveredLines>), AuditError> {
        if !self.is_unsettled() {
            return walk(&self.folder, self.key, CheckpointEnd::BEGIN, &self.sizes, see)?.judged(&self.head);
        }
        let walked = walk(&self.folder, self.key, CheckpointEnd::BEGIN, &self.sizes, &mut |_, _| Ok(()))?;
        let (end, rest) = walked.judged(&self.head)?;
        let mut sizes: Vec<u64> = (1..=end.segment).zip(&self.sizes).map(|(_, size)| *size).collect();
        if let Some(last) = sizes.last_mut() {
            *last = end.end;
        }
        walk(&self.folder, self.key, CheckpointEnd::BEGIN, &sizes, see)?;
        Ok((end, rest))
    }
}

fn check_names(folder: &LogFolder) -> Result<(), AuditError> {
    const KNOWN: [&str; 5] = [KEY, PUBLIC_KEY, LOCK, HEAD, TORN];
    let names = folder.names("")?;
    if let Some(foreign) =
        names.iter().find(|name| !KNOWN.contains(&name.as_str()) && segment::number(name).is_none())
    {
        return Err(AuditError::damaged(foreign, None, Fault::Foreign));
    }
    match folder.read_small(LOCK)?.is_empty() {
        true => Ok(()),
        false => Err(AuditError::damaged(LOCK, None, Fault::Altered)),
    }
}
