//! Rows of an execution from the hatches: JSON lines, read within a time and a size.
//!
//! A source may hang for ever. Each is read by a thread of its own, for which no caller waits longer than agreed; of those
//! that hang there are never more than a few.

use super::redaction::Redactor;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Instant;

/// Source of rows.
pub trait RowSource: Debug + Send {
    /// Opens the rows for reading.
    ///
    /// # Errors
    /// [`std::io::Error`] when it can't be.
    fn open(self: Box<Self>) -> std::io::Result<Box<dyn Read + Send>>;
}

/// Completeness of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowCompleteness {
    /// There was nothing to collect from.
    #[default]
    None,
    /// All rows are there.
    Complete,
    /// There were more rows than there is room for.
    Truncated,
    /// Time was over.
    TimedOut,
    /// The rows could not be read on.
    Failed,
}

/// Collected rows.
#[derive(Debug, Default)]
pub(super) struct CollectedRows {
    pub(super) rows: Vec<Value>,
    pub(super) malformed: u64,
    pub(super) collection: RowCompleteness,
}

/// Reads rows.
#[derive(Debug, Default)]
pub(super) struct RowCollector {
    reading: Arc<AtomicUsize>,
}

/// Message of a reading thread.
enum ReaderMessage {
    Row(Value),
    Malformed,
    End(RowCompleteness),
}

/// Counts a reading thread while it lives.
struct ReaderCount(Arc<AtomicUsize>);

const MOST_READING: usize = 8;
const MOST_ROWS: usize = 10_000;

// === impl RowCollector ===

impl RowCollector {
    /// Reads until the deadline at most, up to a size limit; without secrets, if they can be redacted.
    pub(super) fn collect(
        &self,
        source: Box<dyn RowSource>,
        room_bytes: usize,
        deadline: Instant,
        redactor: Option<Arc<Redactor>>,
    ) -> CollectedRows {
        let mut collected = CollectedRows { collection: RowCompleteness::Failed, ..CollectedRows::default() };
        if self.reading.fetch_add(1, Ordering::SeqCst) >= MOST_READING {
            self.reading.fetch_sub(1, Ordering::SeqCst);
            return collected;
        }
        let reading = ReaderCount(Arc::clone(&self.reading));
        let (teller, told) = sync_channel(64);
        let thread = std::thread::Builder::new().name("rows".to_owned()).spawn(move || {
            let _reading = reading;
            let end = read(source, room_bytes, redactor.as_deref(), &teller);
            let _ = teller.send(ReaderMessage::End(end));
        });
        if thread.is_err() {
            return collected;
        }
        loop {
            match told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(ReaderMessage::Row(row)) => collected.rows.push(row),
                Ok(ReaderMessage::Malformed) => collected.malformed += 1,
                Ok(ReaderMessage::End(collection)) => return CollectedRows { collection, ..collected },
                Err(RecvTimeoutError::Timeout) => {
                    return CollectedRows { collection: RowCompleteness::TimedOut, ..collected };
                }
                Err(RecvTimeoutError::Disconnected) => return collected,
            }
        }
    }
}

// === impl ReaderCount ===

impl Drop for ReaderCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads line by line. Ends early when the receiver is gone.
fn read(
    source: Box<dyn RowSource>,
    room_bytes: usize,
    redactor: Option<&Redactor>,
    teller: &SyncSender<ReaderMessage>,
) -> RowCompleteness {
    let Ok(source) = source.open() else { return RowCompleteness::Failed };
    // A byte more than there is room for shows that there was more.
    let mut source = BufReader::new(source.take(room_bytes as u64 + 1));
    let mut left = room_bytes;
    for _ in 0..MOST_ROWS {
        let mut line = Vec::new();
        match source.read_until(b'\n', &mut line) {
            Ok(0) => return RowCompleteness::Complete,
            Ok(length) if length > left => return RowCompleteness::Truncated,
            Ok(length) => left -= length,
            Err(_) => return RowCompleteness::Failed,
        }
        let row = serde_json::from_slice(&line).ok().filter(Value::is_object);
        let told = match row {
            Some(row) => ReaderMessage::Row(match redactor {
                Some(redactor) => redactor.value(&row),
                None => row,
            }),
            None if line.trim_ascii().is_empty() => continue,
            None => ReaderMessage::Malformed,
        };
        if teller.send(told).is_err() {
            return RowCompleteness::TimedOut;
        }
    }
    RowCompleteness::Truncated
}
