//! Logs for tests.

use belljar_contract::id::RunId;
use belljar_store::audit::verify::{LogExtent, Verdict, VerifyRequirements, verify};
use belljar_store::audit::{AuditLog, Event, Settings};
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder for a log, gone with the test.
pub(crate) struct TestFolder {
    folder: TempDir,
}

// === impl TestFolder ===

impl TestFolder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("state/audit")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Creates a closed log with that many records, in segments of that size.
    pub(crate) fn with_records(records: u32, segment_bytes: u64) -> Self {
        let place = Self::new();
        let log = AuditLog::open_with(&place.path(), settings(segment_bytes)).unwrap();
        for number in 0..records {
            log.append(event(number)).unwrap();
        }
        log.close();
        place
    }
}

pub(crate) fn settings(segment_bytes: u64) -> Settings {
    Settings { segment_bytes, ..Settings::default() }
}

pub(crate) fn run(number: u32) -> RunId {
    RunId::parse(&format!("0192f0c1-7d3e-7c4a-9b1e-{number:012x}")).unwrap()
}

/// Returns an event with that number, of one of two runs.
pub(crate) fn event(number: u32) -> Event {
    Event::new("test", Some(&run(number % 2)), &json!({ "number": number })).unwrap()
}

#[track_caller]
pub(crate) fn intact(folder: &Path) -> LogExtent {
    match verify(folder, &VerifyRequirements::default()).unwrap() {
        Verdict::Intact(extent) => *extent,
        Verdict::Broken(finding) => panic!("{finding}"),
    }
}

/// Returns the fault of a log as text.
#[track_caller]
pub(crate) fn broken(folder: &Path) -> String {
    match verify(folder, &VerifyRequirements::default()).unwrap() {
        Verdict::Intact(extent) => panic!("nothing is found: {extent:?}"),
        Verdict::Broken(finding) => finding.to_string(),
    }
}

#[test]
fn appended_records_stay_in_order_and_verify_after_reopening() {
    let place = TestFolder::with_records(5, 1 << 20);
    let log = AuditLog::open(&place.path()).unwrap();
    let receipt = log.append(event(5)).unwrap();
    log.close();
    let extent = intact(&place.path());
    assert_eq!((extent.records, extent.torn_tails, extent.has_leftover), (6, 0, false));
    // Each came alone, so a checkpoint follows each.
    assert_eq!((extent.own_records, extent.last.sequence), (8, receipt.sequence + 1));
    let mut numbers = Vec::new();
    belljar_store::audit::reading::each(&place.path(), &mut |record, _| {
        if record.kind == "test" {
            numbers.push(record.event.to_owned());
        }
    })
    .unwrap();
    assert_eq!(numbers, (0..6).map(|number| format!("{{\"number\":{number}}}")).collect::<Vec<_>>());
}
