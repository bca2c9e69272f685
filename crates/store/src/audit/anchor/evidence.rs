//! Checkpoints that anchors hold, and their comparison with a log.

use super::note::{Checkpoint, LINES, ORIGIN, SIGNATURE_LINE};
use super::syslog::MARK;
use crate::audit::error::{AuditError, Fault};
use crate::audit::hash::Hash;
use crate::audit::key::PublicKey;
use std::collections::{BTreeMap, BTreeSet};

/// Checkpoints that were found in anchors.
#[derive(Debug, Clone, Default)]
pub struct AnchorEvidence {
    /// The anchors, as the caller named them.
    anchors: Vec<String>,
    /// Checkpoints with the number of the anchor that each is from.
    checkpoints: Vec<(usize, Checkpoint)>,
    /// Notes that can't be read, or whose signature is wrong.
    unreadable: u64,
}

/// Part of a log that anchors confirm.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfirmedRange {
    /// The last record that a checkpoint covers; 0 where none does.
    pub sequence: u64,
    /// Time at which that checkpoint was signed.
    pub time: Option<String>,
    /// The checkpoints of this log, all of which agree with it.
    pub checkpoints: u64,
    /// The anchors that hold any of them.
    pub anchors: Vec<String>,
    /// Other logs that the anchors hold checkpoints of: the last record of each.
    pub other_logs: BTreeMap<String, u64>,
    /// Notes that can't be read, or whose signature is wrong. Anyone who can write to an anchor can leave such a note.
    pub unreadable: u64,
}

/// A log's comparison with the evidence, record by record.
#[derive(Debug, Default)]
pub(in crate::audit) struct EvidenceComparison {
    /// The hashes that checkpoints state, by the record.
    expected: BTreeMap<u64, Vec<ExpectedRecord>>,
    vouched: ConfirmedRange,
}

#[derive(Debug)]
struct ExpectedRecord {
    hash: Hash,
    log: Hash,
    time: String,
    anchor: String,
}

// === impl AnchorEvidence ===

impl AnchorEvidence {
    /// Adds all checkpoints in the text of an anchor: signed notes, or lines of a syslog daemon. Other text is skipped.
    pub fn add(&mut self, anchor: &str, text: &str) {
        let number = self.anchors.len();
        self.anchors.push(anchor.to_owned());
        let mut note: Option<(usize, String)> = None;
        for line in text.lines() {
            if let Some((_, message)) = line.split_once(MARK) {
                self.read_note(number, &note_in(message).unwrap_or_default());
                continue;
            }
            if line.starts_with(ORIGIN) {
                // A crash may have cut off the note before.
                self.unreadable += u64::from(note.is_some());
                note = Some((0, String::new()));
            }
            let Some((lines, text)) = &mut note else { continue };
            *lines += 1;
            text.push_str(line);
            text.push('\n');
            if line.starts_with(SIGNATURE_LINE) || *lines >= LINES {
                let (_, text) = note.take().unwrap_or_default();
                self.read_note(number, &text);
            }
        }
        self.unreadable += u64::from(note.is_some());
    }

    fn read_note(&mut self, anchor: usize, note: &str) {
        match Checkpoint::parse(note) {
            Some(checkpoint) => self.checkpoints.push((anchor, checkpoint)),
            None => self.unreadable += 1,
        }
    }

    /// Returns true if no anchor was read.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// Returns the checkpoints that a log signed with this key must agree with.
    pub(in crate::audit) fn about(&self, key: PublicKey) -> EvidenceComparison {
        let mut comparison = EvidenceComparison::default();
        let mut anchors = BTreeSet::new();
        for (anchor, checkpoint) in &self.checkpoints {
            let Checkpoint { log, sequence, hash, ref time, key: signer } = *checkpoint;
            // The key is made with the log. So whatever it has signed is about this log, also under another first record.
            if signer != key {
                let last = comparison.vouched.other_logs.entry(log.to_string()).or_default();
                *last = sequence.max(*last);
                continue;
            }
            let name = self.anchors[*anchor].clone();
            anchors.insert(*anchor);
            comparison.vouched.checkpoints += 1;
            let expected = ExpectedRecord { hash, log, time: time.clone(), anchor: name };
            comparison.expected.entry(sequence).or_default().push(expected);
        }
        comparison.vouched.anchors = anchors.iter().map(|anchor| self.anchors[*anchor].clone()).collect();
        comparison.vouched.unreadable = self.unreadable;
        comparison
    }
}

fn note_in(message: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::Deserializer::from_str(message).into_iter().next()?.ok()?;
    value.get("note")?.as_str().map(str::to_owned)
}

// === impl EvidenceComparison ===

impl EvidenceComparison {
    /// Compares a record of the log. `is_first` is of record 1, whose hash tells logs apart.
    pub(in crate::audit) fn see(&mut self, sequence: u64, hash: Hash, file: &str) -> Result<(), AuditError> {
        if sequence == 1 {
            let other = self.expected.values().flatten().find(|expected| expected.log != hash);
            if let Some(ExpectedRecord { anchor, .. }) = other {
                let fault = Fault::Forked { vouched: 0, anchor: anchor.clone() };
                return Err(AuditError::damaged(file, Some(1), fault));
            }
        }
        let Some(expected) = self.expected.get(&sequence) else { return Ok(()) };
        for ExpectedRecord { hash: anchored, anchor, .. } in expected {
            if *anchored != hash {
                let fault = Fault::Forked { vouched: self.vouched.sequence, anchor: anchor.clone() };
                return Err(AuditError::damaged(file, Some(sequence), fault));
            }
        }
        self.vouched.sequence = sequence;
        self.vouched.time = expected.iter().map(|expected| expected.time.clone()).min();
        Ok(())
    }

    /// Ends the comparison with a whole log, whose last record is this.
    pub(in crate::audit) fn end(self, last: u64, file: &str) -> Result<ConfirmedRange, AuditError> {
        match self.expected.last_key_value() {
            Some((anchored, expected)) if *anchored > last => {
                let anchor = expected.first().map(|expected| expected.anchor.clone()).unwrap_or_default();
                let fault = Fault::CutBelowAnchor { anchored: *anchored, anchor };
                Err(AuditError::damaged(file, Some(last + 1), fault))
            }
            _ => Ok(self.vouched),
        }
    }

    /// Ends the comparison with an export, which may end earlier.
    pub(in crate::audit) fn end_of_part(self) -> ConfirmedRange {
        self.vouched
    }
}
