//! A program that the host has had started, as whoever looks after it holds it: PID 1, or a supervisor.

use super::{Order, Told};
use crate::kernel::{self, Usage};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// Such a program. It has not been collected yet, so its number is its own.
pub(crate) struct Attended {
    pub(crate) pid: i32,
    /// Where the host hears of it and speaks to it.
    pub(crate) channel: OwnedFd,
    /// Kills it, and what it has started as far as that is still known to be its own.
    pub(crate) kill: fn(i32),
}

/// Does what the host wants done to those of whose channels there are events. One whose channel it has closed is nobody's
/// any more, and is ended.
pub(crate) fn obey(all: &mut Vec<Attended>, events: &[PollFlags]) {
    let mut events = events.iter();
    all.retain(|one| match events.next() {
        Some(event) if !event.is_empty() => one.obey(),
        _ => true,
    });
}

// === impl Attended ===

impl Attended {
    /// Does what the host wants done to it, and says whether it goes on being looked after.
    fn obey(&self) -> bool {
        match Order::receive(self.channel.as_fd()) {
            Ok(Some(Order::Signal(signal))) => {
                kernel::signal_group(self.pid, signal);
                true
            }
            Ok(Some(Order::Kill)) => {
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

    pub(crate) fn tell_end(&self, status: i32, usage: Usage) {
        let _ = Told::Ended { status, usage }.send(self.channel.as_fd(), None);
    }
}
