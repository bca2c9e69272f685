//! Being asked to stop: SIGTERM and SIGINT.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Becomes readable, and stays so, once the runner was asked to stop.
#[derive(Debug)]
pub(crate) struct Cancellation {
    /// The same for those who don't wait: work asks for each directory and each file.
    is_requested: Arc<AtomicBool>,
    requested: UnixStream,
    /// Held so that `requested` does not end by itself.
    request: UnixStream,
}

// === impl Cancellation ===

impl Cancellation {
    /// One that nobody can ask for yet.
    pub(crate) fn new() -> io::Result<Self> {
        let (requested, request) = UnixStream::pair()?;
        Ok(Self { is_requested: Arc::default(), requested, request })
    }

    /// Has the signals that ask a process to stop ask for this one.
    pub(crate) fn on_signals(&self) -> io::Result<()> {
        for signal in [SIGTERM, SIGINT] {
            // In this order: who is woken by the other must find it set.
            signal_hook::flag::register(signal, Arc::clone(&self.is_requested))?;
            signal_hook::low_level::pipe::register(signal, self.request.try_clone()?)?;
        }
        Ok(())
    }

    /// Asks for it.
    #[cfg(test)]
    pub(crate) fn request(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }
}

impl AsFd for Cancellation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requested.as_fd()
    }
}
