//! A program that runs on the host as it is.

use super::sandbox::FakeState;
use crate::backend::{BackendError, Execution, TerminalSize};
use crate::spec::Program;
use belljar_confine::ResourceUsage;
use belljar_confine::plan::Stdio;
use belljar_confine::process_group;
use belljar_confine::sealed::{ProgramOutcome, SandboxEnding};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::BTreeMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A program that runs on the host as it is.
#[derive(Debug)]
pub(super) struct FakeExecution {
    child: Child,
    pidfd: OwnedFd,
    /// Kept beside the one that was taken, for its size.
    terminal: Option<OwnedFd>,
    untaken: Option<OwnedFd>,
    life: Arc<FakeState>,
    ended: Option<SandboxEnding>,
}

fn reach(errno: Errno) -> BackendError {
    BackendError::Reach(errno.into())
}

// === impl FakeExecution ===

impl FakeExecution {
    pub(super) fn start(
        program: &Program,
        (directory, env): (&Path, &BTreeMap<String, String>),
        stdio: Stdio,
        life: &Arc<FakeState>,
    ) -> Result<Self, BackendError> {
        let not_started = |source| {
            let name = program.argv.first().map(|name| name.to_string_lossy().into_owned());
            BackendError::NotStarted { program: name.unwrap_or_default(), source }
        };
        let mut command = Command::new(program.argv.first().ok_or_else(|| not_started(Errno::INVAL))?);
        command
            .args(program.argv.iter().skip(1))
            .env_clear()
            .envs(env)
            .current_dir(directory)
            .process_group(0);
        let (standard, terminal) = connect(stdio).map_err(reach)?;
        let [input, output, errors] = standard;
        command.stdin(input).stdout(output).stderr(errors);
        let child = command.spawn();
        // The host's copies of its streams go with this.
        drop(command);
        let child =
            child.map_err(|error| not_started(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)))?;
        let pidfd = pid(&child).and_then(|pid| pidfd_open(pid, PidfdFlags::empty())).map_err(reach)?;
        let untaken = terminal.as_ref().and_then(|one| rustix::io::fcntl_dupfd_cloexec(one, 3).ok());
        Ok(Self { child, pidfd, terminal, untaken, life: Arc::clone(life), ended: None })
    }

    /// Kills it and what descends from it, as far as that is known.
    fn end(&self) {
        if self.ended.is_some() {
            return;
        }
        process_group::kill_branch(|| self.life.members(), self.child.id().cast_signed());
        let _ = self.signal_group(Signal::KILL);
    }

    /// The child has not been collected, so the group is still its own.
    fn signal_group(&self, signal: Signal) -> Result<(), Errno> {
        match pid(&self.child).and_then(|pid| kill_process_group(pid, signal)) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn collect(&mut self) -> Result<SandboxEnding, BackendError> {
        // The last moment at which the kernel still knows.
        let cpu = process_group::cpu_of_child(self.child.id().cast_signed()).unwrap_or_default();
        let status = self.child.wait().map_err(|error| BackendError::Reach(error.into()))?;
        self.life.add_used(cpu);
        let outcome = match (status.code(), status.signal()) {
            (_, Some(9)) if self.life.is_over() => ProgramOutcome::Killed,
            (_, Some(signal)) => ProgramOutcome::Signaled(signal),
            (code, None) => ProgramOutcome::Exited(code.unwrap_or_default()),
        };
        Ok(SandboxEnding { outcome, usage: ResourceUsage { cpu, max_rss_bytes: 0 } })
    }
}

impl Execution for FakeExecution {
    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.untaken.take()
    }

    fn resize(&self, size: TerminalSize) -> Result<(), BackendError> {
        let TerminalSize { rows: ws_row, columns: ws_col } = size;
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = self.terminal.as_ref().ok_or(Errno::NOTTY);
        terminal.and_then(|terminal| tcsetwinsize(terminal, size)).map_err(reach)
    }

    fn signal(&self, signal: i32) -> Result<(), BackendError> {
        if self.ended.is_some() {
            return Ok(());
        }
        let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL).map_err(reach)?;
        self.signal_group(signal).map_err(reach)
    }

    fn kill(&self) -> Result<(), BackendError> {
        self.end();
        Ok(())
    }

    fn ending(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<SandboxEnding>, BackendError> {
        while self.ended.is_none() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let mut ended = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut ended, left.map(timespec).as_ref()) {
                Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(None),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => self.ended = Some(self.collect()?),
                Err(errno) => return Err(reach(errno)),
            }
        }
        Ok(self.ended)
    }
}

impl Drop for FakeExecution {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.end();
            let _ = self.collect();
        }
    }
}

/// The program's streams, and the host's end of its terminal if it has one.
fn connect(stdio: Stdio) -> Result<([OwnedFd; 3], Option<OwnedFd>), Errno> {
    match stdio {
        Stdio::Descriptors(streams) => Ok((streams, None)),
        Stdio::Terminal => {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let host_end = openpt(flags)?;
            unlockpt(&host_end)?;
            let theirs = ioctl_tiocgptpeer(&host_end, flags)?;
            Ok((
                [theirs.try_clone().map_err(errno)?, theirs.try_clone().map_err(errno)?, theirs],
                Some(host_end),
            ))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for use as the argument of map_err")]
fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}

fn pid(child: &Child) -> Result<Pid, Errno> {
    Pid::from_raw(child.id().cast_signed()).ok_or(Errno::CHILD)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
