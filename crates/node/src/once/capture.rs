//! What a program prints, kept up to a bound, while it is watched over.

use super::enclosure::Enclosure;
use super::{OnceError, Watch};
use crate::book::Book;
use belljar_confine::Usage;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::{Ending, Outcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
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

/// The host's ends of the program's streams; nothing in place of one that is over.
pub(super) struct Streams {
    output: Option<OwnedFd>,
    errors: Option<OwnedFd>,
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

#[derive(Debug, Clone, Copy)]
enum Stream {
    Output,
    Errors,
}

/// How often it is looked whether somebody wants the program to stop, and what it has called.
const TICK: Duration = Duration::from_millis(50);

/// A program that was killed is gone at once, unless nobody carries that out; then whatever it is in is ended.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

const PORTION: usize = 64 << 10;

/// As many portions are read in a row: one that prints without end must not hold up the watch over its time.
const MOST_PORTIONS: usize = 16;

/// Makes the program's streams: nothing to read, and two pipes.
pub(super) fn streams() -> Result<(Stdio, Streams), Errno> {
    let nothing = openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let (output, write_output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (errors, write_errors) = pipe_with(PipeFlags::CLOEXEC)?;
    for ours in [&output, &errors] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    let streams = Streams { output: Some(output), errors: Some(errors) };
    Ok((Stdio::Descriptors([nothing, write_output, write_errors]), streams))
}

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
            self.streams.read(MOST_PORTIONS, captured, watch);
            for call in self.book.calls_from(told) {
                told += 1;
                watch.called(&call);
            }
            if has_ended {
                let ending = enclosure.wait()?;
                // What it has written is there by now, and is no more than fits. What it has left behind may write on.
                self.streams.read(MOST_PORTIONS, captured, watch);
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
            enclosure.kill()?;
        }
    }

    /// Waits for anything to do, a tick at most; says whether the program has ended.
    fn wait_for_something(&self, enclosure: &Enclosure) -> Result<bool, Errno> {
        let left = self.deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.min(TICK);
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut ready = vec![PollFd::from_borrowed_fd(enclosure.ending(), PollFlags::IN)];
        let open = [&self.streams.output, &self.streams.errors].into_iter().flatten();
        ready.extend(open.map(|stream| PollFd::new(stream, PollFlags::IN)));
        match poll(&mut ready, Some(&left)) {
            // A signal may be why somebody wants it to stop.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
    }
}

// === impl Streams ===

impl Streams {
    fn read(&mut self, portions: usize, captured: &mut Captured, watch: &mut dyn Watch) {
        let pairs = [(&mut self.output, Stream::Output), (&mut self.errors, Stream::Errors)];
        for (stream, which) in pairs {
            let is_over = stream.as_ref().is_some_and(|stream| {
                read_available(stream, portions, |bytes| {
                    let kept = captured.take(bytes, which);
                    if matches!(which, Stream::Output) && !kept.is_empty() {
                        watch.printed(kept);
                    }
                })
            });
            if is_over {
                *stream = None;
            }
        }
    }
}

/// Reads what is there; whether nothing more will come.
fn read_available(stream: &OwnedFd, portions: usize, mut take: impl FnMut(&[u8])) -> bool {
    let mut buffer = vec![0; PORTION];
    for _ in 0..portions {
        match rustix::io::retry_on_intr(|| rustix::io::read(stream, &mut buffer[..])) {
            Ok(0) => return true,
            Ok(read) => take(&buffer[..read]),
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
    false
}

// === impl Captured ===

impl Captured {
    /// Nothing yet, and room for so much.
    pub(super) fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Takes what there is room for, and gives that back.
    fn take<'b>(&mut self, bytes: &'b [u8], stream: Stream) -> &'b [u8] {
        let room = self.most.saturating_sub(self.stdout.len() + self.stderr.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        let (into, has_lost) = match stream {
            Stream::Output => (&mut self.stdout, &mut self.has_lost_stdout),
            Stream::Errors => (&mut self.stderr, &mut self.has_lost_stderr),
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
        assert_eq!(captured.take(b"12345", Stream::Output), b"12345");
        assert_eq!(captured.take(b"abc", Stream::Errors), b"abc");
        assert!(!captured.is_cut());
        assert_eq!(captured.take(b"defg", Stream::Errors), b"de");
        assert!(captured.is_cut() && !captured.has_lost_answer());
        assert_eq!(captured.take(b"6", Stream::Output), b"");
        assert!(captured.has_lost_answer());
        captured.finish();
        let said = "abcde\nbelljar: more than 10 bytes were printed; the rest was dropped\n";
        assert_eq!(String::from_utf8(captured.stderr).unwrap(), said);
        assert_eq!(captured.stdout, b"12345");
    }

    #[test]
    fn what_fits_exactly_is_whole() {
        let mut captured = Captured::new(3);
        captured.take(b"abc", Stream::Output);
        captured.finish();
        assert!(!captured.is_cut() && captured.stderr.is_empty());
    }
}
