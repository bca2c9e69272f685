//! A walk along the chain, from a checkpoint on, as far as it is sound.

use super::chain::{Chain, Position};
use super::checkpoint;
use super::error::{AuditError, Fault, Finding};
use super::folder::LogFolder;
use super::head::Head;
use super::key::PublicKey;
use super::record::Record;
use super::segment::{self, Lines};

/// The end of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckpointEnd {
    pub(super) segment: u64,
    /// Offset of the end of its line.
    pub(super) end: u64,
    pub(super) position: Position,
}

/// Position of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordPosition<'a> {
    pub(super) segment: u64,
    pub(super) end: u64,
    /// The line without its newline.
    pub(super) line: &'a [u8],
}

/// Callback for every record that follows on the one before.
pub(super) type RecordVisitor<'a> = dyn FnMut(&Record<'_>, RecordPosition<'_>) -> Result<(), AuditError> + 'a;

/// Sound part of the chain.
#[derive(Debug)]
pub(super) struct SoundChain {
    /// The last checkpoint.
    pub(super) good: CheckpointEnd,
    /// Rest after the sound part, if there is any.
    pub(super) rest: Option<UncoveredLines>,
    /// The last segment that there is.
    last: u64,
}

/// Lines that no checkpoint covers.
#[derive(Debug)]
pub(super) struct UncoveredLines {
    /// First fault in it.
    pub(super) finding: Finding,
    pub(super) segment: u64,
    pub(super) begin: u64,
    /// True if the rest may be what a crash has left of a batch: nothing signed follows.
    is_at_end: bool,
}

/// Walks through the segments from `from` on; `sizes` has the number of bytes to read of each.
pub(super) fn walk(
    folder: &LogFolder,
    key: PublicKey,
    from: CheckpointEnd,
    sizes: &[u64],
    see: &mut RecordVisitor<'_>,
) -> Result<SoundChain, AuditError> {
    let mut chain = Chain::from(from.position, key);
    let last = from.segment + sizes.len() as u64 - 1;
    let mut walked = SoundChain { good: from, rest: None, last };
    for (number, size) in (from.segment..).zip(sizes) {
        let begin = if number == from.segment { from.end } else { 0 };
        let name = segment::name(number);
        let mut lines = Lines::between(folder.open_to_read(&name)?, begin, *size)
            .map_err(|error| AuditError::io("read", &folder.path().join(&name), error))?;
        let mut unsigned = None;
        let fault = loop {
            let line = lines
                .next_line()
                .map_err(|error| AuditError::io("read", &folder.path().join(&name), error))?;
            let Some(line) = line else { break None };
            // The line number is unknown unless reading began at the segment's start.
            let number_of_line = Some(line.number).filter(|_| begin == 0);
            let about = |fault| Finding {
                file: name.clone(),
                line: number_of_line,
                sequence: Some(chain.position().sequence + 1),
                fault,
            };
            if !line.is_whole {
                break Some(about(Fault::Malformed));
            }
            let expected = about(Fault::Added);
            match chain.follow(line.bytes) {
                Err(fault) => break Some(Finding { fault, ..expected }),
                Ok(record) => {
                    see(&record, RecordPosition { segment: number, end: line.end, line: line.bytes })?;
                }
            }
            if chain.is_signed() {
                walked.good = CheckpointEnd { segment: number, end: line.end, position: chain.position() };
                unsigned = None;
            } else {
                unsigned = unsigned.or(Some(expected));
            }
        };
        if let Some(finding) = fault.or(unsigned) {
            let begin = if walked.good.segment == number { walked.good.end } else { 0 };
            let is_at_end = number == last && !has_genuine(&mut lines, &key, walked.good.position);
            walked.rest = Some(UncoveredLines { finding, segment: number, begin, is_at_end });
            break;
        }
    }
    Ok(walked)
}

/// Returns true if any of the lines is a checkpoint of a later position.
fn has_genuine(lines: &mut Lines<std::fs::File>, key: &PublicKey, after: Position) -> bool {
    // An unreadable line might be a checkpoint.
    while let Some(line) = lines.next_line().transpose() {
        let Ok(line) = line else { return true };
        let record = Record::parse(line.bytes).ok().filter(|record| record.sequence > after.sequence);
        if record.is_some_and(|record| checkpoint::is_genuine(&record, key)) {
            return true;
        }
    }
    false
}

// === impl CheckpointEnd ===

impl CheckpointEnd {
    /// Before the first record.
    pub(super) const BEGIN: Self = Self { segment: 1, end: 0, position: Position::BEGIN };
}

// === impl SoundChain ===

impl SoundChain {
    /// Returns the end of the log, and what a crash has left of an unacknowledged batch, if anything.
    ///
    /// # Errors
    /// [`AuditError::Damaged`] for everything else that is not as it should be.
    pub(super) fn judged(self, head: &Head) -> Result<(CheckpointEnd, Option<UncoveredLines>), AuditError> {
        let signed = head.done.position.sequence;
        let reached = self.good.position;
        let is_cut = reached.sequence < signed;
        let damaged = |finding| Err(AuditError::Damaged { finding });
        match self.rest {
            Some(rest) if rest.finding.fault != Fault::Added || !is_cut => {
                match rest.is_at_end && !is_cut && head.excuses_rest_after(reached) {
                    true => Ok((self.good, Some(rest))),
                    false => damaged(rest.finding),
                }
            }
            rest if is_cut => damaged(Finding {
                file: segment::name(rest.map_or(self.good.segment, |rest| rest.segment)),
                line: None,
                sequence: Some(reached.sequence + 1),
                fault: Fault::Cut { signed },
            }),
            // A crash may leave a segment that was just begun, and is empty.
            _ if self.good.segment < self.last && !head.excuses_rest_after(reached) => {
                damaged(Finding::about(segment::name(self.last), Fault::Foreign))
            }
            _ => Ok((self.good, None)),
        }
    }
}
