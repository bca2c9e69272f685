//! What a program prints, kept up to a bound, while it is watched over.

use super::{OnceError, Watch};
use crate::book::Book;
use belljar_confine::Usage;
use belljar_confine::sealed::{Ending, Outcome};
use belljar_sandbox::enclosure::Enclosure;
use belljar_sandbox::streams::{Stream, Streams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// What was printed.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    most: usize,
    has_lost_stdout: bool,
    has_lost_stderr: bool,
}

/// A program that is watched over.
pub(super) struct Watching<'w> {
    pub(super) streams: Streams,
    /// When it is killed; nothing once it has been.
    pub(super) deadline: Option<Instant>,
    pub(super) book: &'w Book,
}

/// Why a program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It ended by itself, or with its sandbox.
    ByItself,
    /// Its time was over.
    OutOfTime,
    /// Somebody wanted it to stop.
    Canceled,
}

/// How often it is looked whether somebody wants the program to stop, and what it has called.
const TICK: Duration = Duration::from_millis(50);

/// A program that was killed is gone at once, unless nobody carries that out; then whatever it is in is ended.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

// === impl Watching ===

impl Watching<'_> {
    /// Watches until the program has ended; kills it when its time is over or somebody wants it to stop.
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
                // What it has written is there by now, and is no more than fits. What it has left behind may write on.
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

    /// Waits for anything to do, a tick at most; says whether the program has ended.
    fn wait_for_something(&self, enclosure: &Enclosure) -> Result<bool, Errno> {
        let left = self.deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.min(TICK);
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut ready = vec![PollFd::from_borrowed_fd(enclosure.ending(), PollFlags::IN)];
        self.streams.wait_for(&mut ready);
        match poll(&mut ready, Some(&left)) {
            // A signal may be why somebody wants it to stop.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
    }
}

// === impl Captured ===

impl Captured {
    /// Nothing yet, and room for so much.
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    fn hear(&mut self, stream: Stream, bytes: &[u8], watch: &mut dyn Watch) {
        let kept = self.take(bytes, stream);
        if stream == Stream::Stdout && !kept.is_empty() {
            watch.printed(kept);
        }
    }

    /// Takes what there is room for, and gives that back.
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

    /// Says at the end of standard error that something is missing, if something is.
    fn finish(&mut self) {
        if !self.is_cut() {
            return;
        }
        let newline = if self.stderr.last().is_none_or(|last| *last == b'\n') { "" } else { "\n" };
        let marker =
            format!("{newline}belljar: more than {} bytes were printed; the rest was dropped\n", self.most);
        self.stderr.extend_from_slice(marker.as_bytes());
    }

    /// Whether something was dropped.
    pub(super) fn is_cut(&self) -> bool {
        self.has_lost_stdout || self.has_lost_stderr
    }

    /// Whether that was part of what the program answers.
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
