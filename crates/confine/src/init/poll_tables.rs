//! Bounds the tables of `poll` and `select`, which the kernel charges to no control group.
//!
//! While a thread waits, the kernel keeps a table with up to two entries of 64 bytes for each descriptor that it waits for. Calls
//! with few descriptors go to the kernel at once; a thread that waits for more asks PID 1
//! ([`crate::plan::MOST_POLLED_UNCOUNTED`]). The number of descriptors is an argument, so nothing can change it after
//! PID 1 has looked. A thread waits in one call at a time: what it last asked for counts until it asks again or ends.

use super::sandbox_state::OwnResources;
use crate::kernel::ask::{self, SeccompNotification};
use crate::plan::MOST_POLLED;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// Descriptors that the threads of one sandbox wait for.
#[derive(Debug, Default)]
pub(super) struct PollTables {
    /// Descriptors by thread.
    descriptors: HashMap<i32, u64>,
    /// Earliest time of the next look for threads that have ended.
    next_look: Option<Instant>,
}

/// Minimum time between two looks at every thread.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Answers one question.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &SeccompNotification, own: &OwnResources) {
    // No call waits for more descriptors than there are: the kernel refuses it, or takes the lower number.
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let wanted = wanted(question).min(limit);
    let is_gone = |thread: i32| !Path::new(&format!("/proc/{thread}")).exists();
    match own.poll_tables.borrow_mut().admit(question.thread, wanted, is_gone) {
        Ok(()) => ask::let_through(listener, question.id),
        Err(errno) => ask::answer_question(listener, question.id, Err(errno)),
    }
}

/// The number of descriptors: 32 bits are all that the kernel looks at.
fn wanted(question: &SeccompNotification) -> u64 {
    let at = match i64::from(question.number) {
        libc::SYS_select | libc::SYS_pselect6 => 0,
        _ => 1,
    };
    u64::from(question.arguments[at] as u32)
}

// === impl PollTables ===

impl PollTables {
    /// Counts what a thread is going to wait for, in place of what it has waited for. Fails with `ENOMEM`, as the kernel
    /// does without memory for tables.
    fn admit(&mut self, thread: i32, wanted: u64, is_gone: impl Fn(i32) -> bool) -> Result<(), Errno> {
        self.descriptors.remove(&thread);
        if self.sum() + wanted > MOST_POLLED {
            self.forget_ended(is_gone);
        }
        if self.sum() + wanted > MOST_POLLED {
            return Err(Errno::NOMEM);
        }
        self.descriptors.insert(thread, wanted);
        Ok(())
    }

    fn sum(&self) -> u64 {
        self.descriptors.values().sum()
    }

    fn forget_ended(&mut self, is_gone: impl Fn(i32) -> bool) {
        let begun = Instant::now();
        if self.next_look.is_none_or(|next| begun >= next) {
            self.descriptors.retain(|thread, _| !is_gone(*thread));
            self.next_look = Some(Instant::now() + BETWEEN_LOOKS.max(4 * begun.elapsed()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polled_descriptors_of_all_threads_are_limited_together() {
        let mut tables = PollTables::default();
        let lives = |_| false;
        for thread in 10..14 {
            assert_eq!(tables.admit(thread, MOST_POLLED / 4, lives), Ok(()));
        }
        assert_eq!(tables.admit(10, MOST_POLLED / 4, lives), Ok(()), "in place of what it has waited for");
        assert_eq!(tables.admit(20, 2_000, lives), Err(Errno::NOMEM));
        tables.next_look = None;
        assert_eq!(tables.admit(20, 2_000, |thread| thread == 11), Ok(()), "one has ended");
        assert_eq!(tables.admit(21, MOST_POLLED / 4, lives), Err(Errno::NOMEM));
    }

    #[test]
    fn poll_descriptor_count_is_parsed_as_the_kernel_does() {
        let question = |number: i64, first, second| SeccompNotification {
            id: 0,
            thread: 1,
            number: number as i32,
            arguments: [first, second, 0, 0, 0, 0],
        };
        assert_eq!(wanted(&question(libc::SYS_poll, 7, 0x1_0000_2000)), 0x2000);
        assert_eq!(wanted(&question(libc::SYS_ppoll, 7, 3)), 3);
        assert_eq!(wanted(&question(libc::SYS_select, 5000, 9)), 5000);
        assert_eq!(wanted(&question(libc::SYS_pselect6, 5000, 9)), 5000);
    }
}
