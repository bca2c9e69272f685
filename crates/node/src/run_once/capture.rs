//! Captures a program's output up to a limit, and watches its deadline.

use super::{OnceError, Watch};
use belljar_confine::Usage;
use belljar_confine::sealed::{Ending, Outcome};
use belljar_journal::Book;
use belljar_sandbox::enclosure::Enclosure;
use belljar_sandbox::streams::{Stream, Streams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Captured output.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    most: usize,
    has_lost_stdout: bool,
    has_lost_stderr: bool,
}

/// A program that is being watched.
pub(super) struct Watching<'w> {
    pub(super) streams: Streams,
    /// Time at which it is killed; `None` once it has been.
    pub(super) deadline: Option<Instant>,
    pub(super) book: &'w Book,
}

/// Reasons why a program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It ended by itself, or with its sandbox.
    ByItself,
    /// Its time limit was over.
    OutOfTime,
    /// It was canceled.
    Canceled,
}

/// Interval at which cancellation and new model calls are polled.
const TICK: Duration = Duration::from_millis(50);

/// Maximum time from the kill to the program's end. After it the program's enclosure is ended.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

// === impl Watching ===

impl Watching<'_> {
    /// Watches until the program has ended; kills it when its time limit is over or it is canceled.
    pub(super) fn until_end(
        mut self,
        enclosure: &mut Enclosure,
        captured: &mut Captured,
        watch: &mut dyn Watch,
    ) -> Result<(Ending, Reason), OnceError> {
        let (mut reason, mut told) = (Reason::ByItself, 0);
        let mut given_up = None;
        loop {
            let has_ended =
                self.wait_for_something(enclosure).map_err(|source| OnceError::Watch { source })?;
            self.streams.read(|stream, bytes| captured.hear(stream, bytes, watch));
            for call in self.book.calls_from(told) {
                told += 1;
                watch.called(&call);
            }
            if has_ended {
                let ending = enclosure.wait().map_err(OnceError::Lost)?;
                // The pipe now has all of the program's output, at most its capacity. Processes left behind may still write.
                self.streams.read(|stream, bytes| captured.hear(stream, bytes, watch));
                captured.finish();
                return Ok((ending, reason));
            }
            if given_up.is_some_and(|given_up| Instant::now() >= given_up) {
                let killed = Ending { outcome: Outcome::Killed, usage: Usage::default() };
                captured.finish();
                return Ok((killed, reason));
            }
            let Some(deadline) = self.deadline else { continue };
            reason = match (Instant::now() >= deadline, watch.is_canceled()) {
                (true, _) => Reason::OutOfTime,
                (_, true) => Reason::Canceled,
                _ => continue,
            };
            self.deadline = None;
            given_up = Some(Instant::now() + LAST_PATIENCE);
            enclosure.kill().map_err(OnceError::Lost)?;
        }
    }

    /// Waits for output or the end, at most one tick. Returns true if the program has ended.
    fn wait_for_something(&self, enclosure: &Enclosure) -> Result<bool, Errno> {
        let left = self.deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.min(TICK);
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut ready = vec![PollFd::from_borrowed_fd(enclosure.ending(), PollFlags::IN)];
        self.streams.wait_for(&mut ready);
        match poll(&mut ready, Some(&left)) {
            // The interrupting signal may be a cancellation.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
    }
}

// === impl Captured ===

impl Captured {
    /// Returns an empty capture with that limit, in bytes.
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    fn hear(&mut self, stream: Stream, bytes: &[u8], watch: &mut dyn Watch) {
        let kept = self.take(bytes, stream);
        if stream == Stream::Stdout && !kept.is_empty() {
            watch.printed(kept);
        }
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
    fn finish(&mut self) {
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
    fn both_streams_share_the_room_and_what_is_missing_is_said() {
        let mut captured = Captured::new(10);
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
    fn what_fits_exactly_is_whole() {
        let mut captured = Captured::new(3);
        captured.take(b"abc", Stream::Stdout);
        captured.finish();
        assert!(!captured.is_cut() && captured.stderr.is_empty());
    }
}
