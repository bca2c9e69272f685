//! Watches a sandbox while its job runs: relays the runner's log, and ends it when its time is over.

use super::Watch;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::{Ending, Sealed};
use belljar_contract::event::LogLine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::time::{Duration, Instant};

/// The host's ends of the runner's streams.
pub(super) struct Log {
    output: OwnedFd,
    errors: OwnedFd,
}

/// How the sandbox of a job ended.
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) reason: Reason,
    /// The last of what the runner wrote to stderr: why it died, if it did.
    pub(super) errors: String,
}

/// Why the sandbox is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// It ended by itself.
    ByItself,
    /// Its time was over.
    OutOfTime,
    /// Somebody canceled it.
    Canceled,
}

/// The runner keeps its own time; it is given this much more to write its result down.
const GRACE: Duration = Duration::from_secs(3);

/// How often the watcher hears of passing time.
const TICK: Duration = Duration::from_millis(100);

/// A log line longer than this is no log line.
const LONGEST_LINE: usize = 64 << 10;

/// Makes the runner's streams: nothing to read, and two pipes.
pub(super) fn streams() -> Result<(Stdio, Log), Errno> {
    let nothing = openat(CWD, "/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let (output, write_output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (errors, write_errors) = pipe_with(PipeFlags::CLOEXEC)?;
    for ours in [&output, &errors] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    Ok((Stdio::Descriptors([nothing, write_output, write_errors]), Log { output, errors }))
}

/// Watches until the sandbox has ended; kills it when its limit is over or somebody wants it to stop.
pub(super) fn until_end(
    sealed: &mut Sealed,
    log: &Log,
    limit: Duration,
    watch: &mut dyn Watch,
) -> Result<Ended, Errno> {
    let deadline = Instant::now() + limit + GRACE;
    let mut reason = Reason::ByItself;
    let mut output = Lines::default();
    let mut errors = Vec::new();
    loop {
        let mut ready = [
            PollFd::new(&log.output, PollFlags::IN),
            PollFd::new(&log.errors, PollFlags::IN),
            PollFd::from_borrowed_fd(sealed.ending(), PollFlags::IN),
        ];
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        match poll(&mut ready, Some(&tick)) {
            // A signal may be why somebody wants the job to stop: not waited on, however many come.
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let ended = ready[2].revents().intersects(PollFlags::IN | PollFlags::HUP);
        read_available(&log.output, |bytes| output.take(bytes, watch));
        read_available(&log.errors, |bytes| keep_tail(&mut errors, bytes));
        watch.tick();
        if ended {
            let ending = sealed.wait()?;
            return Ok(Ended { ending, reason, errors: String::from_utf8_lossy(&errors).into_owned() });
        }
        let stop = match (Instant::now() >= deadline, watch.is_canceled()) {
            (true, _) => Reason::OutOfTime,
            (_, true) => Reason::Canceled,
            _ => continue,
        };
        reason = stop;
        sealed.kill();
    }
}

/// Reads what is there, in bounded portions, without waiting for more.
fn read_available(from: impl AsFd, mut take: impl FnMut(&[u8])) {
    const PORTIONS: usize = 64;
    let mut buffer = [0; 16 << 10];
    for _ in 0..PORTIONS {
        match rustix::io::read(from.as_fd(), &mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => take(&buffer[..read]),
        }
    }
}

fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    const KEPT: usize = 16 << 10;
    tail.extend_from_slice(bytes);
    if tail.len() > KEPT {
        tail.drain(..tail.len() - KEPT);
    }
}

/// Puts log lines together from pieces.
#[derive(Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], watch: &mut dyn Watch) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                // What is no log line is of no use to a watcher; the result tells what happened.
                if let Ok(line) = serde_json::from_slice::<LogLine>(&self.partial) {
                    watch.heard(&line);
                }
                self.partial.clear();
            } else if self.partial.len() > LONGEST_LINE {
                self.partial.clear();
            }
        }
    }
}
