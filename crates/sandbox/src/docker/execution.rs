//! A program in a container.

use super::frame::{HostMessage, RelayMessage, StartRequest};
use super::inbox::{Inbox, NextFrame};
use super::pump::{Pump, PumpState, PumpStreams};
use super::watched::WatchedContainer;
use crate::backend::{BackendError, Execution, TerminalSize};
use crate::execution::{kill_unless_ended, readable};
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::SandboxEnding;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A program in a container.
#[derive(Debug)]
pub(super) struct DockerExecution {
    container: Arc<WatchedContainer>,
    id: u32,
    inbox: Arc<Inbox>,
    fate: Arc<PumpState>,
    has_terminal: bool,
    terminal: Option<OwnedFd>,
}

/// Longer than it takes to start any program.
const PATIENCE: Duration = Duration::from_secs(60);

// === impl DockerExecution ===

impl DockerExecution {
    pub(super) fn start(
        container: &Arc<WatchedContainer>,
        start: StartRequest,
        stdio: Stdio,
    ) -> Result<Self, BackendError> {
        let channel = container.channel();
        let reach = |errno: Errno| BackendError::Reach(errno.into());
        let has_terminal = start.has_terminal;
        let (terminal, input, outputs) = match stdio {
            Stdio::Descriptors([input, output, errors]) => (None, input, [Some(output), Some(errors)]),
            Stdio::Terminal => {
                let (callers, ours) =
                    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                        .map_err(reach)?;
                let copy = rustix::io::fcntl_dupfd_cloexec(&ours, 3).map_err(reach)?;
                (Some(callers), ours, [Some(copy), None])
            }
        };
        let program =
            start.argv.first().map(|first| String::from_utf8_lossy(first).into_owned()).unwrap_or_default();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(reach)?;
        let (id, inbox) = channel.register()?;
        let begun = channel.send(&HostMessage::Start(id, start), &[]).and_then(|()| {
            match inbox.wait(Instant::now() + PATIENCE) {
                NextFrame::Frame(RelayMessage::Started(_), _) => Ok(()),
                NextFrame::Frame(RelayMessage::NotStarted(_, errno, subject), _) => {
                    let program = if subject.is_empty() { program } else { subject };
                    Err(BackendError::NotStarted { program, source: Errno::from_raw_os_error(errno) })
                }
                NextFrame::Frame(..) | NextFrame::Nothing => {
                    // Should it start after all, it is not wanted any more.
                    let _ = channel.send(&HostMessage::Kill(id), &[]);
                    Err(BackendError::Reach("the sandbox doesn't answer".into()))
                }
                NextFrame::Closed => Err(BackendError::Gone),
            }
        });
        if let Err(error) = begun {
            channel.forget(id);
            return Err(error);
        }
        let fate = Arc::new(PumpState::new(bell));
        let execution = Self {
            container: Arc::clone(container),
            id,
            inbox: Arc::clone(&inbox),
            fate: Arc::clone(&fate),
            has_terminal,
            terminal,
        };
        let pump = Pump::new(Arc::clone(channel), id, inbox, fate, PumpStreams { input, outputs });
        std::thread::Builder::new()
            .name("belljar-pump".to_owned())
            .spawn(move || pump.run())
            .map_err(|error| BackendError::Reach(error.into()))?;
        Ok(execution)
    }

    fn order(&self, order: &HostMessage) -> Result<(), BackendError> {
        match self.container.channel().send(order, &[]) {
            // It has ended then, too.
            Err(BackendError::Gone) => Ok(()),
            sent => sent,
        }
    }
}

impl Execution for DockerExecution {
    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    fn resize(&self, TerminalSize { rows, columns }: TerminalSize) -> Result<(), BackendError> {
        match self.has_terminal {
            true => self.order(&HostMessage::Resize(self.id, rows, columns)),
            false => Err(BackendError::Reach(Errno::NOTTY.into())),
        }
    }

    fn signal(&self, signal: i32) -> Result<(), BackendError> {
        self.order(&HostMessage::Signal(self.id, signal))
    }

    fn kill(&self) -> Result<(), BackendError> {
        let was_killed = self.fate.is_killed.swap(true, Ordering::AcqRel);
        self.inbox.ring();
        self.order(&HostMessage::Kill(self.id))?;
        if !was_killed {
            let container = Arc::clone(&self.container);
            kill_unless_ended(self.ending(), move || container.kill_all());
        }
        Ok(())
    }

    fn ending(&self) -> BorrowedFd<'_> {
        self.fate.bell.as_fd()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<SandboxEnding>, BackendError> {
        match readable(self.ending(), deadline) {
            Ok(true) => Ok(self.fate.ending()),
            Ok(false) => Ok(None),
            Err(errno) => Err(BackendError::Reach(errno.into())),
        }
    }
}

impl Drop for DockerExecution {
    fn drop(&mut self) {
        if self.fate.ending().is_none() {
            let _ = self.kill();
        }
    }
}
