//! Whose turn it is on a terminal: while a command shows a review there, no other relays a program's output to it.
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
pub(super) struct Turn(OwnedFd);

// === impl Turn ===

impl Turn {
    /// `None` for what is no terminal, or is another user's (`su`).
    pub(super) fn at(stream: BorrowedFd<'_>) -> Option<Self> {
        if !isatty(stream) {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let itself = format!("/proc/self/fd/{}", stream.as_raw_fd());
        open(itself, flags, Mode::empty()).ok().map(Self)
    }

    /// Takes the turn for a review. Returns `false` if another command has it.
    pub(super) fn take(&self) -> bool {
        flock(self.0.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Waits until no other command has the turn, and takes it for a review.
    pub(super) fn wait(&self) {
        // Without it, as where the terminal can't be opened.
        let _ = rustix::io::retry_on_intr(|| flock(self.0.as_fd(), FlockOperation::LockExclusive));
    }

    /// Writes something of a program's, unless a review is shown: `None` then.
    pub(super) fn write<T>(&self, write: impl FnOnce() -> T) -> Option<T> {
        flock(self.0.as_fd(), FlockOperation::NonBlockingLockShared).ok()?;
        let written = write();
        let _ = flock(self.0.as_fd(), FlockOperation::Unlock);
        Some(written)
    }
}
