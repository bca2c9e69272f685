//! A program that was started for the host, as the process that looks after it keeps it: PID 1 or a supervisor.

use super::{ProgramControl, ProgramEvent};
use crate::kernel::{self, ResourceUsage};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// A program that is looked after. It has not been reaped yet, so its process id is still its own.
pub(crate) struct UnreapedProgram {
    pub(crate) pid: i32,
    /// Channel to the host: reports go out, orders come in.
    pub(crate) channel: OwnedFd,
    /// Kills it, and what it has started as far as that is still known to be its own.
    pub(crate) kill: fn(i32),
}

/// Carries out the host's orders for the programs whose channels have events. A program whose channel the host has closed
/// has no owner any more, and is killed.
pub(crate) fn obey(all: &mut Vec<UnreapedProgram>, events: &[PollFlags]) {
    let mut events = events.iter();
    all.retain(|one| match events.next() {
        Some(event) if !event.is_empty() => one.obey(),
        _ => true,
    });
}

// === impl UnreapedProgram ===

impl UnreapedProgram {
    /// Carries out the host's order. Returns true if the program is still looked after.
    fn obey(&self) -> bool {
        match ProgramControl::receive(self.channel.as_fd()) {
            Ok(Some(ProgramControl::Signal(signal))) => {
                kernel::signal_group(self.pid, signal);
                true
            }
            Ok(Some(ProgramControl::Kill)) => {
                self.end();
                true
            }
            Ok(None) => {
                self.end();
                false
            }
            Err(errno) => matches!(errno, Errno::AGAIN | Errno::INTR | Errno::BADMSG),
        }
    }

    /// Kills it, and what it has started as far as that is still known to be its own.
    pub(crate) fn end(&self) {
        (self.kill)(self.pid);
    }

    pub(crate) fn tell_end(&self, status: i32, usage: ResourceUsage) {
        let _ = ProgramEvent::Ended { status, usage }.send(self.channel.as_fd(), None);
    }
}
