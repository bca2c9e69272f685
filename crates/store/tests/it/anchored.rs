//! Anchors: attacks on a log with the log's key, and how a checkpoint elsewhere reveals them.

use crate::forger::{lines, member, write};
use crate::log::{TestFolder, event, intact};
use belljar_store::audit::anchor::{
    AnchorError, AnchorEvidence, AnchorSettings, AnchorTarget, ConfirmedRange, notes_in_file, statuses,
};
use belljar_store::audit::verify::{Verdict, VerifyRequirements, verify};
use belljar_store::audit::{AuditError, AuditLog, Settings};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size of one mark in the head.
const MARK: usize = 1024;

fn anchored_at(target: AnchorTarget) -> AnchorSettings {
    // Checkpoints are delivered only at the end of the process.
    AnchorSettings {
        every_records: 1_000_000,
        every: Duration::from_secs(3_600),
        ..AnchorSettings::new(target)
    }
}

fn file_anchor(path: &Path) -> AnchorSettings {
    anchored_at(AnchorTarget::File(path.to_owned()))
}

fn open(folder: &Path, anchors: Vec<AnchorSettings>) -> AuditLog {
    AuditLog::open_with(folder, Settings { anchors, ..Settings::default() }).unwrap()
}

/// Opens the log, appends records with these numbers, and closes it.
fn append(folder: &Path, anchors: &[AnchorSettings], numbers: std::ops::Range<u32>) {
    let log = open(folder, anchors.to_vec());
    for number in numbers {
        log.append(event(number)).unwrap();
    }
    log.close();
}

fn evidence(files: &[&Path]) -> AnchorEvidence {
    let mut evidence = AnchorEvidence::default();
    for file in files {
        evidence.add(&file.file_name().unwrap().to_string_lossy(), &std::fs::read_to_string(file).unwrap());
    }
    evidence
}

fn against(folder: &Path, files: &[&Path]) -> Result<ConfirmedRange, String> {
    let demands = VerifyRequirements { evidence: evidence(files), ..VerifyRequirements::default() };
    match verify(folder, &demands).unwrap() {
        Verdict::Intact(extent) => Ok(extent.vouched.unwrap()),
        Verdict::Broken(finding) => Err(finding.to_string()),
    }
}

/// Cuts that many submitted records from the log's end and makes a new `head` from the rest of the log.
fn cut(folder: &Path, records: usize) {
    let file = folder.join("00000001.jsonl");
    let whole = lines(&file);
    // Each record has its checkpoint.
    let left = &whole[..whole.len() - 2 * records];
    write(&file, left);
    let (end, last) = (file.metadata().unwrap().len(), left.last().unwrap());
    assert!(last.contains("\"kind\":\"checkpoint\""), "{last}");
    let mut mark = format!("{{\"segment\":1,\"end\":{end},\"checkpoint\":{last}}}");
    mark += &" ".repeat(MARK - 1 - mark.len());
    mark.push('\n');
    std::fs::write(folder.join("head"), mark.repeat(2)).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in ["key", "public-key", "lock", "head", "00000001.jsonl"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    std::fs::create_dir_all(to.join("torn")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    for folder in [to.to_owned(), to.join("torn")] {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).unwrap();
    }
}

#[test]
fn log_truncated_with_a_rebuilt_head_is_detected_only_by_an_anchor() {
    let (place, log) = (TestFolder::new(), |place: &TestFolder| place.path());
    let notes = place.beside("elsewhere.notes");
    append(&log(&place), &[file_anchor(&notes)], 0..1_000);
    let whole = intact(&log(&place));
    let vouched = against(&log(&place), &[&notes]).unwrap();
    assert_eq!((vouched.sequence, vouched.checkpoints), (whole.last.sequence, 1), "the control");
    cut(&log(&place), 930);
    assert_eq!(intact(&log(&place)).records, 70, "the log alone shows nothing");
    assert_eq!(
        against(&log(&place), &[&notes]).unwrap_err(),
        format!(
            "00000001.jsonl, record {}: the log is cut or rolled back: elsewhere.notes holds a checkpoint of record {}",
            intact(&log(&place)).last.sequence + 1,
            whole.last.sequence
        )
    );
}

#[test]
fn log_rewritten_with_its_key_is_detected_at_first_anchored_change() {
    let place = TestFolder::new();
    let (folder, notes, stolen) =
        (place.path(), place.beside("elsewhere.notes"), place.beside("stolen/audit"));
    let anchor = [file_anchor(&notes)];
    append(&folder, &anchor, 0..5);
    let vouched_to = intact(&folder).last.sequence;
    copy(&folder, &stolen);
    append(&folder, &anchor, 5..8);
    let anchored_to = intact(&folder).last.sequence;
    // The copy has the key, and continues with other records, further than the log did.
    append(&stolen, &[], 100..120);
    intact(&stolen);
    let found = against(&stolen, &[&notes]).unwrap_err();
    assert_eq!(
        found,
        format!(
            "00000001.jsonl, record {anchored_to}: the log was rewritten: elsewhere.notes holds a checkpoint of another \
             record in this place; the anchors vouch for records up to {vouched_to}"
        )
    );
    assert_eq!(against(&folder, &[&notes]).unwrap().sequence, anchored_to, "the control");
}

#[test]
fn rolled_back_or_forked_log_is_detected_by_its_anchor() {
    let place = TestFolder::new();
    let (folder, notes, older) = (place.path(), place.beside("elsewhere.notes"), place.beside("older/audit"));
    let anchor = [file_anchor(&notes)];
    append(&folder, &anchor, 0..3);
    copy(&folder, &older);
    append(&folder, &anchor, 3..6);
    let anchored_to = intact(&folder).last.sequence;
    let found = against(&older, &[&notes]).unwrap_err();
    assert!(
        found.ends_with(&format!("rolled back: elsewhere.notes holds a checkpoint of record {anchored_to}")),
        "{found}"
    );
    // The attacker appends the checkpoints of the fork to the anchor. Those of the real log stay there.
    append(&older, &anchor, 200..220);
    for fork in [&folder, &older] {
        let found = against(fork, &[&notes]).unwrap_err();
        assert!(found.contains("rewritten") || found.contains("rolled back"), "{found}");
    }
}

#[test]
fn records_after_the_last_anchored_checkpoint_are_distinguished() {
    let place = TestFolder::new();
    let (folder, notes) = (place.path(), place.beside("elsewhere.notes"));
    append(&folder, &[file_anchor(&notes)], 0..4);
    let anchored_to = intact(&folder).last.sequence;
    append(&folder, &[], 4..6);
    let vouched = against(&folder, &[&notes]).unwrap();
    assert_eq!((vouched.sequence, intact(&folder).last.sequence), (anchored_to, anchored_to + 4));
    // Records of a process without anchors are delivered by the next process that has anchors.
    open(&folder, vec![file_anchor(&notes)]).close();
    assert_eq!(against(&folder, &[&notes]).unwrap().sequence, anchored_to + 4);
}

#[test]
fn checkpoints_are_delivered_by_record_count_or_interval() {
    let place = TestFolder::new();
    let (by_number, by_time) = (place.beside("number.notes"), place.beside("time.notes"));
    let every = |path: &Path, every_records, seconds| AnchorSettings {
        every_records,
        every: Duration::from_secs(seconds),
        ..AnchorSettings::new(AnchorTarget::File(path.to_owned()))
    };
    let log = open(&place.path(), vec![every(&by_number, 3, 3_600), every(&by_time, 1_000_000, 1)]);
    for number in 0..5 {
        log.append(event(number)).unwrap();
    }
    for notes in [&by_number, &by_time] {
        belljar_testkit::wait::until(|| notes.exists() && !std::fs::read(notes).unwrap().is_empty());
    }
    log.close();
    for notes in [&by_number, &by_time] {
        assert_eq!(against(&place.path(), &[notes]).unwrap().sequence, intact(&place.path()).last.sequence);
    }
}

/// Replaces a member in the status file of the only anchor.
fn forge(folder: &Path, member: &str, value: &str) {
    let statuses = folder.with_file_name("audit-anchors");
    let file = std::fs::read_dir(statuses).unwrap().next().unwrap().unwrap().path();
    let mut status: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    status["delivered"][member] = serde_json::from_str(value).unwrap();
    std::fs::write(file, status.to_string()).unwrap();
}

#[test]
fn forged_status_does_not_keep_checkpoints_from_an_anchor() {
    let place = TestFolder::new();
    let (folder, notes) = (place.path(), place.beside("audit.notes"));
    let anchor = [file_anchor(&notes)];
    let delivered = || std::fs::read_to_string(&notes).unwrap().matches("belljar-audit/").count() / 2;
    append(&folder, &anchor, 0..2);
    assert_eq!(delivered(), 1);
    // Control: a delivered checkpoint isn't delivered again, and nothing is missing.
    let log = open(&folder, anchor.to_vec());
    assert_eq!(log.missing_from_log(), []);
    log.close();
    assert_eq!(delivered(), 1);
    let other = format!("\"{}\"", "0".repeat(64));
    for (number, (member, value)) in
        [("sequence", "999999999"), ("hash", other.as_str())].into_iter().enumerate()
    {
        forge(&folder, member, value);
        let log = open(&folder, anchor.to_vec());
        assert_eq!(log.missing_from_log().len(), 1, "{member}");
        log.close();
        assert_eq!(delivered(), 2 + 2 * number, "{member}");
        forge(&folder, "sequence", "999999999");
        append(&folder, &anchor, 2..3);
        assert_eq!(delivered(), 3 + 2 * number, "{member}");
    }
    intact(&folder);
    against(&folder, &[&notes]).unwrap();
}

#[test]
fn rolled_back_log_is_detected_by_its_anchor_status() {
    let place = TestFolder::new();
    let (folder, earlier, notes) = (place.path(), place.beside("earlier"), place.beside("audit.notes"));
    let anchor = [file_anchor(&notes)];
    append(&folder, &anchor, 0..2);
    copy(&folder, &earlier);
    append(&folder, &anchor, 2..4);
    std::fs::remove_dir_all(&folder).unwrap();
    copy(&earlier, &folder);
    let log = open(&folder, Vec::new());
    assert_eq!(log.missing_from_log().len(), 1);
    log.close();
}

#[test]
fn failing_anchor_delays_no_record_and_its_failure_and_recovery_are_recorded() {
    let place = TestFolder::new();
    let (folder, mount) = (place.path(), place.beside("not-mounted"));
    let anchor = [file_anchor(&mount.join("audit.notes"))];
    append(&folder, &anchor, 0..2);
    let status = &statuses(&folder)[0];
    let failing = status.failing.as_ref().unwrap();
    assert!(failing.error.contains("No such file") && status.delivered.is_none(), "{status:?}");
    std::fs::create_dir(&mount).unwrap();
    append(&folder, &anchor, 2..3);
    let status = &statuses(&folder)[0];
    assert!(status.failing.is_none() && status.delivered.is_some(), "{status:?}");
    let text = std::fs::read_to_string(folder.join("00000001.jsonl")).unwrap();
    for kind in ["audit_anchor_failed", "audit_anchor_recovered"] {
        assert_eq!(text.matches(&format!("\"kind\":\"{kind}\"")).count(), 1, "{kind} in {text}");
    }
    intact(&folder);
}

#[test]
fn failing_required_anchor_blocks_acknowledgement() {
    let place = TestFolder::new();
    let (folder, mount) = (place.path(), place.beside("not-mounted"));
    let anchor = AnchorSettings { is_required: true, ..file_anchor(&mount.join("audit.notes")) };
    let log = open(&folder, vec![anchor]);
    assert!(matches!(log.append(event(1)), Err(AuditError::Anchor { .. })));
    assert!(matches!(log.append(event(2)), Err(AuditError::Failed { .. })));
    assert!(log.anchor_statuses()[0].failing.is_some());
    std::fs::create_dir(&mount).unwrap();
    belljar_testkit::wait::until(|| log.append(event(3)).is_ok());
    let acknowledged = log.append(event(4)).unwrap();
    // Before the end of the process, which delivers as well.
    let notes = mount.join("audit.notes");
    assert!(against(&folder, &[&notes]).unwrap().sequence > acknowledged.sequence);
    log.close();
}

#[test]
fn syslog_message_is_valid_anchor_evidence() {
    let place = TestFolder::new();
    let (folder, path) = (place.path(), place.beside("log.socket"));
    let daemon = UnixDatagram::bind(&path).unwrap();
    append(&folder, &[anchored_at(AnchorTarget::Syslog(path.clone()))], 0..3);
    let mut buffer = [0; 4096];
    let length = daemon.recv(&mut buffer).unwrap();
    let message = std::str::from_utf8(&buffer[..length]).unwrap();
    let fields: Vec<&str> = message.splitn(8, ' ').collect();
    assert_eq!((fields[0], fields[3], fields[5], fields[6]), ("<85>1", "belljar", "audit-checkpoint", "-"));
    assert!(message.is_ascii() && !message.contains('\n'), "{message}");
    // In the format of a syslog daemon, among other lines.
    let kept = place.beside("syslog");
    std::fs::write(&kept, format!("Jan 31 12:00:00 host kernel: other\nJan 31 12:00:01 host {message}\n"))
        .unwrap();
    assert_eq!(against(&folder, &[&kept]).unwrap().sequence, intact(&folder).last.sequence);
    cut(&folder, 1);
    assert!(against(&folder, &[&kept]).unwrap_err().contains("cut or rolled back"));
}

#[test]
fn torn_forged_or_foreign_notes_are_ignored_beside_genuine_ones() {
    let (place, other) = (TestFolder::new(), TestFolder::new());
    let (notes, theirs) = (place.beside("elsewhere.notes"), other.beside("theirs.notes"));
    append(&other.path(), &[file_anchor(&theirs)], 0..9);
    append(&place.path(), &[file_anchor(&notes)], 0..2);
    let genuine = std::fs::read_to_string(&notes).unwrap();
    let foreign = std::fs::read_to_string(&theirs).unwrap();
    let forged = genuine.replace("\ntime 2", "\ntime 1");
    // A crash in the middle of a note, and the next one after it.
    let torn = &genuine[..genuine.len() / 2];
    std::fs::write(&notes, format!("{foreign}{forged}noise{torn}{genuine}{torn}")).unwrap();
    let vouched = against(&place.path(), &[&notes]).unwrap();
    assert_eq!((vouched.checkpoints, vouched.unreadable), (1, 3));
    assert_eq!(vouched.sequence, intact(&place.path()).last.sequence);
    assert_eq!(
        vouched.other_logs.values().copied().collect::<Vec<_>>(),
        [intact(&other.path()).last.sequence]
    );
    // An anchor without checkpoints of this log confirms nothing.
    let vouched = against(&place.path(), &[&theirs]).unwrap();
    assert_eq!((vouched.checkpoints, vouched.sequence), (0, 0));
}

#[test]
fn notes_path_to_a_pipe_or_device_is_rejected_without_blocking() {
    let place = TestFolder::new();
    let (pipe, file) = (place.beside("pipe"), place.beside("audit.notes"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        assert!(matches!(notes_in_file(path), Err(AnchorError::NotAFile { .. })), "{}", path.display());
    }
    std::fs::write(&file, "a note").unwrap();
    assert_eq!(notes_in_file(&file).unwrap(), b"a note");
}

#[test]
fn anchor_file_in_the_state_directory_is_rejected() {
    let place = TestFolder::new();
    let inside: PathBuf = place.path().with_file_name("audit.notes");
    std::fs::create_dir_all(inside.parent().unwrap()).unwrap();
    let settings = Settings { anchors: vec![file_anchor(&inside)], ..Settings::default() };
    let refused = AuditLog::open_with(&place.path(), settings).unwrap_err();
    assert!(matches!(refused, AuditError::Anchor { .. }), "{refused}");
    // The head of a log has its hash, so the anchor needs none of the records.
    append(&place.path(), &[file_anchor(&place.beside("out.notes"))], 0..1);
    let text = std::fs::read_to_string(place.beside("out.notes")).unwrap();
    let first = lines(&place.path().join("00000001.jsonl"))[0].clone();
    assert!(text.contains(&format!("belljar-audit/{}\n", member(&first, "hash"))), "{text}");
}
