//! Text that could be misinterpreted, and many records.

use crate::log::{TestFolder, intact, run};
use belljar_store::audit::{AuditError, AuditLog, Event, Settings, reading};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

/// Texts that a model's name, a path or an error may contain.
fn hostile() -> Vec<String> {
    let record = "{\"sequence\":4,\"time\":\"2026-01-01T00:00:00.000000Z\",\"kind\":\"test\",\"event\":{}}";
    let links = format!("\",\"content\":\"{0}\",\"previous\":\"{0}\",\"hash\":\"{0}\"}}\n", "0".repeat(64));
    vec![
        format!("x\n{record}\n"),
        format!("x\"}}{links}{record}"),
        format!("x\r\n{record}"),
        "\0\u{1}\u{8}\u{1b}[2J\u{1b}]0;title\u{7}\u{7f}".to_owned(),
        "\u{9b}31m\u{85}\u{2028}\u{2029}\u{202e}gnp.exe\u{200b}".to_owned(),
        "\\\",\"kind\":\"checkpoint\",\"event\":{\"signature\":\"".to_owned(),
        "\u{fffd}\u{10ffff}é漢🦀".to_owned(),
    ]
}

#[test]
fn hostile_text_stays_inside_its_record() {
    let place = TestFolder::new();
    let log = AuditLog::open(&place.path()).unwrap();
    for text in hostile() {
        log.append(Event::new("test", Some(&run(1)), &json!({ "text": text, &text: 1 })).unwrap()).unwrap();
    }
    log.close();
    let raw = std::fs::read(place.path().join("00000001.jsonl")).unwrap();
    let lines = raw.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    // The log itself has added its beginning and a checkpoint for each.
    assert_eq!(lines.len(), 2 + 2 * hostile().len());
    let seen = lines.iter().filter(|line| line["kind"] == "test");
    let seen: Vec<&str> = seen.map(|line| line["event"]["text"].as_str().unwrap()).collect();
    assert_eq!(seen, hostile());
    let is_plain =
        |character: char| !character.is_control() && !('\u{2028}'..='\u{202e}').contains(&character);
    assert!(std::str::from_utf8(&raw).unwrap().replace('\n', "").chars().all(is_plain));
    assert_eq!(intact(&place.path()).records, hostile().len() as u64);
}

#[test]
fn hundred_thousand_concurrent_records_are_written_once_and_verify() {
    const MANY: u64 = 100_000;
    let place = TestFolder::new();
    let log = Arc::new(
        AuditLog::open_with(&place.path(), Settings { segment_bytes: 8 << 20, ..Settings::default() })
            .unwrap(),
    );
    let acknowledged = Arc::new(AtomicU64::new(0));
    let submitters: Vec<_> = (0..4_u64)
        .map(|who| {
            let (log, acknowledged) = (Arc::clone(&log), Arc::clone(&acknowledged));
            std::thread::spawn(move || {
                let (free, next) = mpsc::sync_channel(2_000);
                (0..2_000).for_each(|_| free.send(()).unwrap());
                for number in (0..MANY).filter(|number| number % 4 == who) {
                    next.recv().unwrap();
                    let (free, acknowledged) = (free.clone(), Arc::clone(&acknowledged));
                    let event = Event::new("test", Some(&run(1)), &json!({ "number": number })).unwrap();
                    log.submit(event, move |outcome| {
                        outcome.unwrap();
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                        free.send(()).unwrap();
                    });
                }
            })
        })
        .collect();
    submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
    drop(log);
    assert_eq!(acknowledged.load(Ordering::Relaxed), MANY);
    let mut seen = vec![0_u8; usize::try_from(MANY).unwrap()];
    reading::each(&place.path(), &mut |record, _| {
        if record.kind == "test" {
            let event: Value = serde_json::from_str(record.event).unwrap();
            seen[usize::try_from(event["number"].as_u64().unwrap()).unwrap()] += 1;
        }
    })
    .unwrap();
    assert!(seen.iter().all(|times| *times == 1));
    let found = intact(&place.path());
    assert_eq!(found.records, MANY);
    assert!(
        found.own_records < MANY / 4,
        "records that come at once share a checkpoint: {}",
        found.own_records
    );
}

#[test]
fn submit_never_blocks_and_full_queue_rejects_at_once() {
    let place = TestFolder::new();
    let log =
        AuditLog::open_with(&place.path(), Settings { most_waiting: 10, ..Settings::default() }).unwrap();
    // Another process holds the lock, so nothing is written.
    let lock = std::fs::File::open(place.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let (told, outcomes) = mpsc::channel();
    let submit = |number: u64| {
        let told = told.clone();
        log.submit(Event::new("test", None, &json!({ "number": number })).unwrap(), move |outcome| {
            told.send((number, outcome)).unwrap();
        });
    };
    // One batch is taken and waits for the lock; ten more events wait behind it.
    (0..30).for_each(submit);
    let refused: Vec<_> = outcomes.try_iter().collect();
    assert!(
        refused.len() >= 10 && refused.iter().all(|(_, outcome)| matches!(outcome, Err(AuditError::Full)))
    );
    lock.unlock().unwrap();
    let written = 30 - refused.len();
    assert!(outcomes.iter().take(written).all(|(_, outcome)| outcome.is_ok()));
    submit(30);
    assert!(outcomes.recv().unwrap().1.is_ok(), "there is room again");
    log.close();
    assert_eq!(intact(&place.path()).records, written as u64 + 1);
}
