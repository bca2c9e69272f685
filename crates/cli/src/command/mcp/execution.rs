//! Execution of a command in a session: writes its standard input and captures its output up to a limit.

use super::output::CappedOutput;
use belljar_sandbox::session::{
    ProgramOutcome, ProgramStreams, SessionClient, SessionError, SessionExecution,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Command to run in a session.
#[derive(Debug)]
pub(super) struct SessionCommand {
    pub(super) argv: Vec<OsString>,
    /// Working directory.
    pub(super) directory: String,
    /// Bytes for standard input.
    pub(super) input: Vec<u8>,
    /// Timeout after which the command is killed.
    pub(super) within: Duration,
    /// Maximum number of bytes kept of each output stream.
    pub(super) most_bytes: usize,
    /// True if the command counts as ended once it closes standard output. It is killed if it still runs [`AFTER_OUTPUT`] later.
    pub(super) ends_with_output: bool,
}

/// Result of a command: how it ended, and its captured output.
#[derive(Debug)]
pub(super) struct CommandResult {
    pub(super) by: CommandEnd,
    pub(super) stdout: CappedOutput,
    pub(super) stderr: CappedOutput,
}

/// Reason why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// The command ended by itself, or with its session.
    Outcome(ProgramOutcome),
    /// The command was killed at its timeout.
    OutOfTime,
    /// The command was killed because its caller stopped waiting.
    GivenUp,
    /// The command closed standard output, kept running, and was killed.
    Silent,
}

/// Handle of a caller that waits for a command. Dropping it gives the command up.
pub(super) struct CallerHandle {
    _held: OwnedFd,
}

/// Receiver of the signal that the caller has dropped its [`CallerHandle`] handle.
#[derive(Debug)]
pub(super) struct CallerGoneSignal(OwnedFd);

/// Host ends of a command's standard streams; `None` for a stream that is closed.
struct Pipes {
    input: Option<OwnedFd>,
    /// Bytes for standard input; the first `written` bytes of them are written.
    pending: Vec<u8>,
    written: usize,
    outputs: [(Option<OwnedFd>, CappedOutput); 2],
}

/// Time that a command has to end after it has closed standard output.
const AFTER_OUTPUT: Duration = Duration::from_millis(500);

const PORTION: usize = 64 << 10;

/// Maximum number of portions read in a row. A command that prints without end must not delay the timeout check.
const MOST_PORTIONS: usize = 16;

/// Maximum number of read rounds after the program has ended. Output beyond that can only come from background processes.
const MOST_ROUNDS_AFTER_END: u32 = 64;

/// Creates the handle of a waiting caller and the receiver that reports when the handle is dropped.
pub(super) fn waiting() -> Result<(CallerHandle, CallerGoneSignal), Errno> {
    let (told, held) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((CallerHandle { _held: held }, CallerGoneSignal(told)))
}

/// Runs a command to its end and captures its output. Later output of its background processes is discarded.
pub(super) fn run(
    client: &SessionClient,
    command: SessionCommand,
    given_up: &CallerGoneSignal,
) -> Result<CommandResult, SessionError> {
    let mut deadline = Instant::now() + command.within;
    let mut silent = false;
    let failed = |source| SessionError::Unreachable { source };
    let (streams, mut pipes) = Pipes::make(command.input, command.most_bytes).map_err(failed)?;
    let streams = ProgramStreams::Descriptors(streams);
    let execution = match client.exec(&command.argv, &command.directory, streams, Some(deadline)) {
        Err(SessionError::OutOfTime) => {
            let [(_, stdout), (_, stderr)] = pipes.outputs;
            return Ok(CommandResult { by: CommandEnd::OutOfTime, stdout, stderr });
        }
        started => started?,
    };
    let mut rounds_after_end = 0;
    loop {
        let (has_ended, is_given_up) = pipes.wait(&execution, given_up, deadline).map_err(failed)?;
        pipes.work();
        if command.ends_with_output && !silent && pipes.has_said_all() {
            // The command is about to end by itself, or waits to be ended.
            (silent, deadline) = (true, deadline.min(Instant::now() + AFTER_OUTPUT));
        }
        rounds_after_end += u32::from(has_ended);
        // After the end of the program, all its output is in the pipes.
        let by = match () {
            () if has_ended && (pipes.are_idle() || rounds_after_end > MOST_ROUNDS_AFTER_END) => {
                CommandEnd::Outcome(ended(&execution)?)
            }
            () if is_given_up => CommandEnd::GivenUp,
            () if Instant::now() >= deadline && silent => CommandEnd::Silent,
            () if Instant::now() >= deadline => CommandEnd::OutOfTime,
            () => continue,
        };
        if !matches!(by, CommandEnd::Outcome(_)) {
            execution.kill();
            let killed = execution.wait_until(None);
            // A failed wait doesn't matter if the command had closed standard output before it was killed.
            if by != CommandEnd::Silent {
                killed?;
            }
            pipes.work();
        }
        let [(_, stdout), (_, stderr)] = pipes.outputs;
        return Ok(CommandResult { by, stdout, stderr });
    }
}

fn ended(execution: &SessionExecution) -> Result<ProgramOutcome, SessionError> {
    Ok(execution.wait_until(None)?.unwrap_or(ProgramOutcome::Killed))
}

// === impl CallerGoneSignal ===

impl CallerGoneSignal {
    /// Returns true if the caller has stopped waiting.
    pub(super) fn is_so(&self) -> bool {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut watched, Some(&now)), Ok(1..))
    }
}

// === impl Pipes ===

impl Pipes {
    fn make(input: Vec<u8>, most_bytes: usize) -> Result<([OwnedFd; 3], Self), Errno> {
        let (read_input, write_input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (read_output, write_output) = pipe_with(PipeFlags::CLOEXEC)?;
        let (read_errors, write_errors) = pipe_with(PipeFlags::CLOEXEC)?;
        for ours in [&write_input, &read_output, &read_errors] {
            rustix::io::ioctl_fionbio(ours, true)?;
        }
        let outputs = [read_output, read_errors].map(|pipe| (Some(pipe), CappedOutput::of(most_bytes)));
        let pipes = Self { input: Some(write_input), pending: input, written: 0, outputs };
        Ok(([read_input, write_output, write_errors], pipes))
    }

    /// Waits for an event until `deadline`. Returns whether the program has ended, and whether it is given up.
    fn wait(
        &self,
        execution: &SessionExecution,
        CallerGoneSignal(given_up): &CallerGoneSignal,
        deadline: Instant,
    ) -> Result<(bool, bool), Errno> {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut ready = vec![
            PollFd::from_borrowed_fd(execution.ending(), PollFlags::IN),
            PollFd::new(given_up, PollFlags::IN),
        ];
        ready.extend(self.input.iter().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        let open = self.outputs.iter().filter_map(|(pipe, _)| pipe.as_ref());
        ready.extend(open.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut ready, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok((!ready[0].revents().is_empty(), !ready[1].revents().is_empty()))
    }

    /// Writes as much input as the pipe accepts, and reads available output.
    fn work(&mut self) {
        if let Some(pipe) = &self.input {
            let is_over = write_available(pipe, &self.pending, &mut self.written);
            if is_over {
                self.input = None;
            }
        }
        for (pipe, output) in &mut self.outputs {
            if pipe.as_ref().is_some_and(|pipe| read_available(pipe, output)) {
                *pipe = None;
            }
        }
    }

    /// Returns true if standard output is closed.
    fn has_said_all(&self) -> bool {
        self.outputs[0].0.is_none()
    }

    /// Returns true if there is nothing to read at this moment.
    fn are_idle(&self) -> bool {
        let mut open: Vec<_> = self
            .outputs
            .iter()
            .filter_map(|(pipe, _)| pipe.as_ref())
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
            .collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A pipe whose writers are gone polls as ready, and is read once more.
        !matches!(poll(&mut open, Some(&now)), Ok(1..))
    }
}

/// Writes as much as the pipe accepts. Returns true if all is written, or if the pipe has no reader.
fn write_available(pipe: &OwnedFd, pending: &[u8], written: &mut usize) -> bool {
    while *written < pending.len() {
        match rustix::io::retry_on_intr(|| rustix::io::write(pipe, &pending[*written..])) {
            Ok(count) => *written += count,
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
    true
}

/// Reads available output. Returns true if the stream has ended.
fn read_available(pipe: &OwnedFd, output: &mut CappedOutput) -> bool {
    let mut buffer = vec![0; PORTION];
    for _ in 0..MOST_PORTIONS {
        match rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut buffer[..])) {
            Ok(0) => return true,
            Ok(count) => output.take(&buffer[..count]),
            Err(Errno::AGAIN) => return false,
            Err(_) => return true,
        }
    }
    false
}
