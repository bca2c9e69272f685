//! Report of an execution once it is over (`docs/contracts/tools.md#t6`).
//!
//! The report always holds sizes, counts and times. It holds the output itself only where the configuration says so, and
//! then without what looks like a secret. A report never fails the run, and delays it by no more than the configured
//! collection time. What is not there by then, or not yet redacted, is left out.

mod collection;
mod redaction;

pub use collection::{RowCompleteness, RowSource};
pub use redaction::Redactor;

use crate::config::LogShippingConfig;
use crate::correlation::Correlation;
use crate::event::{Event, EventSink};
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::id::RunId;
use collection::{CollectedRows, RowCollector};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Reports executions.
#[derive(Debug)]
pub struct Shipper {
    config: LogShippingConfig,
    sink: Arc<dyn EventSink>,
    redactor: Arc<Redactor>,
    collector: RowCollector,
    lost: AtomicU64,
}

/// An execution that is over.
#[derive(Debug)]
pub struct FinishedExecution<'a> {
    /// The sandbox.
    pub sandbox: &'a RunId,
    /// The name of its backend.
    pub backend: &'static str,
    /// Ids that the execution was for.
    pub correlation: &'a Correlation,
    /// Outcome of the program.
    pub outcome: ExecutionOutcome,
    /// Standard output, as far as it was kept.
    pub stdout: &'a [u8],
    /// Standard error, as far as it was kept.
    pub stderr: &'a [u8],
    /// True if the program wrote more than that.
    pub is_truncated: bool,
    /// Duration.
    pub took: Duration,
}

/// Outcome of a program in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum ExecutionOutcome {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was killed with its sandbox.
    Killed,
    /// It was killed with its sandbox, whose memory was used up.
    OutOfMemory,
    /// The time limit was exceeded.
    TimedOut,
}

/// Event about an execution.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExecutionEvent {
    /// The sandbox.
    pub sandbox: RunId,
    /// The name of its backend.
    pub backend: &'static str,
    /// Ids that the execution was for.
    #[serde(flatten)]
    pub correlation: Correlation,
    /// Outcome of the program.
    pub outcome: ExecutionOutcome,
    /// Duration in milliseconds.
    pub execution_time_ms: u64,
    /// Size of standard output in bytes, as far as it was kept.
    pub stdout_bytes: u64,
    /// Size of standard error in bytes, as far as it was kept.
    pub stderr_bytes: u64,
    /// True if the program wrote more than was kept.
    pub truncated: bool,
    /// Number of rows from the hatches.
    pub row_count: u64,
    /// Number of their lines that were no rows.
    pub malformed_row_count: u64,
    /// Completeness of the rows.
    pub collection: RowCompleteness,
    /// Number of events that were lost before this one.
    pub lost_events: u64,
    /// The output, if it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawLogs>,
}

/// Output, without what looks like a secret.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RawLogs {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Rows from the hatches.
    pub rows: Vec<Value>,
    /// True if something had to be left out.
    pub truncated: bool,
}

// === impl Shipper ===

impl Shipper {
    /// Makes a shipper that reports to `sink`.
    pub fn new(config: LogShippingConfig, sink: Arc<dyn EventSink>) -> Self {
        let (redactor, collector, lost) =
            (Arc::new(Redactor::new()), RowCollector::default(), AtomicU64::new(0));
        Self { config, sink, redactor, collector, lost }
    }

    /// Returns the number of events that were lost because the sink had no room.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Reports an execution, with the rows of its hatches.
    pub fn ship(&self, finished: &FinishedExecution<'_>, rows: Option<Box<dyn RowSource>>) {
        if !self.config.enabled {
            return;
        }
        let deadline = Instant::now() + self.config.collection_timeout;
        let mut room = self.config.max_log_bytes;
        let is_raw = self.config.ship_raw_logs;
        // Captured output is taken first: a hanging source of rows must not cost it.
        let mut raw = is_raw.then(|| self.streams(finished, &mut room, deadline));
        let collected = rows.map_or_else(CollectedRows::default, |rows| {
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
    fn streams(&self, finished: &FinishedExecution<'_>, room: &mut usize, deadline: Instant) -> RawLogs {
        let (stdout, is_stdout_cut) = self.harmless(finished.stdout, room, deadline);
        let (stderr, is_stderr_cut) = self.harmless(finished.stderr, room, deadline);
        RawLogs { stdout, stderr, rows: Vec::new(), truncated: is_stdout_cut || is_stderr_cut }
    }

    /// Returns the text without secrets, as much of it as there is room for; nothing, if that takes too long.
    fn harmless(&self, bytes: &[u8], room: &mut usize, deadline: Instant) -> (String, bool) {
        // More than could be reported is not searched, except for the length that secrets may add.
        let looked_at = room.saturating_mul(2).saturating_add(LONGEST_SECRET).min(bytes.len());
        let text = String::from_utf8_lossy(&bytes[..looked_at]);
        let Some(mut text) = self.redactor.text_until(&text, Some(deadline)) else {
            return (String::new(), !bytes.is_empty());
        };
        if looked_at < bytes.len() {
            // A secret that begins where the search ends can't be told from other text.
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

/// Maximum length of a secret, in bytes; the longest are private keys.
const LONGEST_SECRET: usize = 16 << 10;

// === impl RawLogs ===

impl RawLogs {
    /// Rows come last, as far as there is room.
    fn add_rows(&mut self, collected: CollectedRows, mut room: usize) {
        self.truncated |= !matches!(collected.collection, RowCompleteness::None | RowCompleteness::Complete);
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

impl From<ProgramOutcome> for ExecutionOutcome {
    fn from(outcome: ProgramOutcome) -> Self {
        match outcome {
            ProgramOutcome::Exited(code) => Self::Exited(code),
            ProgramOutcome::Signaled(signal) => Self::Signaled(signal),
            ProgramOutcome::Killed => Self::Killed,
            ProgramOutcome::OutOfMemory => Self::OutOfMemory,
        }
    }
}
