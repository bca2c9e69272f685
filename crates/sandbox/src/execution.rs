//! A program in a sandbox that lives on, whichever backend made it.

use crate::backend::{BackendError, Execution, TerminalSize};
use belljar_confine::execution::ExecutionError;
use belljar_confine::sealed::Ending;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use std::time::Instant;

/// A program in a sandbox that lives on.
#[derive(Debug)]
pub(crate) struct ResidentExecution {
    execution: belljar_confine::execution::Execution,
    /// Kept beside the one that was taken, for its size.
    terminal: Option<OwnedFd>,
    untaken: Option<OwnedFd>,
}

// === impl ResidentExecution ===

impl ResidentExecution {
    pub(crate) fn new(mut execution: belljar_confine::execution::Execution) -> Self {
        let untaken = execution.take_terminal();
        let terminal =
            untaken.as_ref().and_then(|terminal| rustix::io::fcntl_dupfd_cloexec(terminal, 3).ok());
        Self { execution, terminal, untaken }
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
        Ok(())
    }

    fn ending(&self) -> BorrowedFd<'_> {
        self.execution.ending()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<Ending>, BackendError> {
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
