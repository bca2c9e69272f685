//! Ends a program and all of its descendants.
//!
//! The runner is the reaper of its descendants (`PR_SET_CHILD_SUBREAPER`, or process 1), so orphaned descendants become
//! its children. Therefore "no child is left" means that no descendant is left, and the end is determined by that.
//! Until then the descendants are looked up in `/proc`. First all are stopped, again and again until no new one
//! appears, so that no process forks away during the second phase, which kills them.

use super::descendants::{self, Member};
use belljar_contract::result::ResourceUsage;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};
use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};
use wait4::ResUse;

/// A program that was started, with all its descendants. Dropping it kills all of them.
#[derive(Debug)]
pub(super) struct ProcessTree {
    leader: u32,
    descriptor: Option<OwnedFd>,
    leader_status: Option<ExitStatus>,
    is_ended: bool,
    usage: Usage,
}

#[derive(Debug, Default)]
struct Usage {
    cpu: Duration,
    max_rss_bytes: u64,
}

/// Processes that could not be killed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Survivors {
    #[error("cannot kill the processes {pids:?}")]
    Listed { pids: Vec<i32> },
    #[error("processes that /proc does not list are still running")]
    Unlisted,
}

/// Maximum time for stopping processes before they are killed. A fork bomb is stopped by then, as far as it can be.
const FREEZE: Duration = Duration::from_millis(500);

/// Maximum time for killed processes to disappear. Only one that hangs in the kernel takes longer than a few
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two passes.
const PAUSE: Duration = Duration::from_millis(1);

/// Ends every descendant of this process, whichever program started it.
pub(crate) fn end_all() -> Result<(), Survivors> {
    ProcessTree { leader: 0, descriptor: None, leader_status: None, is_ended: false, usage: Usage::default() }
        .end_descendants()
}

// === impl ProcessTree ===

impl ProcessTree {
    pub(super) fn of(leader: u32) -> Self {
        let pid = i32::try_from(leader).ok().and_then(Pid::from_raw);
        let descriptor = pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { leader, descriptor, leader_status: None, is_ended: false, usage: Usage::default() }
    }

    /// Returns a descriptor that becomes readable when the program ends, if the kernel supports it.
    pub(super) fn leader_descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// Returns true if the program itself has ended. It is not waited for yet, so that its pid isn't reused.
    pub(super) fn leader_has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match self.leader_pid().map(|pid| rustix::process::waitid(WaitId::Pid(pid), options)) {
            Some(Ok(status)) => status.is_some(),
            Some(Err(Errno::INTR)) => false,
            // There is no such child: then there is nothing to wait for.
            Some(Err(_)) | None => true,
        }
    }

    /// The program's exit code or signal.
    pub(super) fn leader_status(&self) -> (Option<i32>, Option<i32>) {
        let status = self.leader_status;
        (status.and_then(|status| status.code()), status.and_then(|status| status.signal()))
    }

    /// Returns the resources that all of them used.
    pub(super) fn usage(&self) -> ResourceUsage {
        ResourceUsage {
            cpu_time_ms: u64::try_from(self.usage.cpu.as_millis()).unwrap_or(u64::MAX),
            max_rss_bytes: self.usage.max_rss_bytes,
        }
    }

    /// Kills the program and its descendants.
    pub(super) fn end(&mut self) -> Result<(), Survivors> {
        self.is_ended = true;
        // The whole group at once. It can't be another's, because the program is not waited for yet and still holds the
        // number.
        if let Some(group) = self.leader_pid() {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        self.end_descendants()
    }

    fn leader_pid(&self) -> Option<Pid> {
        i32::try_from(self.leader).ok().and_then(Pid::from_raw).filter(|_| self.leader_status.is_none())
    }

    fn end_descendants(&mut self) -> Result<(), Survivors> {
        let is_init = rustix::process::getpid() == Pid::INIT;
        self.reap(self.leader);
        if nobody_is_left() {
            return Ok(());
        }
        if !is_init {
            freeze();
        }
        let started = Instant::now();
        loop {
            let listed = descendants::of_this_process();
            self.reap_dead(listed.as_deref());
            if nobody_is_left() {
                return Ok(());
            }
            // Processes that can't be looked up can't be killed; only the group is known, and it is dying already.
            let is_hopeless = listed.is_none() && !is_init && started.elapsed() >= FREEZE;
            if is_hopeless || started.elapsed() >= PATIENCE {
                return Err(survivors(listed));
            }
            match is_init {
                true => kill_namespace(),
                false => listed.iter().flatten().filter(|member| !member.is_zombie).for_each(kill),
            }
            thread::sleep(PAUSE);
        }
    }

    fn reap_dead(&mut self, listed: Option<&[Member]>) {
        match listed {
            Some(listed) => {
                for dead in listed.iter().filter(|member| member.is_zombie && member.is_child()) {
                    self.reap(dead.pid.as_raw_pid().unsigned_abs());
                }
            }
            // Without a list of the processes, their resource usage can't be counted.
            None => {
                while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                    self.note_end(pid.as_raw_pid().unsigned_abs(), ExitStatus::from_raw(status.as_raw()));
                }
            }
        }
    }

    /// Waits for that child if it is dead, and counts what it used.
    fn reap(&mut self, pid: u32) {
        if let Ok(Some(ResUse { status, rusage })) = wait4::try_wait4_pid(pid) {
            self.usage.cpu += rusage.utime + rusage.stime;
            self.usage.max_rss_bytes = self.usage.max_rss_bytes.max(rusage.maxrss);
            self.note_end(pid, status);
        }
    }

    fn note_end(&mut self, pid: u32, status: ExitStatus) {
        if pid == self.leader {
            self.leader_status = Some(status);
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.is_ended {
            let _ = self.end();
        }
    }
}

/// Returns true if there is no child, dead or alive. Orphans of descendants are children, so then there is no
/// descendant.
fn nobody_is_left() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    rustix::process::waitid(WaitId::All, options).is_err_and(|error| error == Errno::CHILD)
}

/// Stops all descendants, until a pass finds no new one.
fn freeze() {
    let mut stopped = HashSet::new();
    let until = Instant::now() + FREEZE;
    while Instant::now() < until {
        let Some(listed) = descendants::of_this_process() else { return };
        let mut found_more = false;
        for member in listed.iter().filter(|member| !member.is_zombie) {
            if stopped.insert(member.identity()) {
                found_more = true;
                // It is gone already, or may not be stopped: the second phase handles it.
                let _ = member.signal(Signal::STOP);
            }
        }
        if !found_more {
            return;
        }
    }
}

fn kill(member: &Member) {
    let _ = member.signal(Signal::KILL);
}

/// Kills all other processes at once, if this is process 1: for it, `kill(-1)` means its whole namespace except itself.
fn kill_namespace() {
    let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
}

fn survivors(listed: Option<Vec<Member>>) -> Survivors {
    let pids: Vec<i32> =
        listed.unwrap_or_default().iter().filter(|m| !m.is_zombie).map(|m| m.pid.as_raw_pid()).collect();
    match pids.is_empty() {
        true => Survivors::Unlisted,
        false => Survivors::Listed { pids },
    }
}
