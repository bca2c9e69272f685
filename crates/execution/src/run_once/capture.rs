//! Captures a program's output up to a limit, and reports its model calls.

use super::RunObserver;
use belljar_journal::RunJournal;
use belljar_sandbox::streams::Stream;
use belljar_sandbox::supervise::Hearer;
use std::time::Duration;

/// Captured output.
#[derive(Debug, Default)]
pub(super) struct CapturedStreams {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    most: usize,
    has_lost_stdout: bool,
    has_lost_stderr: bool,
}

/// Receiver of a program's output and model calls.
pub(super) struct Capture<'c> {
    pub(super) captured: &'c mut CapturedStreams,
    pub(super) book: &'c RunJournal,
    pub(super) watch: &'c mut dyn RunObserver,
    /// Number of calls that were reported.
    pub(super) reported: usize,
}

impl Hearer for Capture<'_> {
    fn heard(&mut self, stream: Stream, bytes: &[u8]) {
        let kept = self.captured.take(bytes, stream);
        if stream == Stream::Stdout && !kept.is_empty() {
            self.watch.printed(kept);
        }
    }

    fn tick(&mut self) {
        for call in self.book.calls_from(self.reported) {
            self.reported += 1;
            self.watch.called(&call);
        }
    }

    fn is_to_stop(&self) -> Option<Duration> {
        self.watch.is_canceled().then_some(Duration::ZERO)
    }
}

// === impl CapturedStreams ===

impl CapturedStreams {
    /// Returns an empty capture with that limit, in bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Keeps as many bytes as the limit permits, and returns them.
    fn take<'b>(&mut self, bytes: &'b [u8], stream: Stream) -> &'b [u8] {
        let room = self.most.saturating_sub(self.stdout.len() + self.stderr.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        let (into, has_lost) = match stream {
            Stream::Stdout => (&mut self.stdout, &mut self.has_lost_stdout),
            Stream::Stderr => (&mut self.stderr, &mut self.has_lost_stderr),
        };
        into.extend_from_slice(kept);
        *has_lost |= !dropped.is_empty();
        kept
    }

    /// Appends a truncation notice to standard error, if output was dropped.
    pub(super) fn finish(&mut self) {
        if !self.is_cut() {
            return;
        }
        let newline = if self.stderr.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
        let marker =
            format!("{newline}belljar: more than {} bytes were printed; the rest was dropped\n", self.most);
        self.stderr.extend_from_slice(marker.as_bytes());
    }

    /// Returns true if output was dropped.
    pub(super) fn is_cut(&self) -> bool {
        self.has_lost_stdout || self.has_lost_stderr
    }

    /// Returns true if standard output was dropped, which is the program's answer.
    pub(super) fn has_lost_answer(&self) -> bool {
        self.has_lost_stdout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_limit_is_shared_by_both_streams_and_truncation_is_noted() {
        let mut captured = CapturedStreams::new(10);
        assert_eq!(captured.take(b"12345", Stream::Stdout), b"12345");
        assert_eq!(captured.take(b"abc", Stream::Stderr), b"abc");
        assert!(!captured.is_cut());
        assert_eq!(captured.take(b"defg", Stream::Stderr), b"de");
        assert!(captured.is_cut() && !captured.has_lost_answer());
        assert_eq!(captured.take(b"6", Stream::Stdout), b"");
        assert!(captured.has_lost_answer());
        captured.finish();
        let said = "abcde\nbelljar: more than 10 bytes were printed; the rest was dropped\n";
        assert_eq!(String::from_utf8(captured.stderr).unwrap(), said);
        assert_eq!(captured.stdout, b"12345");
    }

    #[test]
    fn output_of_exactly_the_limit_is_not_truncated() {
        let mut captured = CapturedStreams::new(3);
        captured.take(b"abc", Stream::Stdout);
        captured.finish();
        assert!(!captured.is_cut() && captured.stderr.is_empty());
    }
}
