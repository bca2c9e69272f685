//! Cancellation of the runner: SIGTERM and SIGINT.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Becomes readable, and stays so, once the runner was asked to stop.
#[derive(Debug)]
pub(crate) struct Cancellation {
    /// Flag for work that doesn't wait, but checks it for each directory and each file.
    is_requested: Arc<AtomicBool>,
    requested: UnixStream,
    /// Held so that `requested` does not end by itself.
    request: UnixStream,
}

// === impl Cancellation ===

impl Cancellation {
    /// Creates a cancellation that can't be requested yet.
    pub(crate) fn new() -> io::Result<Self> {
        let (requested, request) = UnixStream::pair()?;
        Ok(Self { is_requested: Arc::default(), requested, request })
    }

    /// Installs handlers for the signals that request cancellation.
    pub(crate) fn on_signals(&self) -> io::Result<()> {
        for signal in [SIGTERM, SIGINT] {
            // In this order: a thread that is woken by the pipe must find the flag set.
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

    /// Returns true if cancellation was requested.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }
}

impl AsFd for Cancellation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requested.as_fd()
    }
}
