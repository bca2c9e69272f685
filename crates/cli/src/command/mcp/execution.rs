//! A command in a session: what it is given to read, and as much of what it prints as is wanted.

use super::output::Output;
use belljar_sandbox::session::{Client, Execution, Outcome, SessionError, Streams};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// What is to be run.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) argv: Vec<OsString>,
    /// Where it starts.
    pub(super) directory: String,
    /// What it reads.
    pub(super) input: Vec<u8>,
    /// It is killed after that.
    pub(super) within: Duration,
    /// As much of each of its streams is kept.
    pub(super) most_bytes: usize,
    /// Whether it is over when it says no more, and is killed then.
    pub(super) ends_with_output: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) by: Ending,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, or with its session.
    Outcome(Outcome),
    /// It was killed when its time was over.
    OutOfTime,
    /// Nobody waited for it any more.
    GivenUp,
    /// It said no more, and was killed.
    Silent,
}

/// Whoever holds this waits for a command; dropped, it gives the command up.
pub(super) struct Waiting {
    _held: OwnedFd,
}

/// What tells that nobody waits any more.
#[derive(Debug)]
pub(super) struct GivenUp(OwnedFd);

/// The host's ends of the streams of a command; nothing in place of one that is over.
struct Pipes {
    input: Option<OwnedFd>,
    /// What of it is still to be written.
    pending: Vec<u8>,
    written: usize,
    outputs: [(Option<OwnedFd>, Output); 2],
}

/// So long one may take to end that has said all.
const AFTER_OUTPUT: Duration = Duration::from_millis(500);

const PORTION: usize = 64 << 10;

/// As many portions are read in a row: one that prints without end must not hold up the watch over its time.
const MOST_PORTIONS: usize = 16;

/// As often is read what is there once the program has ended: more can't be of its own.
const MOST_ROUNDS_AFTER_END: u32 = 64;

/// How somebody is told that they are not waited for any more.
pub(super) fn waiting() -> Result<(Waiting, GivenUp), Errno> {
    let (told, held) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((Waiting { _held: held }, GivenUp(told)))
}

/// Runs a command to its end, and reads all that it prints. What it has left in the background may go on printing; nobody reads that.
pub(super) fn run(client: &Client, command: Command, given_up: &GivenUp) -> Result<Ended, SessionError> {
    let mut deadline = Instant::now() + command.within;
    let mut silent = false;
    let failed = |source| SessionError::Unreachable { source };
    let (streams, mut pipes) = Pipes::make(command.input, command.most_bytes).map_err(failed)?;
    let streams = Streams::Descriptors(streams);
    let execution = match client.exec(&command.argv, &command.directory, streams, Some(deadline)) {
        Err(SessionError::OutOfTime) => {
            let [(_, stdout), (_, stderr)] = pipes.outputs;
            return Ok(Ended { by: Ending::OutOfTime, stdout, stderr });
        }
        started => started?,
    };
    let mut rounds_after_end = 0;
    loop {
        let (has_ended, is_given_up) = pipes.wait(&execution, given_up, deadline).map_err(failed)?;
        pipes.work();
        if command.ends_with_output && !silent && pipes.has_said_all() {
            // It is about to end by itself, or waits for this.
            (silent, deadline) = (true, deadline.min(Instant::now() + AFTER_OUTPUT));
        }
        rounds_after_end += u32::from(has_ended);
        // What it printed is there by now.
        let by = match () {
            () if has_ended && (pipes.are_idle() || rounds_after_end > MOST_ROUNDS_AFTER_END) => {
                Ending::Outcome(ended(&execution)?)
            }
            () if is_given_up => Ending::GivenUp,
            () if Instant::now() >= deadline && silent => Ending::Silent,
            () if Instant::now() >= deadline => Ending::OutOfTime,
            () => continue,
        };
        if !matches!(by, Ending::Outcome(_)) {
            execution.kill();
            let killed = execution.wait_until(None);
            // Whoever said all before it was killed is not waited for.
            if by != Ending::Silent {
                killed?;
            }
            pipes.work();
        }
        let [(_, stdout), (_, stderr)] = pipes.outputs;
        return Ok(Ended { by, stdout, stderr });
    }
}

fn ended(execution: &Execution) -> Result<Outcome, SessionError> {
    Ok(execution.wait_until(None)?.unwrap_or(Outcome::Killed))
}

// === impl GivenUp ===

impl GivenUp {
    /// Whether nobody waits.
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
        let outputs = [read_output, read_errors].map(|pipe| (Some(pipe), Output::of(most_bytes)));
        let pipes = Self { input: Some(write_input), pending: input, written: 0, outputs };
        Ok(([read_input, write_output, write_errors], pipes))
    }

    /// Waits for anything to do: whether the program has ended, and whether it is given up.
    fn wait(
        &self,
        execution: &Execution,
        GivenUp(given_up): &GivenUp,
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

    /// Writes what it takes, and reads what is there.
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

    /// Whether its output is closed.
    fn has_said_all(&self) -> bool {
        self.outputs[0].0.is_none()
    }

    /// Whether there is nothing to read at this moment.
    fn are_idle(&self) -> bool {
        let mut open: Vec<_> = self
            .outputs
            .iter()
            .filter_map(|(pipe, _)| pipe.as_ref())
            .map(|pipe| PollFd::new(pipe, PollFlags::IN))
            .collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // One that is over says so by itself, and is read once more.
        !matches!(poll(&mut open, Some(&now)), Ok(1..))
    }
}

/// Writes as much as is taken; whether all is written, or nobody reads.
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

/// Reads what is there; whether nothing more will come.
fn read_available(pipe: &OwnedFd, output: &mut Output) -> bool {
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
