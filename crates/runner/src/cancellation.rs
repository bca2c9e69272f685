//! Being asked to stop: SIGTERM and SIGINT.

use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Becomes readable, and stays so, once the runner was asked to stop.
#[derive(Debug)]
pub(crate) struct Cancellation {
    requested: UnixStream,
    /// Held so that `requested` does not end by itself.
    request: UnixStream,
}

// === impl Cancellation ===

impl Cancellation {
    /// One that nobody can ask for yet.
    pub(crate) fn new() -> io::Result<Self> {
        let (requested, request) = UnixStream::pair()?;
        Ok(Self { requested, request })
    }

    /// Has the signals that ask a process to stop ask for this one.
    pub(crate) fn on_signals(&self) -> io::Result<()> {
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, self.request.try_clone()?)?;
        }
        Ok(())
    }

    /// Whether somebody asked.
    pub(crate) fn is_requested(&self) -> bool {
        let mut polled = [PollFd::new(&self.requested, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::event::poll(&mut polled, Some(&at_once)), Ok(1))
    }
}

impl AsFd for Cancellation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requested.as_fd()
    }
}
