//! A program in a native sandbox that lives on.

use crate::backend::{BackendError, Execution, TerminalSize};
use belljar_confine::sealed::Ending;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use std::time::Instant;

/// A program in a native sandbox.
#[derive(Debug)]
pub(super) struct NativeExecution {
    execution: belljar_confine::execution::Execution,
    /// Kept beside the one that was taken, for its size.
    terminal: Option<OwnedFd>,
    untaken: Option<OwnedFd>,
}

// === impl NativeExecution ===

impl NativeExecution {
    pub(super) fn new(mut execution: belljar_confine::execution::Execution) -> Self {
        let untaken = execution.take_terminal();
        let terminal =
            untaken.as_ref().and_then(|terminal| rustix::io::fcntl_dupfd_cloexec(terminal, 3).ok());
        Self { execution, terminal, untaken }
    }
}

impl Execution for NativeExecution {
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
