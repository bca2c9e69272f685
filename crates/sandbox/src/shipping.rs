//! What is told of an execution once it is over (`spec/3 §Container Log Shipping`).
//!
//! Sizes, counts and times, always; what was written itself only where the configuration says so, and then without what
//! looks like a secret. Telling never fails the run that it tells of, and delays it by no more than the time that the
//! configuration gives to collecting: what is not there by then, or not yet without secrets, is left out.

mod collection;
mod redaction;

pub use collection::{Collection, RowSource};
pub use redaction::Redactor;

use crate::config::LogShippingConfig;
use crate::correlation::Correlation;
use crate::event::{Event, EventSink};
use belljar_confine::sealed::Outcome;
use belljar_contract::id::RunId;
use collection::{Collected, Collector};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tells of executions.
#[derive(Debug)]
pub struct Shipper {
    config: LogShippingConfig,
    sink: Arc<dyn EventSink>,
    redactor: Arc<Redactor>,
    collector: Collector,
    lost: AtomicU64,
}

/// An execution that is over.
#[derive(Debug)]
pub struct Finished<'a> {
    /// The sandbox.
    pub sandbox: &'a RunId,
    /// The name of its backend.
    pub backend: &'static str,
    /// Whom it was for.
    pub correlation: &'a Correlation,
    /// How the program ended.
    pub outcome: ExecutionOutcome,
    /// What it wrote, as far as it was kept.
    pub stdout: &'a [u8],
    /// What it wrote to standard error, as far as it was kept.
    pub stderr: &'a [u8],
    /// Whether it wrote more than that.
    pub is_truncated: bool,
    /// How long it took.
    pub took: Duration,
}

/// How a program in a sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum ExecutionOutcome {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// With its sandbox.
    Killed,
    /// With its sandbox, whose memory was used up.
    OutOfMemory,
    /// Its time was over.
    TimedOut,
}

/// What is told of an execution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutionEvent {
    /// The sandbox.
    pub sandbox: RunId,
    /// The name of its backend.
    pub backend: &'static str,
    /// Whom it was for.
    #[serde(flatten)]
    pub correlation: Correlation,
    /// How the program ended.
    pub outcome: ExecutionOutcome,
    /// How long it took.
    pub execution_time_ms: u64,
    /// How much it wrote, in bytes, as far as that was kept.
    pub stdout_bytes: u64,
    /// How much it wrote to standard error.
    pub stderr_bytes: u64,
    /// Whether it wrote more than was kept.
    pub truncated: bool,
    /// How many rows the hatches told.
    pub row_count: u64,
    /// How many of their lines were no rows.
    pub malformed_row_count: u64,
    /// Whether these are all rows.
    pub collection: Collection,
    /// How many events were lost before this one.
    pub lost_events: u64,
    /// What was written, if that is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawLogs>,
}

/// What was written, without what looks like a secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RawLogs {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// What the hatches told.
    pub rows: Vec<Value>,
    /// Whether something had to be left out.
    pub truncated: bool,
}

// === impl Shipper ===

impl Shipper {
    /// One that tells it to `sink`.
    pub fn new(config: LogShippingConfig, sink: Arc<dyn EventSink>) -> Self {
        let (redactor, collector, lost) =
            (Arc::new(Redactor::new()), Collector::default(), AtomicU64::new(0));
        Self { config, sink, redactor, collector, lost }
    }

    /// How many events were lost because the sink had no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Tells of an execution, with what its hatches have to tell of it.
    pub fn ship(&self, finished: &Finished<'_>, rows: Option<Box<dyn RowSource>>) {
        if !self.config.enabled {
            return;
        }
        let deadline = Instant::now() + self.config.collection_timeout;
        let mut room = self.config.max_log_bytes;
        let is_raw = self.config.ship_raw_logs;
        // What is there already comes first: a source of rows that hangs must not cost it.
        let mut raw = is_raw.then(|| self.streams(finished, &mut room, deadline));
        let collected = rows.map_or_else(Collected::default, |rows| {
            let redactor = is_raw.then(|| Arc::clone(&self.redactor));
            self.collector.collect(rows, self.config.max_log_bytes, deadline, redactor)
        });
        let (row_count, malformed_row_count) = (collected.rows.len() as u64, collected.malformed);
        let collection = collected.collection;
        if let Some(raw) = &mut raw {
            raw.add_rows(collected, room);
        }
        let event = ExecutionEvent {
            sandbox: finished.sandbox.clone(),
            backend: finished.backend,
            correlation: finished.correlation.clone(),
            outcome: finished.outcome,
            execution_time_ms: u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX),
            stdout_bytes: finished.stdout.len() as u64,
            stderr_bytes: finished.stderr.len() as u64,
            truncated: finished.is_truncated,
            row_count,
            malformed_row_count,
            collection,
            lost_events: self.lost(),
            raw,
        };
        if self.sink.offer(Event::Execution(Box::new(event))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Standard output first, then standard error, as far as there is room.
    fn streams(&self, finished: &Finished<'_>, room: &mut usize, deadline: Instant) -> RawLogs {
        let (stdout, is_stdout_cut) = self.harmless(finished.stdout, room, deadline);
        let (stderr, is_stderr_cut) = self.harmless(finished.stderr, room, deadline);
        RawLogs { stdout, stderr, rows: Vec::new(), truncated: is_stdout_cut || is_stderr_cut }
    }

    /// The text without secrets, as much of it as there is room for; none of it, if that takes too long.
    fn harmless(&self, bytes: &[u8], room: &mut usize, deadline: Instant) -> (String, bool) {
        // More than could be told is not looked at, but for what secrets make it longer.
        let looked_at = room.saturating_mul(2).saturating_add(LONGEST_SECRET).min(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..looked_at]);
        let Some(mut text) = self.redactor.text_until(&text, Some(deadline)) else {
            return (String::new(), !bytes.is_empty());
        };
        if looked_at < bytes.len() {
            // A secret that begins where the looking ends can't be told from other text.
            let end = text.floor_char_boundary(text.len().saturating_sub(LONGEST_SECRET));
            text.truncate(end);
        }
        let end = text.floor_char_boundary((*room).min(text.len()));
        let is_cut = end < text.len() || looked_at < bytes.len();
        text.truncate(end);
        *room -= end;
        (text, is_cut)
    }
}

/// In bytes; the longest are private keys.
const LONGEST_SECRET: usize = 16 << 10;

// === impl RawLogs ===

impl RawLogs {
    /// Rows come last, as far as there is room.
    fn add_rows(&mut self, collected: Collected, mut room: usize) {
        self.truncated |= !matches!(collected.collection, Collection::None | Collection::Complete);
        for row in collected.rows {
            let Some(left) = room.checked_sub(row.to_string().len()) else {
                self.truncated = true;
                return;
            };
            room = left;
            self.rows.push(row);
        }
    }
}

// === impl ExecutionOutcome ===

impl From<Outcome> for ExecutionOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Exited(code) => Self::Exited(code),
            Outcome::Signaled(signal) => Self::Signaled(signal),
            Outcome::Killed => Self::Killed,
            Outcome::OutOfMemory => Self::OutOfMemory,
        }
    }
}
