//! Every modification of a log is detected. Each attempt begins with a log that verifies and ends with one that does
//! again.

use crate::forger::{begin, chained_anew, lines, member, sealed, write};
use crate::log::{TestFolder, broken, event, intact, settings};
use belljar_store::audit::verify::{KnownRecord, Verdict, VerifyRequirements, verify};
use belljar_store::audit::{AuditError, AuditLog, Hash};
use belljar_testkit::share::Share;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Returns every file of a log.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => files.extend(std::fs::read_dir(entry).unwrap().map(|entry| entry.unwrap().path())),
            false => files.push(entry),
        }
    }
    files.sort();
    files
}

/// Changes one byte in place, because writing a file anew waits for the disk.
pub(crate) fn put(file: &Path, at: usize, byte: u8) {
    File::options().write(true).open(file).unwrap().write_all_at(&[byte], at as u64).unwrap();
}

fn segment(place: &TestFolder, number: u32) -> PathBuf {
    place.path().join(format!("{number:08}.jsonl"))
}

/// A log of two segments with something that a crash has left.
fn small() -> TestFolder {
    let place = TestFolder::with_records(1, 1);
    crate::torn::tear(&place, 100);
    AuditLog::open_with(&place.path(), settings(1)).unwrap().close();
    assert_eq!(intact(&place.path()).torn_tails, 1);
    place
}

#[test]
fn changed_byte_in_any_log_file_is_detected() {
    let place = small();
    let folder = place.path();
    let (mut tried, share) = (0, Share::current());
    for file in files(&folder) {
        let sound = std::fs::read(&file).unwrap();
        for (at, byte) in sound.iter().enumerate().filter(|(at, _)| share.includes(*at as u64)) {
            for other in [byte ^ 1, byte ^ 0x20, byte ^ 0x80, b'\n', b' '] {
                if other == *byte {
                    continue;
                }
                put(&file, at, other);
                let verdict = verify(&folder, &VerifyRequirements::default()).unwrap();
                assert!(matches!(verdict, Verdict::Broken(_)), "{} byte {at} as {other}", file.display());
                tried += 1;
            }
            put(&file, at, *byte);
        }
    }
    assert!(tried > share.of_count(10_000), "{tried}");
    intact(&folder);
}

#[test]
fn truncated_or_extended_log_file_is_detected() {
    let (place, share) = (small(), Share::current());
    let folder = place.path();
    for file in files(&folder) {
        let sound = std::fs::read(&file).unwrap();
        let opened = File::options().write(true).open(&file).unwrap();
        for length in (0..sound.len()).rev().filter(|length| share.includes(*length as u64)) {
            opened.set_len(length as u64).unwrap();
            let verdict = verify(&folder, &VerifyRequirements::default()).unwrap();
            assert!(matches!(verdict, Verdict::Broken(_)), "{} cut at {length}", file.display());
        }
        for more in [&b"\n"[..], b" ", b"\0", b"{}\n", b"x"] {
            std::fs::write(&file, [&sound, more].concat()).unwrap();
            let verdict = verify(&folder, &VerifyRequirements::default()).unwrap();
            assert!(matches!(verdict, Verdict::Broken(_)), "{} with {more:?}", file.display());
        }
        std::fs::write(&file, &sound).unwrap();
        intact(&folder);
    }
}

#[test]
fn removed_or_added_log_file_is_reported_by_name() {
    let place = small();
    let folder = place.path();
    for file in files(&folder) {
        let sound = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let name = file.strip_prefix(&folder).unwrap().display().to_string();
        let found = broken(&folder);
        // Without the last segment the one before it ends too early.
        assert!(found.starts_with(&name) || found.contains("cut"), "{name}: {found}");
        std::fs::write(&file, &sound).unwrap();
    }
    for name in ["extra", "torn/9.1", "00000004.jsonl", "00000009.jsonl", "1.jsonl", ".hidden"] {
        std::fs::write(folder.join(name), "").unwrap();
        let found = broken(&folder);
        assert!(found.starts_with(name) || found.contains("is missing"), "{name}: {found}");
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    intact(&folder);
}

#[test]
fn removed_duplicated_or_swapped_line_is_reported_at_its_position() {
    let place = TestFolder::with_records(6, 1500);
    let folder = place.path();
    let mut number_of_segments = 0;
    for number in 1.. {
        let file = segment(&place, number);
        if !file.exists() {
            break;
        }
        number_of_segments += 1;
        let sound = lines(&file);
        for at in 0..sound.len() {
            let mut attempts = Vec::new();
            let mut removed = sound.clone();
            removed.remove(at);
            attempts.push(removed);
            let mut doubled = sound.clone();
            doubled.insert(at, sound[at].clone());
            attempts.push(doubled);
            for other in at + 1..sound.len() {
                let mut swapped = sound.clone();
                swapped.swap(at, other);
                attempts.push(swapped);
            }
            for attempt in attempts {
                write(&file, &attempt);
                let found = broken(&folder);
                let is_at_line = found.contains(&format!("{number:08}.jsonl, line {}", at + 1))
                    || found.contains(&format!("{number:08}.jsonl, line {}", at + 2));
                // A record that is missing at the end is detected at the beginning of the next segment.
                let is_at_end = at + 1 == sound.len() || attempt.len() < sound.len() && at + 2 == sound.len();
                assert!(is_at_line || is_at_end, "segment {number}, line {}: {found}", at + 1);
            }
        }
        write(&file, &sound);
        intact(&folder);
    }
    assert!(number_of_segments > 2, "{number_of_segments}");
}

#[test]
fn audit_finding_names_position_and_fault() {
    let place = TestFolder::with_records(2, 1 << 20);
    let folder = place.path();
    let file = segment(&place, 1);
    let sound = lines(&file);
    let mut changed = sound.clone();
    changed[2] = sound[2].replace("\"number\":0", "\"number\":7");
    write(&file, &changed);
    assert_eq!(broken(&folder), "00000001.jsonl, line 3, record 3: the record was changed");
    let mut removed = sound.clone();
    removed.remove(2);
    write(&file, &removed);
    assert_eq!(broken(&folder), "00000001.jsonl, line 3, record 3: record 4 is here instead");
    write(&file, &sound[..4]);
    assert_eq!(broken(&folder), "00000001.jsonl, record 5: the log is cut: it goes on to record 6");
    write(&file, &sound);
    intact(&folder);
}

#[test]
fn chain_rebuilt_without_the_key_is_detected() {
    let place = TestFolder::with_records(4, 1 << 20);
    let folder = place.path();
    let file = segment(&place, 1);
    let sound = lines(&file);
    assert_eq!(chained_anew(&sound), sound, "rebuilding an unchanged chain changes nothing");
    let mut edited = sound.clone();
    edited[4] =
        sealed(&begin(&sound[4]).replace("\"number\":1", "\"number\":9"), member(&sound[4], "previous"));
    write(&file, &chained_anew(&edited));
    assert_eq!(broken(&folder), "00000001.jsonl, line 6, record 6: the signature is not of the log's key");
    let mut removed = sound.clone();
    removed.drain(2..4);
    write(&file, &chained_anew(&removed));
    assert!(broken(&folder).contains("signature"));
    // One more record at the end, correctly chained.
    let number = sound.len() + 1;
    let added = begin(&sound[4]).replace("\"sequence\":5", &format!("\"sequence\":{number}"));
    let added = sealed(&added, member(sound.last().unwrap(), "hash"));
    write(&file, &[sound.clone(), vec![added]].concat());
    assert_eq!(broken(&folder), "00000001.jsonl, line 11, record 11: this was added: no checkpoint follows");
    let refused = AuditLog::open(&folder).unwrap_err();
    assert!(matches!(refused, AuditError::Damaged { .. }), "{refused}");
    write(&file, &sound);
    intact(&folder);
    AuditLog::open(&folder).unwrap().close();
}

#[test]
fn records_of_another_log_are_detected() {
    let (place, other) = (TestFolder::with_records(3, 1 << 20), TestFolder::with_records(3, 1 << 20));
    let (file, theirs) = (segment(&place, 1), segment(&other, 1));
    let (sound, foreign) = (lines(&file), lines(&theirs));
    for at in 0..sound.len() {
        let mut mixed = sound.clone();
        mixed[at].clone_from(&foreign[at]);
        write(&file, &mixed);
        let found = broken(&place.path());
        assert!(found.contains(&format!("line {}", at + 1)) || at == 0, "{found}");
    }
    write(&file, &foreign);
    broken(&place.path());
    write(&file, &sound);
    intact(&place.path());
}

#[test]
fn replaced_log_is_detected_by_a_known_key_or_record() {
    let (place, other) = (TestFolder::with_records(3, 1 << 20), TestFolder::with_records(3, 1 << 20));
    let before = intact(&place.path());
    let key =
        VerifyRequirements { key: Some(before.key), anchors: Vec::new(), ..VerifyRequirements::default() };
    let anchored = |sequence, hash| VerifyRequirements {
        key: None,
        anchors: vec![KnownRecord { sequence, hash }],
        ..VerifyRequirements::default()
    };
    let last = anchored(before.last.sequence, before.last.hash);
    let verdicts = |folder: &Path, demands: &VerifyRequirements| match verify(folder, demands).unwrap() {
        Verdict::Intact(_) => "intact".to_owned(),
        Verdict::Broken(finding) => finding.to_string(),
    };
    for demands in [&key, &last] {
        assert_eq!(verdicts(&place.path(), demands), "intact");
    }
    assert!(verdicts(&other.path(), &key).starts_with("public-key: the log is signed with the key "));
    assert!(verdicts(&other.path(), &last).ends_with("record 8: the record is not the one that is expected"));
    // An older copy of the same log.
    let younger = AuditLog::open(&place.path()).unwrap();
    let receipt = younger.append(event(9)).unwrap();
    younger.close();
    let receipt = anchored(receipt.sequence, receipt.hash);
    assert_eq!(verdicts(&place.path(), &last), "intact");
    assert_eq!(verdicts(&place.path(), &receipt), "intact");
    assert!(verdicts(&other.path(), &receipt).ends_with("record 9: it is missing"));
    let wrong = anchored(9, Hash::NONE);
    assert!(verdicts(&place.path(), &wrong).contains("not the one that is expected"));
}

#[test]
fn damaged_or_exposed_log_rejects_appends() {
    use std::os::unix::fs::PermissionsExt;
    let place = TestFolder::with_records(3, 1 << 20);
    let folder = place.path();
    let file = segment(&place, 1);
    let sound = lines(&file);
    write(&file, &sound[..sound.len() - 1]);
    assert!(matches!(AuditLog::open(&folder), Err(AuditError::Damaged { .. })));
    write(&file, &sound);
    for name in ["head", "key", "lock", "public-key"] {
        std::fs::rename(folder.join(name), place.beside("away")).unwrap();
        assert!(
            matches!(AuditLog::open(&folder), Err(AuditError::Damaged { .. } | AuditError::Io { .. })),
            "{name}"
        );
        std::fs::rename(place.beside("away"), folder.join(name)).unwrap();
    }
    for (path, mode) in [(folder.join("key"), 0o640), (folder.clone(), 0o755)] {
        let before = path.metadata().unwrap().permissions();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        assert!(matches!(AuditLog::open(&folder), Err(AuditError::Exposed { .. })), "{mode:o}");
        std::fs::set_permissions(&path, before).unwrap();
    }
    AuditLog::open(&folder).unwrap().close();
    let modes: Vec<u32> =
        files(&folder).iter().map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect();
    assert_eq!(modes, vec![0o600; modes.len()]);
}
