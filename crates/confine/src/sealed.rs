//! A running sandbox, as its host holds it.

use crate::execution::InitRequest;
use crate::kernel::ResourceUsage;
use crate::launch::receive;
use crate::report::Report;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A running sandbox. Dropping it kills it and waits until nothing of it is left.
#[derive(Debug)]
pub struct SealedSandbox {
    pid: i32,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// True if it is a child of this process, which then has to reap it.
    is_child: bool,
    /// True if the process is a supervisor, which ends everything else before itself when its host hangs up. Killing it
    /// would leave the rest behind.
    is_supervisor: bool,
    ended: Option<SandboxEnding>,
    collected: bool,
}

/// Identity of a sandbox's PID 1 on the host, for a process that looks after it besides its owner.
#[derive(Debug)]
pub struct InitHandle {
    pid: i32,
    pidfd: OwnedFd,
    /// Channel on which PID 1 takes requests, if it is ours.
    control: Option<OwnedFd>,
}

/// End of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxEnding {
    /// Outcome of its program.
    pub outcome: ProgramOutcome,
    /// Resources used by everything in it, as far as it was waited for.
    pub usage: ResourceUsage,
}

/// Outcome of a sandbox's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramOutcome {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was killed with the whole sandbox, from outside, by its host or by the kernel.
    Killed,
    /// It was killed with the whole sandbox, whose memory was used up.
    OutOfMemory,
}

// === impl SealedSandbox ===

impl SealedSandbox {
    /// A sandbox that this process has launched.
    pub(crate) fn child(pid: i32, pidfd: OwnedFd, control: OwnedFd) -> Self {
        Self { pid, pidfd, control, is_child: true, is_supervisor: false, ended: None, collected: false }
    }

    /// A sandbox that a launcher has launched, which also reaps it.
    pub(crate) fn of_launcher(pid: i32, pidfd: OwnedFd, control: OwnedFd) -> Self {
        Self { pid, pidfd, control, is_child: false, is_supervisor: false, ended: None, collected: true }
    }

    /// A sandbox that a supervisor, a child of this process, looks after.
    pub(crate) fn supervised(pid: i32, pidfd: OwnedFd, control: OwnedFd) -> Self {
        let mut sealed = Self::child(pid, pidfd, control);
        sealed.is_supervisor = true;
        sealed
    }

    /// Gives up its descriptors without ending it.
    pub(crate) fn into_parts(self) -> Result<(i32, OwnedFd, OwnedFd), Errno> {
        let parts = (
            self.pid,
            rustix::io::fcntl_dupfd_cloexec(&self.pidfd, 0)?,
            rustix::io::fcntl_dupfd_cloexec(&self.control, 0)?,
        );
        self.leave();
        Ok(parts)
    }

    /// Gives up the sandbox without ending or reaping it: the process that inherits this process's children reaps it.
    pub fn leave(mut self) {
        self.collected = true;
        self.ended.get_or_insert(SandboxEnding {
            outcome: ProgramOutcome::Killed,
            usage: ResourceUsage::default(),
        });
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Returns a second handle for looking after it.
    ///
    /// # Errors
    /// The kernel's, when there is no descriptor left; `EOPNOTSUPP` for a sandbox without namespaces: its supervisor must
    /// not be killed, or no process would find the others.
    pub fn handle(&self) -> Result<InitHandle, Errno> {
        if self.is_supervisor {
            return Err(Errno::OPNOTSUPP);
        }
        let copy = |descriptor| rustix::io::fcntl_dupfd_cloexec(descriptor, 3);
        Ok(InitHandle { pid: self.pid, pidfd: copy(&self.pidfd)?, control: Some(copy(&self.control)?) })
    }

    /// Becomes readable when the sandbox has ended.
    pub fn ending(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Kills everything in the sandbox at once. Harmless when it has ended.
    pub fn kill(&self) {
        let _ = match self.is_supervisor {
            true => shutdown(&self.control, Shutdown::Both),
            false => pidfd_send_signal(&self.pidfd, Signal::KILL),
        };
    }

    /// Asks the program that the sandbox is for to end (SIGTERM). Harmless when it has ended.
    pub fn terminate(&self) {
        // A sandbox that doesn't receive it is killed later.
        let _ = InitRequest::Terminate.send(self.control());
    }

    /// Waits until nothing in the sandbox runs any more, or until `deadline`: then `None`, and the sandbox lives on.
    ///
    /// # Errors
    /// The errors of `poll` or `waitid`; the sandbox may live on.
    pub fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<SandboxEnding>, Errno> {
        if self.ended.is_none() && is_spoken_to(self.control.as_fd(), deadline)? {
            self.ended = Some(self.last_word()?);
        }
        Ok(self.ended)
    }

    /// Waits until nothing in the sandbox runs any more.
    ///
    /// # Errors
    /// The errors of [`Self::wait_until`].
    pub fn wait(&mut self) -> Result<SandboxEnding, Errno> {
        loop {
            if let Some(ending) = self.wait_until(None)? {
                return Ok(ending);
            }
        }
    }

    /// Returns true if PID 1 has sent that report, and it has not been read yet.
    pub(crate) fn has_run_out_of_memory(&self) -> bool {
        let mut word = [0; 64];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let said = match recv(&self.control, &mut word, flags) {
            // As for the last word.
            Err(Errno::CONNRESET) => recv(&self.control, &mut word, flags),
            said => said,
        };
        let said = said.ok().and_then(|(length, _)| word.get(..length));
        matches!(said.and_then(Report::decode), Some(Report::OutOfMemory { .. }))
    }

    /// Waits until nothing of it is left.
    pub(crate) fn wait_until_gone(mut self) {
        let _ = self.collect();
        self.ended.get_or_insert(SandboxEnding {
            outcome: ProgramOutcome::Killed,
            usage: ResourceUsage::default(),
        });
    }

    /// Receives PID 1's last report. A PID 1 that sends none was killed, and all others with it.
    fn last_word(&mut self) -> Result<SandboxEnding, Errno> {
        let said = match receive(self) {
            // PID 1 has left a request unread; its earlier reports are still there.
            Err(Errno::CONNRESET) => receive(self),
            said => said,
        };
        match said? {
            (Some(Report::Ended { status, usage }), _) => {
                Ok(SandboxEnding { outcome: ProgramOutcome::of(status), usage })
            }
            (Some(Report::OutOfMemory { usage }), _) => {
                Ok(SandboxEnding { outcome: ProgramOutcome::OutOfMemory, usage })
            }
            _ => {
                self.collect()?;
                Ok(SandboxEnding { outcome: ProgramOutcome::Killed, usage: ResourceUsage::default() })
            }
        }
    }

    /// Waits until PID 1 is gone, and with it the mounts and namespaces that were its.
    fn collect(&mut self) -> Result<(), Errno> {
        if self.is_child && !self.collected {
            rustix::io::retry_on_intr(|| waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED))?;
            self.collected = true;
        }
        let mut gone = [PollFd::new(&self.pidfd, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut gone, None)).map(drop)
    }
}

/// Waits until there is something to be read, or until `deadline`; false then.
pub(crate) fn is_spoken_to(channel: BorrowedFd<'_>, deadline: Option<Instant>) -> Result<bool, Errno> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let mut spoken = [PollFd::from_borrowed_fd(channel, PollFlags::IN)];
        match poll(&mut spoken, left.map(timespec).as_ref()) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno),
        }
    }
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

impl Drop for SealedSandbox {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
        }
        if !self.collected || self.ended.is_none() {
            let _ = self.collect();
        }
    }
}

// === impl InitHandle ===

impl InitHandle {
    /// Returns the handle of a process that another process has started and that isn't a child of this one.
    ///
    /// # Errors
    /// [`Errno::SRCH`] when no process has that number.
    pub fn of_process(pid: i32) -> Result<Self, Errno> {
        let found = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        Ok(Self { pid, pidfd: pidfd_open(found, PidfdFlags::empty())?, control: None })
    }

    /// Process id of its PID 1 on the host. It may belong to another process once [`Self::has_ended`].
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns true if nothing in it runs any more.
    pub fn has_ended(&self) -> bool {
        let mut gone = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut gone, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Makes PID 1 stop every process, or continue them; that takes a moment. All of them get the signal at once, and none
    /// that is being started is left out.
    ///
    /// # Errors
    /// [`Errno::OPNOTSUPP`] if its PID 1 takes no requests from here; the kernel's when PID 1 can't be reached.
    pub fn stop_all(&self, stop: bool) -> Result<(), Errno> {
        let control = self.control.as_ref().ok_or(Errno::OPNOTSUPP)?;
        let signal = if stop { libc::SIGSTOP } else { libc::SIGCONT };
        InitRequest::SignalAll(signal).send(control.as_fd())
    }

    /// Kills everything in it at once. Harmless when it has ended.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

// === impl ProgramOutcome ===

impl ProgramOutcome {
    pub(crate) fn of(status: i32) -> Self {
        match libc::WIFEXITED(status) {
            true => Self::Exited(libc::WEXITSTATUS(status)),
            false => Self::Signaled(libc::WTERMSIG(status)),
        }
    }

    /// The exit code that a shell would give.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Exited(code) => (code & 0xff) as u8,
            Self::Signaled(signal) => 128_u8.saturating_add((signal & 0x7f) as u8),
            Self::Killed | Self::OutOfMemory => 137,
        }
    }
}
