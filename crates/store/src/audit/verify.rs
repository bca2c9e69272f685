//! Verification of a log: no record was edited, removed, added, moved or duplicated, at any position.
//!
//! The log alone can't show that it was replaced by an older copy of itself, or by one that was signed with another key
//! or with a stolen copy of this one, truncated copies included. Facts kept elsewhere can ([`VerifyRequirements`]): the key, a
//! record's hash, and the checkpoints in anchors.

use super::anchor::{AnchorEvidence, ConfirmedRange, EvidenceComparison};
use super::checkpoint;
use super::error::{AuditError, Fault, Finding};
use super::event::OWN_KINDS;
use super::folder::{HEAD, PUBLIC_KEY};
use super::hash::Hash;
use super::head::CheckpointMark;
use super::key::PublicKey;
use super::record::Record;
use super::segment;
use super::snapshot::Snapshot;
use super::torn::{self, TornTail};
use super::walk::RecordPosition;
use std::path::Path;

/// Facts about a log that are known from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct VerifyRequirements {
    /// The key that signs it.
    pub key: Option<PublicKey>,
    /// Records that must be in it.
    pub anchors: Vec<KnownRecord>,
    /// Checkpoints that it must agree with.
    pub evidence: AnchorEvidence,
}

/// A record and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownRecord {
    /// Its number.
    pub sequence: u64,
    /// Its hash, which covers everything before it, too.
    pub hash: Hash,
}

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is as it was written.
    Intact(Box<LogExtent>),
    /// A record or file isn't; this is the first fault.
    Broken(Finding),
}

/// Contents of a log, or of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogExtent {
    /// The key that signs it.
    pub key: PublicKey,
    /// The records of what was submitted.
    pub records: u64,
    /// The records of the log itself: its checkpoints, its beginning, what crashes have left.
    pub own_records: u64,
    /// The records that an export has left out.
    pub omitted: u64,
    /// The last record, to be kept elsewhere.
    pub last: KnownRecord,
    /// Number of times that a crash has left a partial batch that was never acknowledged.
    pub torn_tails: u64,
    /// True if a crash has left a partial batch that is still in place. The next process that opens the log moves it
    /// aside.
    pub has_leftover: bool,
    /// Part that anchors confirm; `None` if none was read.
    pub vouched: Option<ConfirmedRange>,
}

/// Verifies a whole log, also while other processes write to it.
///
/// # Errors
/// [`AuditError`] when it can't be read. A fault in it is a [`Verdict`].
pub fn verify(folder: &Path, demands: &VerifyRequirements) -> Result<Verdict, AuditError> {
    verdict(inspect(folder, demands))
}

pub(super) fn verdict(inspected: Result<LogExtent, AuditError>) -> Result<Verdict, AuditError> {
    match inspected {
        Ok(extent) => Ok(Verdict::Intact(Box::new(extent))),
        Err(AuditError::Damaged { finding }) => Ok(Verdict::Broken(finding)),
        Err(error) => Err(error),
    }
}

fn inspect(folder: &Path, demands: &VerifyRequirements) -> Result<LogExtent, AuditError> {
    let snapshot = Snapshot::take(folder)?;
    demands.accept(snapshot.key, PUBLIC_KEY)?;
    let mut count = RecordCount::new(snapshot.key, demands);
    let mut told = Vec::new();
    let (end, rest) = snapshot.each(&mut |record, seen| {
        count.see(record, &segment::name(seen.segment), demands)?;
        for mark in [&snapshot.head.done, &snapshot.head.next] {
            must_be_marked_right(mark, record, seen)?;
        }
        if record.kind == torn::KIND {
            let tail: TornTail = serde_json::from_str(record.event).map_err(|_| {
                AuditError::damaged(segment::name(seen.segment), Some(record.sequence), Fault::Malformed)
            })?;
            told.push(tail);
        }
        Ok(())
    })?;
    let open = snapshot.is_unsettled().then_some(end.position.sequence + 1);
    torn::check(&snapshot.folder, &told, open)?;
    let extent = LogExtent { torn_tails: told.len() as u64, has_leftover: rest.is_some(), ..count.extent };
    let last_segment = segment::name(end.segment);
    demands.met_by(&extent, 1, &last_segment)?;
    let vouched = count.comparison.map(|comparison| comparison.end(extent.last.sequence, &last_segment));
    Ok(LogExtent { vouched: vouched.transpose()?, ..extent })
}

fn must_be_marked_right(
    mark: &CheckpointMark,
    record: &Record<'_>,
    seen: RecordPosition<'_>,
) -> Result<(), AuditError> {
    let is_right = (mark.segment, mark.end, mark.line.as_slice()) == (seen.segment, seen.end, seen.line);
    match mark.position.sequence == record.sequence && !is_right {
        true => Err(AuditError::damaged(HEAD, Some(record.sequence), Fault::Altered)),
        false => Ok(()),
    }
}

/// Counts the records.
#[derive(Debug)]
pub(super) struct RecordCount {
    pub(super) extent: LogExtent,
    /// Comparison with the anchors, if any was read.
    pub(super) comparison: Option<EvidenceComparison>,
}

// === impl RecordCount ===

impl RecordCount {
    pub(super) fn new(key: PublicKey, demands: &VerifyRequirements) -> Self {
        let last = KnownRecord { sequence: 0, hash: Hash::NONE };
        let extent = LogExtent {
            key,
            records: 0,
            own_records: 0,
            omitted: 0,
            last,
            torn_tails: 0,
            has_leftover: false,
            vouched: None,
        };
        let comparison = (!demands.evidence.is_empty()).then(|| demands.evidence.about(key));
        Self { extent, comparison }
    }

    /// Counts a record, which must be the expected one.
    pub(super) fn see(
        &mut self,
        record: &Record<'_>,
        file: &str,
        demands: &VerifyRequirements,
    ) -> Result<(), AuditError> {
        match OWN_KINDS.contains(&record.kind) {
            true => self.extent.own_records += 1,
            false => self.extent.records += 1,
        }
        self.reach(KnownRecord { sequence: record.sequence, hash: record.hash }, file, demands)
    }

    /// Counts a record of which only the hash is known.
    pub(super) fn reach(
        &mut self,
        anchor: KnownRecord,
        file: &str,
        demands: &VerifyRequirements,
    ) -> Result<(), AuditError> {
        self.extent.last = anchor;
        if let Some(comparison) = &mut self.comparison {
            comparison.see(anchor.sequence, anchor.hash, file)?;
        }
        let is_other = |expected: &KnownRecord| expected.sequence == anchor.sequence && *expected != anchor;
        match demands.anchors.iter().any(is_other) {
            true => Err(AuditError::damaged(file, Some(anchor.sequence), Fault::Unexpected)),
            false => Ok(()),
        }
    }
}

// === impl VerifyRequirements ===

impl VerifyRequirements {
    pub(super) fn accept(&self, found: PublicKey, file: &str) -> Result<(), AuditError> {
        match self.key.is_some_and(|key| key != found) {
            true => Err(AuditError::damaged(file, None, Fault::UnexpectedKey { found: Box::new(found) })),
            false => Ok(()),
        }
    }

    /// Checks that all demanded records were seen.
    pub(super) fn met_by(&self, extent: &LogExtent, first: u64, file: &str) -> Result<(), AuditError> {
        let seen = first..=extent.last.sequence;
        match self.anchors.iter().find(|anchor| !seen.contains(&anchor.sequence)) {
            Some(missing) => Err(AuditError::damaged(file, Some(missing.sequence), Fault::Missing)),
            None => Ok(()),
        }
    }
}

/// Returns true if a record only signs others and carries no event.
pub fn is_checkpoint(record: &Record<'_>) -> bool {
    record.kind == checkpoint::KIND
}
