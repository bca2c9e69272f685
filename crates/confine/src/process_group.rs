//! Processes that belong together without a namespace of their own, each held by a descriptor.
//!
//! A process id is only a number, and may belong to another process the next moment. So each process is first held by a
//! descriptor, then checked once more, and only then signalled.

use crate::kernel::processes::{Process, all, stands_still};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::time::Duration;

/// A process that is held.
#[derive(Debug)]
pub struct HeldProcess {
    /// Process id, valid as long as the process lives.
    pub pid: i32,
    /// Number of its threads.
    pub threads: u64,
    /// Resident memory in bytes, shared pages included.
    pub resident_bytes: u64,
    /// The processor time that it has used.
    pub cpu: Duration,
    parent: i32,
    session: i32,
    pidfd: OwnedFd,
}

/// Returns all descendants of this process, whatever session or group they are in. Complete only if orphans are reparented
/// to this process (child subreaper).
pub(crate) fn descendants() -> Vec<HeldProcess> {
    let own = rustix::process::getpid().as_raw_pid();
    let mut members: HashMap<i32, HeldProcess> = HashMap::new();
    let snapshot = all();
    loop {
        let before = members.len();
        for process in &snapshot {
            let belongs =
                |parent: i32| parent == own || members.get(&parent).is_some_and(HeldProcess::is_alive);
            if members.contains_key(&process.pid) || process.pid == own || !belongs(process.parent) {
                continue;
            }
            if let Some(member) = HeldProcess::hold(process.pid, |held| belongs(held.parent)) {
                members.insert(member.pid, member);
            }
        }
        if members.len() == before {
            return members.into_values().collect();
        }
    }
}

/// Returns the members of a family that are in the session of `leader` or descend from one that is.
fn branch(mut family: Vec<HeldProcess>, leader: i32) -> Vec<HeldProcess> {
    let mut branch: Vec<HeldProcess> =
        family.extract_if(.., |one| one.pid == leader || one.session == leader).collect();
    loop {
        let found: Vec<HeldProcess> =
            family.extract_if(.., |one| branch.iter().any(|parent| parent.pid == one.parent)).collect();
        if found.is_empty() {
            return branch;
        }
        branch.extend(found);
    }
}

/// Kills those of a family that are in the session of `leader` or descend from one that is. They are stopped first, all
/// of them, so that none sees another die, or starts more than are found.
pub fn kill_branch(family: impl Fn() -> Vec<HeldProcess>, leader: i32) {
    // A process outside of the branch may continue a stopped one (`SIGCONT`); the attempt is repeated up to this many
    // times.
    const ROUNDS: usize = 64;
    let mut stopped: HashMap<i32, HeldProcess> = HashMap::new();
    for _ in 0..ROUNDS {
        let mut found = branch(family(), leader);
        if found.is_empty() {
            return;
        }
        found.retain(|member| !stopped.contains_key(&member.pid));
        if found.is_empty() {
            for (_, member) in stopped.drain() {
                let _ = member.signal(Signal::KILL);
            }
        }
        for member in found {
            let _ = member.signal(Signal::STOP);
            stopped.insert(member.pid, member);
        }
    }
    for member in branch(family(), leader).into_iter().chain(stopped.into_values()) {
        let _ = member.signal(Signal::KILL);
    }
}

/// Returns all processes for which `belongs` is true: called before each is held, and again afterwards.
pub fn all_that(belongs: impl Fn(i32) -> bool) -> Vec<HeldProcess> {
    let candidates = all().into_iter().map(|process| process.pid).filter(|pid| belongs(*pid));
    candidates.filter_map(|pid| HeldProcess::hold(pid, |held| belongs(held.pid))).collect()
}

/// The processor time of a child of this process that has not been collected: its own.
pub fn cpu_of_child(pid: i32) -> Option<Duration> {
    Process::read(pid).map(|process| process.cpu)
}

/// A user's threads, all of them.
pub(crate) fn threads_of(own: u32) -> u64 {
    let is_own = |pid: i32| rustix::fs::stat(format!("/proc/{pid}")).is_ok_and(|stat| stat.st_uid == own);
    all().into_iter().filter(|process| is_own(process.pid)).map(|process| process.threads).sum()
}

// === impl HeldProcess ===

impl HeldProcess {
    /// Holds the process that now has that id, if it belongs and lives.
    fn hold(pid: i32, belongs: impl FnOnce(&Process) -> bool) -> Option<Self> {
        let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let process = Process::read(pid)?;
        let does_belong = belongs(&process);
        let member = Self {
            pid,
            threads: process.threads,
            resident_bytes: process.resident_pages * rustix::param::page_size() as u64,
            cpu: process.cpu,
            parent: process.parent,
            session: process.session,
            pidfd,
        };
        // Only if it still lives now, what was read in between was about it.
        (does_belong && member.is_alive()).then_some(member)
    }

    /// Returns true if any of its threads runs.
    pub fn is_alive(&self) -> bool {
        let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(rustix::io::retry_on_intr(|| poll(&mut ended, Some(&at_once))), Ok(0))
    }

    /// Returns true if all of its threads are stopped or have ended.
    pub(crate) fn is_still(&self) -> bool {
        stands_still(self.pid)
    }

    /// Sends it a signal. Harmless when it has ended.
    ///
    /// # Errors
    /// The kernel's, when it may not be sent.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}
