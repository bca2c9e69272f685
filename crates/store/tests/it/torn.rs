//! Rests of a batch after a crash at every byte where it can occur: the very states that the files pass through.

use crate::log::{TestFolder, broken, event, intact};
use belljar_store::audit::AuditLog;
use std::path::PathBuf;

const MARK: usize = 1024;

/// A log before and after one more batch.
struct TornBatch {
    segment: PathBuf,
    head: PathBuf,
    before: (Vec<u8>, Vec<u8>),
    after: (Vec<u8>, Vec<u8>),
}

// === impl TornBatch ===

impl TornBatch {
    fn on(place: &TestFolder) -> Self {
        let segments = (1..).map(|number| place.path().join(format!("{number:08}.jsonl")));
        let segment = segments.take_while(|segment| segment.exists()).last().unwrap();
        let head = place.path().join("head");
        let state = || (std::fs::read(&segment).unwrap(), std::fs::read(&head).unwrap());
        let before = state();
        let log = AuditLog::open(&place.path()).unwrap();
        log.append(event(77)).unwrap();
        log.close();
        let after = state();
        Self { segment, head, before, after }
    }

    /// The head while the batch is being written.
    fn announced(&self) -> Vec<u8> {
        [&self.before.1[..MARK], &self.after.1[MARK..]].concat()
    }

    /// Writes the files as they are when that many bytes of the batch are written.
    fn leave(&self, bytes: usize) {
        std::fs::write(&self.segment, &self.after.0[..self.before.0.len() + bytes]).unwrap();
        std::fs::write(&self.head, self.announced()).unwrap();
    }

    fn length(&self) -> usize {
        self.after.0.len() - self.before.0.len()
    }
}

/// Leaves a log as after a crash within a batch, after that many bytes.
pub(crate) fn tear(place: &TestFolder, bytes: usize) {
    TornBatch::on(place).leave(bytes);
}

#[test]
fn torn_batch_is_moved_aside_and_recorded_at_any_byte() {
    let place = TestFolder::with_records(2, 1 << 20);
    let folder = place.path();
    let batch = TornBatch::on(&place);
    for bytes in 0..batch.length() {
        batch.leave(bytes);
        let found = intact(&folder);
        assert_eq!((found.records, found.has_leftover), (2, bytes > 0), "{bytes} bytes");
        let log = AuditLog::open(&folder).unwrap();
        log.append(event(3)).unwrap();
        log.close();
        let after = intact(&folder);
        assert_eq!((after.records, after.torn_tails, after.has_leftover), (3, u64::from(bytes > 0), false));
        if bytes > 0 {
            let aside = folder.join("torn/7.1");
            let end = batch.before.0.len();
            assert_eq!(std::fs::read(&aside).unwrap(), batch.after.0[end..end + bytes], "not a byte is lost");
            std::fs::remove_file(aside).unwrap();
        }
    }
}

#[test]
fn complete_batch_is_kept_even_if_its_head_is_old() {
    let place = TestFolder::with_records(2, 1 << 20);
    let batch = TornBatch::on(&place);
    // The process was killed before it confirmed the batch; or the power failed, and the head is old.
    for head in [batch.announced(), batch.before.1.clone()] {
        std::fs::write(&batch.head, head).unwrap();
        assert_eq!(intact(&place.path()).records, 3);
        AuditLog::open(&place.path()).unwrap().close();
        let found = intact(&place.path());
        assert_eq!((found.records, found.torn_tails), (3, 0));
        assert_eq!(std::fs::read(&batch.segment).unwrap(), batch.after.0);
    }
}

#[test]
fn interrupted_torn_tail_cleanup_is_completed_at_next_open() {
    let place = TestFolder::with_records(2, 1 << 20);
    let folder = place.path();
    let batch = TornBatch::on(&place);
    let end = batch.before.0.len();
    let torn = &batch.after.0[end..end + 100];
    // Moved aside, and not yet removed.
    batch.leave(100);
    std::fs::write(folder.join("torn/7.1"), torn).unwrap();
    intact(&folder);
    // Half moved aside.
    std::fs::write(folder.join("torn/7.2.partial"), &torn[..10]).unwrap();
    intact(&folder);
    AuditLog::open(&folder).unwrap().close();
    assert_eq!((intact(&folder).torn_tails, folder.join("torn/7.2").exists()), (1, false));
    // Removed, and not yet recorded; or only begun to be recorded.
    for begun in [0, 60] {
        let recorded = std::fs::read(&batch.segment).unwrap();
        batch.leave(0);
        std::fs::write(&batch.segment, &recorded[..end + begun]).unwrap();
        intact(&folder);
        AuditLog::open(&folder).unwrap().close();
        assert_eq!(intact(&folder).torn_tails, if begun == 0 { 1 } else { 2 });
        assert_eq!(std::fs::read(folder.join("torn/7.1")).unwrap(), torn);
    }
}

#[test]
fn empty_or_torn_new_segment_is_recovered() {
    let place = TestFolder::with_records(1, 1);
    let folder = place.path();
    let batch = TornBatch::on(&place);
    let (before, after) = (batch.before.0.len(), &batch.after.0);
    std::fs::write(&batch.segment, &after[..before]).unwrap();
    std::fs::write(&batch.head, batch.announced()).unwrap();
    for rest in [&b""[..], &after[before..before + 100]] {
        std::fs::write(folder.join("00000003.jsonl"), rest).unwrap();
        assert_eq!(intact(&folder).has_leftover, !rest.is_empty());
    }
    let log = AuditLog::open_with(&folder, crate::log::settings(1)).unwrap();
    log.append(event(5)).unwrap();
    log.close();
    assert_eq!(intact(&folder).torn_tails, 1);
}

#[test]
fn leftover_without_an_announced_batch_is_tampering() {
    let place = TestFolder::with_records(2, 1 << 20);
    let batch = TornBatch::on(&place);
    batch.leave(100);
    intact(&place.path());
    std::fs::write(&batch.head, &batch.before.1).unwrap();
    assert_eq!(broken(&place.path()), "00000001.jsonl, line 7, record 7: this is no record");
    assert!(AuditLog::open(&place.path()).is_err());
}

#[test]
fn damaged_acknowledged_record_is_never_treated_as_torn() {
    let place = TestFolder::with_records(4, 1 << 20);
    let segment = place.path().join("00000001.jsonl");
    let batch = TornBatch::on(&place);
    // The head is older than the last batch, as after a power failure; and a byte of that batch has changed.
    std::fs::write(&batch.head, &batch.before.1).unwrap();
    let mut changed = batch.after.0.clone();
    changed[batch.before.0.len() + 30] ^= 1;
    std::fs::write(&segment, changed).unwrap();
    broken(&place.path());
    assert!(AuditLog::open(&place.path()).is_err());
    std::fs::write(&segment, &batch.after.0).unwrap();
    AuditLog::open(&place.path()).unwrap().close();
}
