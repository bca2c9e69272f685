//! Pipes that programs in the sandbox can't block: each wait ends at the deadline, or when the caller stops waiting for the result.

use belljar_tools::builtin::git::host::CallBounds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The host's end of a pipe.
pub(super) struct Pipe<'p> {
    end: OwnedFd,
    stop: &'p TransferStop<'p>,
}

/// Bounds of the transfer, which also ends once it is complete.
pub(super) struct TransferStop<'s> {
    bounds: &'s CallBounds,
    is_over: AtomicBool,
}

const TICK: Duration = Duration::from_millis(50);

/// Two pipes: the ends that a program gets for its input and its output, and ours.
pub(super) fn pipes() -> Result<([OwnedFd; 2], [OwnedFd; 2]), Errno> {
    let (input, to) = pipe_with(PipeFlags::CLOEXEC)?;
    let (from, output) = pipe_with(PipeFlags::CLOEXEC)?;
    for ours in [&to, &from] {
        rustix::io::ioctl_fionbio(ours, true)?;
    }
    Ok(([input, output], [to, from]))
}

/// Returns true if the error means that the other side reads no more.
pub(super) fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::TimedOut)
}

// === impl TransferStop ===

impl<'s> TransferStop<'s> {
    pub(super) fn at(bounds: &'s CallBounds) -> Self {
        Self { bounds, is_over: AtomicBool::new(false) }
    }

    pub(super) fn now(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_so(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.bounds.is_over()
    }
}

// === impl Pipe ===

impl<'p> Pipe<'p> {
    pub(super) fn of(end: OwnedFd, stop: &'p TransferStop<'p>) -> Self {
        Self { end, stop }
    }

    fn once_ready<T>(
        &self,
        flags: PollFlags,
        mut act: impl FnMut(&OwnedFd) -> Result<T, Errno>,
    ) -> io::Result<T> {
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        loop {
            if self.stop.is_so() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match poll(&mut [PollFd::new(&self.end, flags)], Some(&tick)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            match act(&self.end) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.once_ready(PollFlags::IN, |end| rustix::io::read(end, &mut *buffer))
    }
}

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.once_ready(PollFlags::OUT, |end| rustix::io::write(end, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
