//! Joins belljar's own input and output with those of a sandbox.
//!
//! A terminal of the host is never passed into a sandbox: a process that holds one can inject input into it. Nor is a file,
//! whose path would be visible, nor a socket, which leads outside, nor a pipe, which can be reopened in the other direction.
//! With a terminal on both sides the sandbox gets one of its own and belljar relays; every other stream but `/dev/null`
//! is relayed through a pipe.

mod known_state;
mod pump;
mod turn;

use crate::error::CliError;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::SealedSandbox;
use belljar_sandbox::backend::{self, TerminalSize};
use belljar_sandbox::session::{ProgramOutcome, SessionExecution};
pub(crate) use known_state::begin_review;
use pump::Pump;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::time::{Duration, Instant};

/// Streams that belljar relays while the sandbox runs.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    input: Option<Pump>,
    outputs: Vec<Pump>,
    /// Error that lost some of the program's output.
    lost: Option<Errno>,
}

/// Result of relaying.
#[derive(Debug)]
pub(crate) enum RelayResult {
    /// The program ended, with the exit code that a shell would give.
    Ended(u8),
    /// The program exceeded its time limit and was killed.
    OutOfTime,
}

/// Something that runs while its streams are relayed.
pub(crate) trait RelayTarget {
    /// Becomes readable when it has ended.
    fn ending(&self) -> BorrowedFd<'_>;
    /// Waits until it has ended and returns its exit code; `None` at `deadline`.
    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<u8>, CliError>;
    fn kill(&self);
    /// Tells it the size of its terminal, where that is no terminal of this host's.
    fn resize(&self, _size: TerminalSize) {}
}

const TICK: Duration = Duration::from_millis(250);

/// Returns the streams for the sandbox, and those to relay.
pub(crate) fn connect() -> Result<(Stdio, Streams), CliError> {
    connect_streams().map_err(|source| CliError::Watch { source })
}

fn connect_streams() -> Result<(Stdio, Streams), Errno> {
    let mut streams = Streams::default();
    if isatty(stdin()) && isatty(stdout()) {
        return Ok((Stdio::Terminal, streams));
    }
    let input = match may_enter(stdin()) {
        true => duplicate(stdin())?,
        false => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            // A program that doesn't read its input must not block the timeout check.
            rustix::io::ioctl_fionbio(&ours, true)?;
            streams.input = Some(Pump::new(duplicate(stdin())?, ours));
            theirs
        }
    };
    let mut outgoing = |stream: BorrowedFd<'static>| {
        if may_enter(stream) {
            return duplicate(stream);
        }
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        streams.outputs.push(Pump::new(ours, duplicate(stream)?));
        Ok(theirs)
    };
    let output = outgoing(stdout())?;
    let errors = outgoing(stderr())?;
    Ok((Stdio::Descriptors([input, output, errors]), streams))
}

/// Whether a stream says and leads nothing beyond itself.
fn may_enter(stream: BorrowedFd<'_>) -> bool {
    let path = format!("/proc/self/fd/{}", stream.as_raw_fd());
    let Ok(names) = rustix::fs::readlink(path, Vec::new()) else { return false };
    names.to_bytes() == b"/dev/null"
}

fn duplicate(stream: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(stream, 3)
}

// === impl Streams ===

impl Streams {
    /// Relays until the program has ended and all it wrote is passed on, or kills it when its time is over. Afterwards the user's terminal
    /// is in a known state again, whatever the program has written to it.
    pub(crate) fn until_end(
        self,
        watched: &mut dyn RelayTarget,
        terminal: Option<OwnedFd>,
        deadline: Option<Instant>,
    ) -> Result<RelayResult, CliError> {
        known_state::end_review();
        let relayed = self.pass_all_on(watched, terminal, deadline);
        known_state::restore();
        relayed
    }

    fn pass_all_on(
        mut self,
        watched: &mut dyn RelayTarget,
        terminal: Option<OwnedFd>,
        deadline: Option<Instant>,
    ) -> Result<RelayResult, CliError> {
        match terminal {
            Some(terminal) => {
                let (mut raw, mut streams) =
                    RawTerminal::enter(terminal).map_err(|source| CliError::Watch { source })?;
                streams.relay(watched, deadline, |watched| raw.follow_size(watched))
            }
            None if self.is_nothing() => match watched.wait_until(deadline)? {
                Some(code) => Ok(RelayResult::Ended(code)),
                None => end(watched),
            },
            None => {
                let relay = self.relay(watched, deadline, |_| ())?;
                Ok(self.judge(relay))
            }
        }
    }

    /// Reports output that could not be passed on. Without it a program that ended well has not done its part.
    fn judge(&self, relay: RelayResult) -> RelayResult {
        let Some(source) = self.lost else { return relay };
        let code = CliError::output(source.into()).report_code();
        match relay {
            RelayResult::Ended(0) => RelayResult::Ended(code),
            relay => relay,
        }
    }

    fn is_nothing(&self) -> bool {
        self.input.is_none() && self.outputs.is_empty()
    }

    fn relay(
        &mut self,
        watched: &mut dyn RelayTarget,
        deadline: Option<Instant>,
        mut each_time: impl FnMut(&dyn RelayTarget),
    ) -> Result<RelayResult, CliError> {
        loop {
            each_time(watched);
            let has_ended =
                self.wait_for_something(watched, deadline).map_err(|source| CliError::Watch { source })?;
            // Input that the program doesn't read is not reported as lost.
            self.input = self.input.take().and_then(|input| input.work().unwrap_or_default());
            self.outputs =
                std::mem::take(&mut self.outputs).into_iter().filter_map(|pump| self.pass_on(pump)).collect();
            // The program's output has arrived by now. Its background processes may hold the streams open for ever.
            if has_ended
                && self.outputs.iter().all(Pump::is_idle)
                && let Some(code) = watched.wait_until(None)?
            {
                return Ok(RelayResult::Ended(code));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return end(watched);
            }
        }
    }

    fn pass_on(&mut self, output: Pump) -> Option<Pump> {
        output.work().unwrap_or_else(|errno| {
            self.lost.get_or_insert(errno);
            None
        })
    }

    /// Waits for anything to do, a tick at most; says whether the sandbox has ended.
    fn wait_for_something(
        &self,
        watched: &dyn RelayTarget,
        deadline: Option<Instant>,
    ) -> Result<bool, Errno> {
        let left =
            deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()).min(TICK));
        let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut ready = vec![PollFd::from_borrowed_fd(watched.ending(), PollFlags::IN)];
        ready.extend(self.input.iter().chain(&self.outputs).map(Pump::interest));
        match poll(&mut ready, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP))
    }
}

fn end(watched: &mut dyn RelayTarget) -> Result<RelayResult, CliError> {
    watched.kill();
    watched.wait_until(None)?;
    Ok(RelayResult::OutOfTime)
}

impl RelayTarget for SealedSandbox {
    fn ending(&self) -> BorrowedFd<'_> {
        self.ending()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<u8>, CliError> {
        let ending = self.wait_until(deadline).map_err(|source| CliError::Watch { source })?;
        Ok(ending.map(|ending| ending.outcome.exit_code()))
    }

    fn kill(&self) {
        self.kill();
    }
}

impl RelayTarget for Box<dyn backend::Execution> {
    fn ending(&self) -> BorrowedFd<'_> {
        (**self).ending()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<u8>, CliError> {
        Ok((**self).wait_until(deadline)?.map(|ending| ending.outcome.exit_code()))
    }

    fn kill(&self) {
        // One that can't be reached is over.
        let _ = (**self).kill();
    }

    fn resize(&self, size: TerminalSize) {
        let _ = (**self).resize(size);
    }
}

impl RelayTarget for SessionExecution {
    fn ending(&self) -> BorrowedFd<'_> {
        self.ending()
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<u8>, CliError> {
        Ok(Self::wait_until(self, deadline)?.map(ProgramOutcome::exit_code))
    }

    fn kill(&self) {
        self.kill();
    }

    fn resize(&self, size: TerminalSize) {
        self.resize(size);
    }
}

/// The host's terminal in raw mode, put back when dropped.
struct RawTerminal {
    before: Termios,
    theirs: OwnedFd,
    size: Option<Winsize>,
}

// === impl RawTerminal ===

impl RawTerminal {
    fn enter(theirs: OwnedFd) -> Result<(Self, Streams), Errno> {
        rustix::io::ioctl_fionbio(&theirs, true)?;
        let streams = Streams {
            input: Some(Pump::new(duplicate(stdin())?, duplicate(theirs.as_fd())?)),
            outputs: vec![Pump::new(duplicate(theirs.as_fd())?, duplicate(stdout())?)],
            lost: None,
        };
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let terminal = Self { before, theirs, size: None };
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok((terminal, streams))
    }

    /// A window that was resized is noticed here, several times a second, instead of by a signal.
    fn follow_size(&mut self, watched: &dyn RelayTarget) {
        let Ok(size) = tcgetwinsize(stdin()) else { return };
        if self.size == Some(size) {
            return;
        }
        match tcsetwinsize(&self.theirs, size) {
            // A container's terminal is in the container.
            Err(Errno::NOTTY | Errno::OPNOTSUPP) => {
                watched.resize(TerminalSize { rows: size.ws_row, columns: size.ws_col });
            }
            Err(_) => return,
            Ok(()) => {}
        }
        self.size = Some(size);
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
