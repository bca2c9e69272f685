//! Descendants of this process, as `/proc` shows them.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::HashMap;
use std::fs;

/// A process at the moment it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) pid: Pid,
    parent: i32,
    /// Start time, in the kernel's ticks. Together with the pid it identifies a process uniquely.
    started: u64,
    /// True if it is dead and not waited for yet.
    pub(super) is_zombie: bool,
}

/// Returns all descendants of the calling process; `None` where `/proc` doesn't show them.
///
/// One pass is no snapshot: a caller that needs certainty repeats it until nothing changes.
pub(super) fn of_this_process() -> Option<Vec<Member>> {
    let this = rustix::process::getpid().as_raw_pid();
    // A `/proc` of another process namespace counts differently and must not be believed.
    let shown: i32 = fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
    if shown != this {
        return None;
    }
    let listed = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    // All ids before the first look: a program that forks meanwhile would make the list longer than it can be read.
    let ids: Vec<i32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let everybody: HashMap<i32, Member> =
        ids.into_iter().filter_map(|pid: i32| Some((pid, look_at(Pid::from_raw(pid)?)?))).collect();
    Some(everybody.values().filter(|member| descends_from(member, this, &everybody)).copied().collect())
}

fn descends_from(member: &Member, ancestor: i32, everybody: &HashMap<i32, Member>) -> bool {
    let mut parent = member.parent;
    // No chain of parents is longer than the number of processes; a longer one is due to pids that were reused
    // meanwhile.
    for _ in 0..=everybody.len() {
        if parent == ancestor {
            return true;
        }
        match everybody.get(&parent) {
            Some(next) => parent = next.parent,
            None => return false,
        }
    }
    false
}

fn look_at(pid: Pid) -> Option<Member> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in parentheses and may hold some itself.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    const STATE: usize = 0;
    const PARENT: usize = 1;
    const STARTED: usize = 19;
    Some(Member {
        pid,
        parent: fields.get(PARENT)?.parse().ok()?,
        started: fields.get(STARTED)?.parse().ok()?,
        is_zombie: matches!(fields.get(STATE), Some(&("Z" | "X" | "x"))),
    })
}

// === impl Member ===

impl Member {
    /// Returns true if this process is a child of the calling one, by starting or by reparenting.
    pub(super) fn is_child(&self) -> bool {
        self.parent == rustix::process::getpid().as_raw_pid()
    }

    /// Returns an identity that stays the same for the life of the process.
    pub(super) fn identity(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }

    /// Sends a signal to this very process, not to one that got its pid since.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match rustix::process::pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(held) => match look_at(self.pid) {
                Some(now) if now.identity() == self.identity() => {
                    rustix::process::pidfd_send_signal(held, signal)
                }
                _ => Err(Errno::SRCH),
            },
            // This kernel or policy has no pidfd: the pid alone must do.
            Err(Errno::NOSYS | Errno::PERM) => rustix::process::kill_process(self.pid, signal),
            Err(error) => Err(error),
        }
    }
}
