//! Processes append, alone and concurrently, and are killed at any moment.

use crate::log::{TestFolder, intact, run};
use belljar_store::audit::{AuditLog, Event, Receipt, Settings, reading};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Variables for the child process: the log's folder, the text of its records, and their number.
const FOLDER: &str = "BELLJAR_TEST_AUDIT_FOLDER";
const NAME: &str = "BELLJAR_TEST_AUDIT_NAME";
const MANY: &str = "BELLJAR_TEST_AUDIT_MANY";

const SEGMENT: u64 = 200 << 10;

/// Child process that appends until it is killed, and prints what is acknowledged. As a test, it does that once.
#[test]
fn child_process_appends_records_and_prints_acknowledgements() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let many = std::env::var(MANY).unwrap().parse().unwrap();
        append(Path::new(&folder), &std::env::var(NAME).unwrap(), many);
        return;
    }
    let place = TestFolder::new();
    let told = AppendingChild::begin(&place.path(), "alone", 300).end();
    assert_eq!(told.len(), 300);
    assert_all_there(&place.path(), &told, 300);
}

fn append(folder: &Path, name: &str, many: u64) {
    const IN_FLIGHT: usize = 64;
    let log =
        AuditLog::open_with(folder, Settings { segment_bytes: SEGMENT, ..Settings::default() }).unwrap();
    let (free, next) = mpsc::sync_channel(IN_FLIGHT);
    (0..IN_FLIGHT).for_each(|_| free.send(()).unwrap());
    for number in 0..many {
        next.recv().unwrap();
        // Some are long, so that writing a batch takes its time.
        let filler = "x".repeat(if number % 7 == 0 { 20_000 } else { 10 });
        let text = format!("{name}-{number}");
        let event = Event::new("test", Some(&run(1)), &json!({ "text": text, "filler": filler })).unwrap();
        let free = free.clone();
        log.submit(event, move |outcome| {
            let Receipt { sequence, hash } = outcome.unwrap();
            let line = format!("receipt {sequence} {hash} {text}\n");
            std::io::stdout().write_all(line.as_bytes()).unwrap();
            free.send(()).unwrap();
        });
    }
    log.close();
}

/// Acknowledged records: texts by sequence number.
type AcknowledgedRecords = BTreeMap<u64, (String, String)>;

/// A child.
struct AppendingChild {
    child: Child,
    told: mpsc::Receiver<String>,
    reader: std::thread::JoinHandle<()>,
}

// === impl AppendingChild ===

impl AppendingChild {
    fn begin(folder: &Path, name: &str, many: u64) -> Self {
        let this = "crash::child_process_appends_records_and_prints_acknowledgements";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", this, "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .env(NAME, name)
            .env(MANY, many.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let (to, told) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in from.lines().map_while(Result::ok) {
                to.send(line).unwrap();
            }
        });
        Self { child, told, reader }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for its end and returns what it has printed as acknowledged.
    fn end(mut self) -> AcknowledgedRecords {
        self.child.wait().unwrap();
        self.reader.join().unwrap();
        let lines: Vec<String> = self.told.try_iter().collect();
        // The harness writes to the same stream, before and after.
        let told = lines.iter().filter_map(|line| line.split_once("receipt ")?.1.split_once(' '));
        told.filter_map(|(sequence, rest)| {
            let (hash, text) = rest.split_once(' ')?;
            Some((sequence.parse().ok()?, (hash.to_owned(), text.to_owned())))
        })
        .collect()
    }
}

/// Checks that every acknowledged record is there, once, at its reported position.
#[track_caller]
fn assert_all_there(folder: &Path, told: &AcknowledgedRecords, at_most: usize) {
    let mut there = BTreeMap::new();
    let mut texts = BTreeMap::<String, u32>::new();
    reading::each(folder, &mut |record, _| {
        if record.kind == "test" {
            let event: serde_json::Value = serde_json::from_str(record.event).unwrap();
            let text = event["text"].as_str().unwrap().to_owned();
            *texts.entry(text.clone()).or_default() += 1;
            there.insert(record.sequence, (record.hash.to_string(), text));
        }
    })
    .unwrap();
    for (sequence, expected) in told {
        assert_eq!(there.get(sequence), Some(expected), "record {sequence}");
    }
    assert!(texts.values().all(|times| *times == 1), "no record is there twice");
    assert!(there.len() <= at_most, "{} records", there.len());
    assert_eq!(intact(folder).records, there.len() as u64);
}

#[test]
fn acknowledged_records_survive_a_kill_at_any_moment() {
    let place = TestFolder::new();
    let folder = place.path();
    let mut told = AcknowledgedRecords::new();
    let mut torn = 0;
    for turn in 0_u64..40 {
        let mut child = AppendingChild::begin(&folder, &format!("turn{turn}"), u64::MAX);
        // Numbers without a pattern, the same in each run.
        let delay = Duration::from_micros(turn * 7919 % 60_000);
        belljar_testkit::wait::until(|| folder.join("key").exists());
        std::thread::sleep(delay);
        child.kill();
        told.append(&mut child.end());
        // The log was not opened since.
        let found = intact(&folder);
        let now = found.torn_tails + u64::from(found.has_leftover);
        // A child that was killed before it had opened the log has changed nothing.
        assert!(now == torn || now == torn + 1, "{now} behind {torn}");
        torn = now;
    }
    AuditLog::open(&folder).unwrap().close();
    assert!(told.len() > 100, "{}", told.len());
    assert_all_there(&folder, &told, usize::MAX);
    eprintln!("{} acknowledged, {torn} batches cut off", told.len());
}

#[test]
fn killed_process_does_not_block_others_appending_to_the_log() {
    const EACH: u64 = 400;
    let place = TestFolder::new();
    let folder = place.path();
    let children: Vec<AppendingChild> =
        (0..4).map(|number| AppendingChild::begin(&folder, &format!("child{number}"), EACH)).collect();
    let mut victims = 0;
    let mut told = AcknowledgedRecords::new();
    for turn in 0..6 {
        let mut victim = AppendingChild::begin(&folder, &format!("victim{turn}"), u64::MAX);
        std::thread::sleep(Duration::from_millis(20 + 13 * turn));
        victim.kill();
        let theirs = victim.end();
        victims += theirs.len();
        told.extend(theirs);
    }
    for child in children {
        let theirs = child.end();
        assert_eq!(theirs.len() as u64, EACH);
        told.extend(theirs);
    }
    assert_eq!(told.len() as u64, 4 * EACH + victims as u64, "no two were told the same record");
    AuditLog::open(&folder).unwrap().close();
    assert_all_there(&folder, &told, usize::MAX);
}
