//! Copies bytes from one descriptor to another without blocking the other copies.

use super::turn::TerminalLock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// One direction. When it is over, both its ends are closed, which tells the reader on the other side.
#[derive(Debug)]
pub(super) struct Pump {
    from: OwnedFd,
    to: OwnedFd,
    /// Bytes read but not yet written.
    pending: Vec<u8>,
    /// Lock of the terminal, if it writes to one.
    turn: Option<TerminalLock>,
    /// True while it waits for that lock.
    is_held: bool,
}

/// As much as a pipe takes without waiting, once it takes anything.
const PORTION: usize = 4096;

// === impl Pump ===

impl Pump {
    pub(super) fn new(from: OwnedFd, to: OwnedFd) -> Self {
        let turn = TerminalLock::at(to.as_fd());
        Self { from, to, pending: Vec::new(), turn, is_held: false }
    }

    /// Returns the event that it waits for: input, or room to write the input that was read.
    pub(super) fn interest(&self) -> PollFd<'_> {
        match self.pending.is_empty() {
            true => PollFd::new(&self.from, PollFlags::IN),
            // The lock has no notification, so it is polled.
            false if self.is_held => PollFd::new(&self.to, PollFlags::empty()),
            false => PollFd::new(&self.to, PollFlags::OUT),
        }
    }

    /// Returns true if there is nothing to do at this moment.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && !is_ready(self.from.as_fd(), PollFlags::IN)
    }

    /// Does what can be done at once. `None` when there is nothing more to come, or no reader to take it.
    ///
    /// # Errors
    /// The system's, when what was read can't be written: it is lost.
    pub(super) fn work(mut self) -> Result<Option<Self>, Errno> {
        if self.pending.is_empty() && is_ready(self.from.as_fd(), PollFlags::IN) {
            let mut buffer = [0; PORTION];
            match rustix::io::retry_on_intr(|| rustix::io::read(&self.from, &mut buffer)) {
                Ok(0) => return Ok(None),
                Ok(read) => self.pending.extend_from_slice(&buffer[..read]),
                Err(Errno::AGAIN) => {}
                // A terminal whose other side is gone says so by an error.
                Err(_) => return Ok(None),
            }
        }
        if !self.pending.is_empty() && is_ready(self.to.as_fd(), PollFlags::OUT) {
            let write = || rustix::io::retry_on_intr(|| rustix::io::write(&self.to, &self.pending));
            let written = match &self.turn {
                Some(turn) => turn.write(write),
                None => Some(write()),
            };
            self.is_held = written.is_none();
            match written.unwrap_or(Err(Errno::AGAIN)) {
                Ok(written) => drop(self.pending.drain(..written)),
                Err(Errno::AGAIN) => {}
                // The reader has gone: it wants no more.
                Err(Errno::PIPE) => return Ok(None),
                Err(errno) => return Err(errno),
            }
        }
        Ok(Some(self))
    }
}

/// Whether a call would not wait; also when it would fail at once, which is then the call's to say.
fn is_ready(descriptor: BorrowedFd<'_>, wanted: PollFlags) -> bool {
    let mut ready = [PollFd::from_borrowed_fd(descriptor, wanted)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut ready, Some(&now)).is_ok_and(|count| count > 0)
}
