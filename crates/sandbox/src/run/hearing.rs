//! What is heard of the runner: its log, line by line, and the last of what it complains of.

use super::Watch;
use super::supervise::Hearer;
use crate::streams::Stream;
use belljar_contract::event::LogLine;

/// Whoever watches a job, with what was heard so far.
pub(super) struct Hearing<'w> {
    watch: &'w mut dyn Watch,
    partial: Vec<u8>,
    /// The last of what the runner wrote to stderr: why it died, if it did.
    errors: Vec<u8>,
}

/// A log line longer than this is no log line.
const LONGEST_LINE: usize = 64 << 10;

const KEPT_ERRORS: usize = 16 << 10;

// === impl Hearing ===

impl<'w> Hearing<'w> {
    pub(super) fn new(watch: &'w mut dyn Watch) -> Self {
        Self { watch, partial: Vec::new(), errors: Vec::new() }
    }

    pub(super) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }
}

impl Hearing<'_> {
    fn log(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                // What is no log line is of no use to a watcher; the result tells what happened.
                if let Ok(line) = serde_json::from_slice::<LogLine>(&self.partial) {
                    self.watch.heard(&line);
                }
                self.partial.clear();
            } else if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
            }
        }
    }

    fn complaint(&mut self, bytes: &[u8]) {
        self.errors.extend_from_slice(bytes);
        if self.errors.len() > KEPT_ERRORS {
            self.errors.drain(..self.errors.len() - KEPT_ERRORS);
        }
    }
}

impl Hearer for Hearing<'_> {
    fn heard(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.log(bytes),
            Stream::Stderr => self.complaint(bytes),
        }
    }

    fn tick(&mut self) {
        self.watch.tick();
    }

    fn is_canceled(&self) -> bool {
        self.watch.is_canceled()
    }
}
