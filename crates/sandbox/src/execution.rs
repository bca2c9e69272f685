//! A program in a sandbox that lives on, whichever backend made it.

use crate::backend::{BackendError, Execution, TerminalSize};
use crate::limits::KILL_LIMIT;
use belljar_confine::execution::ExecutionError;
use belljar_confine::sealed::{InitHandle, SandboxEnding};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A program in a sandbox that lives on.
#[derive(Debug)]
pub(crate) struct ResidentExecution {
    execution: belljar_confine::execution::SandboxedProgram,
    /// Kept beside the one that was taken, for its size.
    terminal: Option<OwnedFd>,
    untaken: Option<OwnedFd>,
    /// The whole sandbox, until the program is killed. `None` for a sandbox without namespaces: without its supervisor no process
    /// would find the others.
    sandbox: Mutex<Option<InitHandle>>,
}

/// Calls `kill_sandbox` if a program has not ended in time: `ending` becomes readable when it has. Programs that fork without end leave
/// PID 1 so little of the processors that it doesn't hold the limits either.
pub(crate) fn kill_unless_ended(ending: BorrowedFd<'_>, kill_sandbox: impl Fn() + Clone + Send + 'static) {
    let Ok(ending) = ending.try_clone_to_owned() else { return kill_sandbox() };
    let kill = kill_sandbox.clone();
    let waiting = std::thread::Builder::new().name("belljar-kill".to_owned()).spawn(move || {
        if !matches!(readable(ending.as_fd(), Some(Instant::now() + KILL_LIMIT)), Ok(true)) {
            kill();
        }
    });
    if waiting.is_err() {
        kill_sandbox();
    }
}

/// Returns true if the descriptor becomes readable before the deadline.
pub(crate) fn readable(descriptor: BorrowedFd<'_>, until: Option<Instant>) -> Result<bool, Errno> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let mut watched = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
        match poll(&mut watched, left.map(timespec).as_ref()) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

// === impl ResidentExecution ===

impl ResidentExecution {
    pub(crate) fn new(
        mut execution: belljar_confine::execution::SandboxedProgram,
        sandbox: Option<InitHandle>,
    ) -> Self {
        let untaken = execution.take_terminal();
        let terminal =
            untaken.as_ref().and_then(|terminal| rustix::io::fcntl_dupfd_cloexec(terminal, 3).ok());
        Self { execution, terminal, untaken, sandbox: Mutex::new(sandbox) }
    }
}

impl Execution for ResidentExecution {
    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.untaken.take()
    }

    fn resize(&self, size: TerminalSize) -> Result<(), BackendError> {
        let TerminalSize { rows: ws_row, columns: ws_col } = size;
        let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = self.terminal.as_ref().ok_or(Errno::NOTTY);
        terminal
            .and_then(|terminal| tcsetwinsize(terminal.as_fd(), size))
            .map_err(|errno| BackendError::Reach(errno.into()))
    }

    fn signal(&self, signal: i32) -> Result<(), BackendError> {
        self.execution.signal(signal);
        Ok(())
    }

    fn kill(&self) -> Result<(), BackendError> {
        self.execution.kill();
        if let Some(sandbox) = self.sandbox.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let sandbox = Arc::new(sandbox);
            kill_unless_ended(self.execution.ending(), move || sandbox.kill());
        }
        Ok(())
    }

    fn ending(&self) -> BorrowedFd<'_> {
        self.execution.ending()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<SandboxEnding>, BackendError> {
        self.execution.wait_until(deadline).map_err(|errno| BackendError::Reach(errno.into()))
    }
}

/// Maps an error of PID 1 or the supervisor to a backend's error.
pub(crate) fn reach(error: ExecutionError) -> BackendError {
    match error {
        ExecutionError::NotStarted { subject, source } => {
            BackendError::NotStarted { program: subject, source }
        }
        ExecutionError::Gone => BackendError::Gone,
        error @ (ExecutionError::NoAnswer { .. } | ExecutionError::Channel { .. }) => {
            BackendError::Reach(error.into())
        }
    }
}
