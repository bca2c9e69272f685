//! Programs started in a sandbox that lives on.
//!
//! ```text
//! host                                      PID 1
//! Resident::start ── Start, channel ──────► starts it, in the same walls as any other
//! Execution       ◄── Started, terminal ──┤
//!                 ── Signal, Kill ────────►
//!                 ◄── Ended: status ──────┤
//! ```
//! Each execution has a channel of its own, so messages of different executions can't be confused. An execution whose
//! channel the host closes is killed.

pub(crate) mod attended;

use crate::kernel::ResourceUsage;
use crate::message;
use crate::plan::{Command, Program, Stdio, wire};
use crate::sealed::{InitHandle, ProgramOutcome, SandboxEnding, SealedSandbox, is_spoken_to, timespec};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// A sandbox that has no program of its own. It lives until it is dropped, killed, or ordered to end.
#[derive(Debug)]
pub struct ResidentSandbox {
    sealed: SealedSandbox,
}

/// A program in such a sandbox. Dropping it kills the program.
#[derive(Debug)]
pub struct SandboxedProgram {
    channel: OwnedFd,
    terminal: Option<OwnedFd>,
    ended: Option<SandboxEnding>,
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// It can't be run, or a wall could not be put around it.
    #[error("can't start {subject}")]
    NotStarted {
        /// The program, or the wall.
        subject: String,
        /// Why.
        #[source]
        source: Errno,
    },
    /// The sandbox is over.
    #[error("the sandbox has ended")]
    Gone,
    /// PID 1 has not answered in time.
    #[error("PID 1 of the sandbox did not answer within {} s; end the sandbox", limit.as_secs())]
    NoAnswer {
        /// Time limit that it exceeded.
        limit: Duration,
    },
    /// The request could not be sent or answered.
    #[error("can't communicate with the sandbox")]
    Channel {
        /// Why.
        #[source]
        source: Errno,
    },
}

/// A request of the host to PID 1.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum InitRequest {
    /// Start a program, and report about it on the channel that is sent along.
    Start {
        program: Program,
        #[serde(with = "wire::descriptor")]
        channel: OwnedFd,
    },
    /// Report the processes that run and their resource usage.
    Count {
        #[serde(with = "wire::descriptor")]
        channel: OwnedFd,
    },
    /// Send a signal to every process.
    SignalAll(i32),
    /// Ask the program that the sandbox is for to end.
    Terminate,
}

/// An order of the host about a running program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProgramControl {
    /// Send a signal to its process group.
    Signal(i32),
    /// Kill it and what it has started.
    Kill,
}

/// A report of PID 1 about a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProgramEvent {
    Started,
    NotStarted {
        #[serde(with = "wire::errno")]
        errno: Errno,
        /// Subject of the failed operation, such as a path.
        subject: String,
    },
    Ended {
        /// Wait status, as `wait4` returns it.
        status: i32,
        usage: ResourceUsage,
    },
    Counted(SandboxLoad),
}

/// Processes that run in a sandbox now, without PID 1, and what they use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLoad {
    /// Processes.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// Memory that they hold, in bytes. Shared pages are counted for each process.
    pub resident_bytes: u64,
    /// The processor time of those that run and of those that have ended.
    pub cpu: Duration,
}

/// Maximum time for PID 1 to report the load or to accept a request. It only has to look at the processes that exist.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Maximum time until a program has started: the host's files may be slow.
const START_LIMIT: Duration = Duration::from_secs(15);

// === impl ResidentSandbox ===

impl ResidentSandbox {
    /// Wraps a sandbox that was launched without a program.
    pub fn new(sealed: SealedSandbox) -> Self {
        Self { sealed }
    }

    /// Starts a program. Any number of threads may call this at once.
    ///
    /// # Errors
    /// [`ExecutionError`]; nothing of the program is left then. A sandbox whose PID 1 doesn't start programs any more is
    /// killed: it may not watch the limits any more either.
    pub fn start(&self, command: Command, stdio: Stdio) -> Result<SandboxedProgram, ExecutionError> {
        let started = start(self.sealed.control(), command, stdio);
        if matches!(started, Err(ExecutionError::NoAnswer { .. })) {
            self.kill();
        }
        started
    }

    /// Returns the processes that run in it now and what they use.
    ///
    /// # Errors
    /// [`ExecutionError`] when PID 1 doesn't answer in time.
    pub fn load(&self) -> Result<SandboxLoad, ExecutionError> {
        let (ours, theirs) = message::pair().map_err(failed)?;
        InitRequest::Count { channel: theirs }.put(self.sealed.control(), ANSWER_LIMIT)?;
        match answer(ours.as_fd(), ANSWER_LIMIT)? {
            Some((ProgramEvent::Counted(load), _)) => Ok(load),
            Some(_) => Err(failed(Errno::PROTO)),
            None => Err(ExecutionError::Gone),
        }
    }

    /// Stops every process, or continues them. PID 1 itself keeps running.
    ///
    /// # Errors
    /// [`ExecutionError`] when PID 1 can't be reached.
    pub fn stop_all(&self, stop: bool) -> Result<(), ExecutionError> {
        let signal = if stop { libc::SIGSTOP } else { libc::SIGCONT };
        InitRequest::SignalAll(signal).put(self.sealed.control(), ANSWER_LIMIT)
    }

    /// Returns true if the sandbox has ended by itself or was killed. Sends no request into it.
    pub fn has_ended(&self) -> bool {
        is_spoken_to(self.sealed.ending(), Some(Instant::now())).unwrap_or(false)
    }

    /// Kills everything in it at once. Harmless when it has ended.
    pub fn kill(&self) {
        self.sealed.kill();
    }

    /// Ends everything, and waits until nothing of the sandbox is left.
    pub fn end(self) {
        // The kernel ends whatever PID 1 leaves behind.
        self.sealed.kill();
        self.sealed.wait_until_gone();
    }

    /// Returns a second handle for looking after it.
    ///
    /// # Errors
    /// The kernel's, when there is no descriptor left.
    pub fn handle(&self) -> Result<InitHandle, Errno> {
        self.sealed.handle()
    }

    /// Returns true if PID 1 has ended the sandbox because its memory was used up.
    pub fn has_run_out_of_memory(&self) -> bool {
        self.sealed.has_run_out_of_memory()
    }
}

/// Maps the error of a channel to an execution error. A peer that has closed its end has ended.
fn failed(source: Errno) -> ExecutionError {
    match source {
        Errno::PIPE | Errno::CONNRESET => ExecutionError::Gone,
        source => ExecutionError::Channel { source },
    }
}

/// Waits for the answer to a request.
fn answer(
    channel: BorrowedFd<'_>,
    limit: Duration,
) -> Result<Option<(ProgramEvent, Option<OwnedFd>)>, ExecutionError> {
    match is_spoken_to(channel, Instant::now().checked_add(limit)).map_err(failed)? {
        true => ProgramEvent::receive(channel).map_err(failed),
        false => Err(ExecutionError::NoAnswer { limit }),
    }
}

/// Asks PID 1 to start a program.
pub(crate) fn start(
    control: BorrowedFd<'_>,
    command: Command,
    stdio: Stdio,
) -> Result<SandboxedProgram, ExecutionError> {
    let (ours, theirs) = message::pair().map_err(failed)?;
    let program = Program { command, stdio };
    InitRequest::Start { program, channel: theirs }.put(control, START_LIMIT)?;
    match answer(ours.as_fd(), START_LIMIT)? {
        Some((ProgramEvent::Started, terminal)) => {
            Ok(SandboxedProgram { channel: ours, terminal, ended: None })
        }
        Some((ProgramEvent::NotStarted { errno, subject }, _)) => {
            Err(ExecutionError::NotStarted { subject, source: errno })
        }
        Some((ProgramEvent::Ended { .. } | ProgramEvent::Counted(_), _)) => Err(failed(Errno::PROTO)),
        None => Err(ExecutionError::Gone),
    }
}

// === impl SandboxedProgram ===

impl SandboxedProgram {
    /// Takes the host's end of its terminal, if it has one.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Becomes readable when the program has ended.
    pub fn ending(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Sends a signal to the program's process group. Harmless when it has ended.
    pub fn signal(&self, signal: i32) {
        let _ = ProgramControl::Signal(signal).send(self.channel.as_fd());
    }

    /// Kills the program and what it has started, as far as that has not left its session and lost its parent.
    pub fn kill(&self) {
        let _ = ProgramControl::Kill.send(self.channel.as_fd());
    }

    /// Waits until the program has ended, or until `deadline`: then `None`.
    ///
    /// # Errors
    /// Errors of `poll`; the program may live on.
    pub fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<SandboxEnding>, Errno> {
        if self.ended.is_none() && is_spoken_to(self.channel.as_fd(), deadline)? {
            self.ended = Some(self.last_word()?);
        }
        Ok(self.ended)
    }

    fn last_word(&self) -> Result<SandboxEnding, Errno> {
        let told = match ProgramEvent::receive(self.channel.as_fd()) {
            // PID 1 has left an order unread; its earlier reports are still there.
            Err(Errno::CONNRESET) => ProgramEvent::receive(self.channel.as_fd()),
            told => told,
        };
        Ok(match told? {
            Some((ProgramEvent::Ended { status, usage }, _)) => {
                SandboxEnding { outcome: ProgramOutcome::of(status), usage }
            }
            // With the whole sandbox.
            _ => SandboxEnding { outcome: ProgramOutcome::Killed, usage: ResourceUsage::default() },
        })
    }
}

// === impl InitRequest ===

impl InitRequest {
    /// Sends it without waiting; `EAGAIN` when PID 1 has not taken many of those before it.
    pub(crate) fn send(&self, control: BorrowedFd<'_>) -> Result<(), Errno> {
        let (bytes, descriptors) = wire::encode(self)?;
        message::send_now(control, &bytes, &message::borrowed(&descriptors))
    }

    /// Sends it, and waits for room until the limit is over.
    fn put(&self, control: BorrowedFd<'_>, limit: Duration) -> Result<(), ExecutionError> {
        let deadline = Instant::now() + limit;
        loop {
            match self.send(control) {
                Err(Errno::AGAIN) if Instant::now() < deadline => {
                    let left = timespec(deadline.saturating_duration_since(Instant::now()));
                    let _ = poll(&mut [PollFd::from_borrowed_fd(control, PollFlags::OUT)], Some(&left));
                }
                Err(Errno::AGAIN) => return Err(ExecutionError::NoAnswer { limit }),
                sent => return sent.map_err(failed),
            }
        }
    }

    /// Receives the next request; `None` when the host is gone.
    pub(crate) fn receive(control: BorrowedFd<'_>) -> Result<Option<Self>, Errno> {
        let Some((bytes, descriptors)) = message::receive_now(control)? else { return Ok(None) };
        wire::decode(&bytes, descriptors).map(Some)
    }
}

// === impl ProgramControl ===

impl ProgramControl {
    fn send(self, channel: BorrowedFd<'_>) -> Result<(), Errno> {
        let (bytes, _) = wire::encode(&self)?;
        message::send(channel, &bytes, &[])
    }

    /// Receives the next order; `None` when the host has closed the channel.
    pub(crate) fn receive(channel: BorrowedFd<'_>) -> Result<Option<Self>, Errno> {
        let Some((bytes, _)) = message::receive_now(channel)? else { return Ok(None) };
        wire::decode(&bytes, Vec::new()).map(Some)
    }
}

// === impl ProgramEvent ===

impl ProgramEvent {
    pub(crate) fn send(
        &self,
        channel: BorrowedFd<'_>,
        terminal: Option<BorrowedFd<'_>>,
    ) -> Result<(), Errno> {
        let (bytes, _) = wire::encode(self)?;
        message::send(channel, &bytes, terminal.as_slice())
    }

    /// Receives the next report, with a terminal if one was requested; `None` when PID 1 is gone.
    fn receive(channel: BorrowedFd<'_>) -> Result<Option<(Self, Option<OwnedFd>)>, Errno> {
        let Some((bytes, descriptors)) = message::receive(channel)? else { return Ok(None) };
        let told = wire::decode(&bytes, Vec::new())?;
        Ok(Some((told, descriptors.into_iter().next())))
    }
}
