//! Joins belljar's own input and output with those of a sandbox.
//!
//! A terminal of the host's never goes into a sandbox: whoever holds one can type into it. With a terminal on both
//! sides the sandbox gets one of its own and belljar relays; a stream that is a terminal alone is relayed through a
//! pipe; files and pipes are passed as they are.

use crate::error::CliError;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::{Ending, Sealed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{
    OptionalActions, Termios, Winsize, isatty, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::time::{Duration, Instant};

/// Streams that belljar must relay while the sandbox runs.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Written with what is read from standard input.
    input: Option<OwnedFd>,
    /// Read, and what comes is written to standard output.
    output: Option<OwnedFd>,
    /// Read, and what comes is written to standard error.
    errors: Option<OwnedFd>,
}

/// How relaying ended.
#[derive(Debug)]
pub(crate) enum Relay {
    /// The sandbox ended.
    Ended(Ending),
    /// Its time was over; it was killed.
    OutOfTime,
}

const TICK: Duration = Duration::from_millis(250);

/// What the sandbox gets, and what is left to relay.
pub(crate) fn connect() -> Result<(Stdio, Streams), CliError> {
    connect_streams().map_err(|source| CliError::Watch { source })
}

fn connect_streams() -> Result<(Stdio, Streams), Errno> {
    if isatty(stdin()) && isatty(stdout()) {
        return Ok((Stdio::Terminal, Streams::default()));
    }
    let mut streams = Streams::default();
    let input = match isatty(stdin()) {
        true => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            streams.input = Some(ours);
            theirs
        }
        false => duplicate(stdin())?,
    };
    let mut outgoing = |stream: BorrowedFd<'static>, ours: fn(&mut Streams) -> &mut Option<OwnedFd>| {
        if !isatty(stream) {
            return duplicate(stream);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        *ours(&mut streams) = Some(read);
        Ok(write)
    };
    let output = outgoing(stdout(), |streams| &mut streams.output)?;
    let errors = outgoing(stderr(), |streams| &mut streams.errors)?;
    Ok((Stdio::Descriptors([input, output, errors]), streams))
}

fn duplicate(stream: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(stream, 3)
}

// === impl Streams ===

impl Streams {
    /// Relays until the sandbox has ended, or kills it when its time is over.
    pub(crate) fn until_end(
        self,
        sealed: &mut Sealed,
        terminal: Option<OwnedFd>,
        deadline: Option<Instant>,
    ) -> Result<Relay, CliError> {
        let relayed = match terminal {
            Some(terminal) => RawTerminal::enter(terminal).and_then(|raw| raw.relay(sealed, deadline)),
            None => self.relay(sealed, deadline),
        };
        relayed.map_err(|source| CliError::Watch { source })
    }

    fn relay(mut self, sealed: &mut Sealed, deadline: Option<Instant>) -> Result<Relay, Errno> {
        if self.input.is_none() && self.output.is_none() && self.errors.is_none() {
            return match sealed.wait_until(deadline)? {
                Some(ending) => Ok(Relay::Ended(ending)),
                None => end(sealed),
            };
        }
        loop {
            let readable = |wanted: bool| if wanted { PollFlags::IN } else { PollFlags::empty() };
            let nothing = stderr();
            let output = self.output.as_ref().map_or(nothing, |fd| fd.as_fd());
            let errors = self.errors.as_ref().map_or(nothing, |fd| fd.as_fd());
            let mut ready = [
                PollFd::from_borrowed_fd(sealed.pidfd(), PollFlags::IN),
                PollFd::from_borrowed_fd(stdin(), readable(self.input.is_some())),
                PollFd::from_borrowed_fd(output, readable(self.output.is_some())),
                PollFd::from_borrowed_fd(errors, readable(self.errors.is_some())),
            ];
            wait(&mut ready, deadline)?;
            let [ended, input, output, errors] =
                ready.map(|descriptor| descriptor.revents().intersects(PollFlags::IN | PollFlags::HUP));
            if input && self.input.as_ref().is_some_and(|to| !copy(stdin(), to.as_fd())) {
                self.input = None;
            }
            if output && self.output.as_ref().is_some_and(|from| !copy(from.as_fd(), stdout())) {
                self.output = None;
            }
            if errors && self.errors.as_ref().is_some_and(|from| !copy(from.as_fd(), stderr())) {
                self.errors = None;
            }
            if ended && !output && !errors {
                return sealed.wait().map(Relay::Ended);
            }
            if is_over(deadline) {
                return end(sealed);
            }
        }
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
    fn enter(theirs: OwnedFd) -> Result<Self, Errno> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let terminal = Self { before, theirs, size: None };
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(terminal)
    }

    fn relay(mut self, sealed: &mut Sealed, deadline: Option<Instant>) -> Result<Relay, Errno> {
        let mut reads_input = true;
        loop {
            self.follow_size();
            let input = if reads_input { PollFlags::IN } else { PollFlags::empty() };
            let mut ready = [
                PollFd::from_borrowed_fd(sealed.pidfd(), PollFlags::IN),
                PollFd::from_borrowed_fd(stdin(), input),
                PollFd::new(&self.theirs, PollFlags::IN),
            ];
            wait(&mut ready, deadline)?;
            let [ended, input, output] = ready.map(|descriptor| descriptor.revents());
            if input.intersects(PollFlags::IN | PollFlags::HUP) && !copy(stdin(), self.theirs.as_fd()) {
                reads_input = false;
            }
            let more = output.contains(PollFlags::IN) && copy(self.theirs.as_fd(), stdout());
            if ended.contains(PollFlags::IN) && !more {
                return sealed.wait().map(Relay::Ended);
            }
            if is_over(deadline) {
                return end(sealed);
            }
        }
    }

    /// A window that was resized is noticed here, several times a second, instead of by a signal.
    fn follow_size(&mut self) {
        let Ok(size) = tcgetwinsize(stdin()) else { return };
        if self.size != Some(size) && tcsetwinsize(&self.theirs, size).is_ok() {
            self.size = Some(size);
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

fn wait(ready: &mut [PollFd<'_>], deadline: Option<Instant>) -> Result<(), Errno> {
    let left = deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()).min(TICK));
    let left = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
    rustix::io::retry_on_intr(|| poll(ready, Some(&left))).map(drop)
}

fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn end(sealed: &mut Sealed) -> Result<Relay, Errno> {
    sealed.kill();
    sealed.wait()?;
    Ok(Relay::OutOfTime)
}

/// Copies what is there; `false` when there will be no more, or nobody to take it.
fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> bool {
    let mut buffer = [0; 16 << 10];
    let read = match rustix::io::retry_on_intr(|| rustix::io::read(from, &mut buffer)) {
        Ok(0) => return false,
        Ok(read) => read,
        Err(Errno::AGAIN) => return true,
        Err(_) => return false,
    };
    let mut left = &buffer[..read];
    while !left.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::write(to, left)) {
            Ok(written) => left = &left[written..],
            Err(_) => return false,
        }
    }
    true
}
