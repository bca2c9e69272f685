//! Exports: checked by a verifier that has neither the log nor its key.

use crate::forger::{begin, lines, member, sealed, write};
use crate::log::{TestFolder, intact, run};
use crate::tampering::put;
use belljar_store::audit::AuditLog;
use belljar_store::audit::export::{ExportError, export, verify};
use belljar_store::audit::verify::{KnownRecord, LogExtent, Verdict, VerifyRequirements};
use std::path::{Path, PathBuf};

fn exported(place: &TestFolder, of: Option<u32>) -> PathBuf {
    let file = place.beside("export.jsonl");
    let run = of.map(run);
    export(&place.path(), run.as_ref(), std::fs::File::create(&file).unwrap()).unwrap();
    file
}

#[track_caller]
fn sound(file: &Path, demands: &VerifyRequirements) -> LogExtent {
    match verify(file, demands).unwrap() {
        Verdict::Intact(extent) => *extent,
        Verdict::Broken(finding) => panic!("{finding}"),
    }
}

#[track_caller]
fn spoiled(file: &Path, demands: &VerifyRequirements) -> String {
    match verify(file, demands).unwrap() {
        Verdict::Intact(extent) => panic!("nothing is found: {extent:?}"),
        Verdict::Broken(finding) => finding.to_string(),
    }
}

#[test]
fn export_keeps_lines_verbatim_and_verifies_alone() {
    let place = TestFolder::with_records(6, 1500);
    let of_log = intact(&place.path());
    let file = exported(&place, None);
    let mut expected = Vec::new();
    for number in 1..=4 {
        let segment = place.path().join(format!("{number:08}.jsonl"));
        if segment.exists() {
            expected.extend(lines(&segment));
        }
    }
    let got = lines(&file);
    assert_eq!(got[1..got.len() - 1], expected);
    std::fs::remove_dir_all(place.path()).unwrap();
    let found = sound(
        &file,
        &VerifyRequirements {
            key: Some(of_log.key),
            anchors: vec![of_log.last],
            ..VerifyRequirements::default()
        },
    );
    assert_eq!((found.records, found.omitted, found.last), (6, 0, of_log.last));
}

#[test]
fn run_export_has_only_its_records_and_verifies_against_an_anchor() {
    let place = TestFolder::with_records(7, 1500);
    let of_log = intact(&place.path());
    let file = exported(&place, Some(1));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(run(0).as_str()) && text.contains(run(1).as_str()));
    let found = sound(
        &file,
        &VerifyRequirements { key: Some(of_log.key), anchors: Vec::new(), ..VerifyRequirements::default() },
    );
    assert_eq!((found.records, found.omitted), (3, 2));
    // The hash of a record that was left out, and of one that is there.
    for (kept, name) in [("\"omitted\":", "omitted"), ("\"sequence\":", "sequence")] {
        let line = text.lines().filter(|line| line.starts_with(&format!("{{{kept}"))).nth(1).unwrap();
        let (_, rest) = line.split_once(kept).unwrap();
        let sequence = rest.split_once(',').unwrap().0.parse().unwrap();
        let anchor = |hash| VerifyRequirements {
            key: None,
            anchors: vec![KnownRecord { sequence, hash }],
            ..VerifyRequirements::default()
        };
        sound(&file, &anchor(belljar_store::audit::Hash::parse(member(line, "hash")).unwrap()));
        assert!(spoiled(&file, &anchor(of_log.last.hash)).contains("expected"), "{name}");
    }
    let without_records = export(&place.path(), Some(&run(5)), Vec::new());
    assert!(matches!(without_records, Err(ExportError::Nothing)));
}

#[test]
fn changed_byte_or_truncation_of_an_export_is_detected() {
    let place = TestFolder::with_records(4, 1 << 20);
    let file = exported(&place, Some(1));
    let whole = std::fs::read(&file).unwrap();
    for (at, byte) in whole.iter().enumerate() {
        for other in [byte ^ 1, byte ^ 0x20, byte ^ 0x80, b'\n'] {
            if other != *byte {
                put(&file, at, other);
                spoiled(&file, &VerifyRequirements::default());
            }
        }
        put(&file, at, *byte);
    }
    let opened = std::fs::File::options().write(true).open(&file).unwrap();
    for length in (0..whole.len()).rev() {
        opened.set_len(length as u64).unwrap();
        spoiled(&file, &VerifyRequirements::default());
    }
    std::fs::write(&file, [&whole[..], b"\n"].concat()).unwrap();
    spoiled(&file, &VerifyRequirements::default());
    std::fs::write(&file, &whole).unwrap();
    sound(&file, &VerifyRequirements::default());
}

#[test]
fn moved_duplicated_or_forged_export_lines_are_detected() {
    let place = TestFolder::with_records(4, 1 << 20);
    let file = exported(&place, None);
    let whole = lines(&file);
    for at in 0..whole.len() {
        let mut removed = whole.clone();
        removed.remove(at);
        let mut doubled = whole.clone();
        doubled.insert(at, whole[at].clone());
        let mut swapped = whole.clone();
        swapped.swap(at, (at + 1) % whole.len());
        for attempt in [removed, doubled, swapped] {
            write(&file, &attempt);
            spoiled(&file, &VerifyRequirements::default());
        }
    }
    // A record is marked as omitted.
    let mut omitted = whole.clone();
    let line = &whole[3];
    let (content, previous, hash) = (member(line, "content"), member(line, "previous"), member(line, "hash"));
    omitted[3] = format!(
        "{{\"omitted\":3,\"content\":\"{content}\",\"previous\":\"{previous}\",\"hash\":\"{hash}\"}}"
    );
    write(&file, &omitted);
    spoiled(&file, &VerifyRequirements::default());
    let mut edited = whole.clone();
    edited[3] = sealed(&begin(line).replace("\"number\":0", "\"number\":9"), previous);
    write(&file, &edited);
    spoiled(&file, &VerifyRequirements::default());
    write(&file, &whole);
    sound(&file, &VerifyRequirements::default());
}

#[test]
fn damaged_log_is_not_exported() {
    let place = TestFolder::with_records(2, 1 << 20);
    let segment = place.path().join("00000001.jsonl");
    let text = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, text.replace("\"number\":1", "\"number\":2")).unwrap();
    assert!(matches!(export(&place.path(), None, Vec::new()), Err(ExportError::Log(_))));
    std::fs::write(&segment, text).unwrap();
    export(&place.path(), None, Vec::new()).unwrap();
    AuditLog::open(&place.path()).unwrap().close();
}
