//! Locks on a terminal: while a command shows a review on it, no other command relays a program's output to it.
//!
//! A program that runs on in the background of the terminal (`belljar session exec … &`) could otherwise paint another review over the one
//! that is approved. Locks of the terminal's device (`flock`) keep the two apart, and end with the process that holds them:
//!
//! ```text
//! review ─► exclusive, until the process ends or relays itself
//! relay  ─► shared, for each write; without it the output waits
//! ```

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::termios::isatty;

/// A terminal, opened anew: what is inherited shares its locks with every process that inherited it.
#[derive(Debug)]
pub(super) struct TerminalLock(OwnedFd);

// === impl TerminalLock ===

impl TerminalLock {
    /// Returns `None` for a stream that is no terminal, or another user's terminal (`su`).
    pub(super) fn at(stream: BorrowedFd<'_>) -> Option<Self> {
        if !isatty(stream) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let itself = format!("/proc/self/fd/{}", stream.as_raw_fd());
        open(itself, flags, Mode::empty()).ok().map(Self)
    }

    /// Takes the exclusive lock for a review. Returns `false` if another command holds a lock.
    pub(super) fn take(&self) -> bool {
        flock(self.0.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Waits until no other command holds a lock, and takes the exclusive lock for a review.
    pub(super) fn wait(&self) {
        // Without it, as where the terminal can't be opened.
        let _ = rustix::io::retry_on_intr(|| flock(self.0.as_fd(), FlockOperation::LockExclusive));
    }

    /// Writes output of a program. Returns `None` without writing while a review is shown.
    pub(super) fn write<T>(&self, write: impl FnOnce() -> T) -> Option<T> {
        flock(self.0.as_fd(), FlockOperation::NonBlockingLockShared).ok()?;
        let written = write();
        let _ = flock(self.0.as_fd(), FlockOperation::Unlock);
        Some(written)
    }
}
