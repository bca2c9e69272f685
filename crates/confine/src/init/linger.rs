//! Sets `SO_LINGER` on behalf of programs ([`crate::seccomp::policy::guard`]): a close never blocks.
//!
//! A program can have its socket closed by a process that serves others: the reader of a local socket that the socket was
//! passed to, or the kernel's worker for all late closes of the machine, which collects the garbage of local sockets. That
//! worker would wait for the time in the option, even after the sandbox has ended.
//!
//! With a time of 0 a close resets the connection at once, and programs get that. With any other time a close goes on in
//! the background, as without the option: the request succeeds without effect.

use super::caller::{self, read_memory};
use crate::kernel::ask::{self, SeccompNotification};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_linger;
use std::time::Duration;

/// `struct linger`: whether it is on, and for how many seconds.
const BYTES: usize = 8;

struct LingerCall {
    socket: OwnedFd,
    resets: bool,
}

/// Answers one question, in a worker.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &SeccompNotification) {
    caller::answer(listener, question, LingerCall::take, LingerCall::fulfil);
}

// === impl LingerCall ===

impl LingerCall {
    fn take(question: &SeccompNotification) -> Result<Self, Errno> {
        let [socket, _, _, pointer, length, _] = question.arguments;
        if usize::try_from((length as u32).cast_signed()).is_ok_and(|length| length >= BYTES) {
            let option = read_memory(question.thread, pointer, BYTES)?;
            // Closed by the end of the worker alone: `close` may wait.
            let socket = ask::take_descriptor(question.thread, (socket as u32).cast_signed())?;
            Ok(Self { socket, resets: resets(&option) })
        } else {
            Err(Errno::INVAL)
        }
    }

    fn fulfil(&self) -> Result<(), Errno> {
        set_socket_linger(&self.socket, self.resets.then_some(Duration::ZERO))
    }
}

/// Returns true if the option is on, with a time of 0.
fn resets(option: &[u8]) -> bool {
    option.split_at_checked(4).is_some_and(|(on, seconds)| on != [0; 4] && seconds == [0; 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_linger_takes_effect_only_with_zero_time() {
        assert!(resets(&[1, 0, 0, 0, 0, 0, 0, 0]));
        assert!(!resets(&[1, 0, 0, 0, 1, 0, 0, 0]));
        assert!(!resets(&[1, 0, 0, 0, 255, 255, 255, 255]));
        assert!(!resets(&[0; 8]));
    }
}
