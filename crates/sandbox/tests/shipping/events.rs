//! Tests of the contents of an event, and of its cost.

use crate::queue::EventQueue;
use belljar_contract::id::RunId;
use belljar_sandbox::config::LogShippingConfig;
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::event::{Event, EventSink};
use belljar_sandbox::shipping::{
    ExecutionEvent, ExecutionOutcome, FinishedExecution, RawLogs, RowCompleteness, RowSource, Shipper,
};
use std::io::{Cursor, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Rows that are there.
#[derive(Debug)]
pub(crate) struct ReadyRows(pub(crate) &'static str);

/// Rows that come when the test sends them, or never.
#[derive(Debug)]
struct DelayedRows(Receiver<Vec<u8>>);

impl RowSource for ReadyRows {
    fn open(self: Box<Self>) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(self.0)))
    }
}

impl RowSource for DelayedRows {
    fn open(self: Box<Self>) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(self)
    }
}

impl Read for DelayedRows {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Ok(bytes) = self.0.recv() else { return Ok(0) };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

fn awaited() -> (Sender<Vec<u8>>, Box<dyn RowSource>) {
    let (sender, receiver) = channel();
    (sender, Box::new(DelayedRows(receiver)))
}

const RAW: LogShippingConfig = LogShippingConfig {
    enabled: true,
    collection_timeout: Duration::from_secs(5),
    max_log_bytes: 1 << 20,
    ship_raw_logs: true,
};

/// Ships one execution.
pub(crate) fn shipped(
    config: LogShippingConfig,
    stdout: &[u8],
    stderr: &[u8],
    rows: Option<Box<dyn RowSource>>,
) -> Option<ExecutionEvent> {
    let queue = Arc::new(EventQueue::with_room_for(1));
    ship(&Shipper::new(config, queue.clone()), stdout, stderr, rows);
    queue.take().pop().map(|Event::Execution(event)| *event)
}

fn ship(shipper: &Shipper, stdout: &[u8], stderr: &[u8], rows: Option<Box<dyn RowSource>>) {
    let id = |text| CorrelationId::parse(text).ok();
    let finished = FinishedExecution {
        sandbox: &RunId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap(),
        backend: "native",
        correlation: &Correlation { agent_id: id("agent-1"), task_id: id("t"), ..Correlation::default() },
        outcome: ExecutionOutcome::Exited(3),
        stdout,
        stderr,
        is_truncated: false,
        took: Duration::from_millis(1_234),
    };
    shipper.ship(&finished, rows);
}

/// Ships with raw logs and a size limit.
fn raw(room: usize, stdout: &[u8], stderr: &[u8], rows: &'static str) -> RawLogs {
    let config = LogShippingConfig { max_log_bytes: room, ..RAW };
    shipped(config, stdout, stderr, Some(Box::new(ReadyRows(rows)))).unwrap().raw.unwrap()
}

#[test]
fn by_default_nothing_of_what_was_written_is_told() {
    let rows = Box::new(ReadyRows("{\"host\": \"a.example\"}\nno row\n[1]\n\n{\"host\": 2}\n"));
    let event = shipped(LogShippingConfig::default(), b"a secret", b"and more", Some(rows)).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&Event::Execution(Box::new(event))).unwrap(), @r#"
    {
      "event": "execution",
      "sandbox": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
      "backend": "native",
      "agent_id": "agent-1",
      "session_id": null,
      "task_id": "t",
      "request_id": null,
      "outcome": {
        "kind": "exited",
        "value": 3
      },
      "execution_time_ms": 1234,
      "stdout_bytes": 8,
      "stderr_bytes": 8,
      "truncated": false,
      "row_count": 2,
      "malformed_row_count": 2,
      "collection": "complete",
      "lost_events": 0
    }
    "#);
}

#[test]
fn nothing_is_told_where_that_is_turned_off() {
    let config = LogShippingConfig { enabled: false, ..RAW };
    assert_eq!(shipped(config, b"out", b"err", None), None);
}

#[test]
fn raw_logs_are_told_in_their_order_as_far_as_there_is_room() {
    let rows = "{\"a\":1}\n{\"b\":2}\n";
    let all = raw(100, b"out", b"err", rows);
    assert_eq!((all.stdout.as_str(), all.stderr.as_str(), all.rows.len()), ("out", "err", 2));
    assert!(!all.truncated);
    // For two rows of eight bytes with their line ends, and no more.
    let some = raw(16, b"out", b"err", rows);
    assert_eq!((some.stdout.as_str(), some.stderr.as_str(), some.rows.len()), ("out", "err", 1));
    assert!(some.truncated);
    let few = raw(4, b"out", b"err", rows);
    assert_eq!((few.stdout.as_str(), few.stderr.as_str(), few.rows.len()), ("out", "e", 0));
    assert!(few.truncated);
}

#[test]
fn no_character_is_cut_in_two_and_what_is_no_text_is_told_as_such() {
    assert_eq!(raw(3, "aüü".as_bytes(), b"", "").stdout, "aü");
    assert_eq!(raw(2, "aüü".as_bytes(), b"", "").stdout, "a");
    assert_eq!(raw(100, b"a\xffb", b"", "").stdout, "a\u{fffd}b");
    let long = vec![b'x'; 1 << 20];
    let cut = raw(1_000, &long, b"", "");
    assert_eq!((cut.stdout.len(), cut.truncated), (1_000, true));
}

#[test]
fn rows_that_never_come_are_waited_for_no_longer_than_agreed() {
    let config = LogShippingConfig { collection_timeout: Duration::from_millis(100), ..RAW };
    let (sender, rows) = awaited();
    sender.send(b"{\"first\":1}\n".to_vec()).unwrap();
    let begun = Instant::now();
    let event = shipped(config, b"out", b"", Some(rows)).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!((event.collection, event.row_count), (RowCompleteness::TimedOut, 1));
    let raw = event.raw.unwrap();
    assert_eq!((raw.stdout.as_str(), raw.rows.len(), raw.truncated), ("out", 1, true));
    drop(sender);
}

#[test]
fn sources_that_hang_are_few_and_others_are_then_not_read() {
    let config = LogShippingConfig { collection_timeout: Duration::from_millis(1), ..RAW };
    let queue = Arc::new(EventQueue::with_room_for(100));
    let shipper = Shipper::new(config, queue.clone());
    let senders: Vec<_> = (0..9)
        .map(|_| {
            let (sender, rows) = awaited();
            ship(&shipper, b"", b"", Some(rows));
            sender
        })
        .collect();
    let ends: Vec<RowCompleteness> =
        queue.take().into_iter().map(|Event::Execution(event)| event.collection).collect();
    assert_eq!(ends[..8], [RowCompleteness::TimedOut; 8]);
    assert_eq!(ends[8], RowCompleteness::Failed);
    drop(senders);
}

#[test]
fn rows_beyond_the_room_are_not_read() {
    let config = LogShippingConfig { max_log_bytes: 20, ..RAW };
    let rows = Box::new(ReadyRows("{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"));
    let event = shipped(config, b"", b"", Some(rows)).unwrap();
    assert_eq!((event.collection, event.row_count), (RowCompleteness::Truncated, 2));
    assert!(event.raw.unwrap().truncated);
}

#[test]
fn a_sink_without_room_loses_events_that_are_counted_and_hinders_nothing() {
    let queue = Arc::new(EventQueue::with_room_for(1));
    let shipper = Shipper::new(RAW, queue.clone());
    for _ in 0..3 {
        ship(&shipper, b"", b"", None);
    }
    assert_eq!((shipper.lost(), queue.lost()), (2, 2));
    assert_eq!(queue.take().len(), 1);
    ship(&shipper, b"", b"", None);
    let Event::Execution(event) = queue.take().pop().unwrap();
    assert_eq!(event.lost_events, 2);
    assert!(queue.offer(Event::Execution(event)).is_ok());
}

#[test]
fn what_is_not_free_of_secrets_in_time_is_left_out() {
    let config = LogShippingConfig { collection_timeout: Duration::ZERO, ..RAW };
    let event = shipped(config, b"out", b"err", None).unwrap();
    assert_eq!((event.stdout_bytes, event.stderr_bytes), (3, 3));
    assert_eq!(event.raw.unwrap(), RawLogs { truncated: true, ..RawLogs::default() });
}
