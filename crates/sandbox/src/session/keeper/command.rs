//! Commands in a session: each is started in one of its sandboxes, and watched until it is over or its client has hung up.

use super::super::protocol::{KeeperRequestMessage, KeeperResponse, ProgramOutcome, receive, send};
use super::sandboxes::SandboxReservation;
use super::{Keeper, SessionActivity, lock};
use crate::backend::{BackendError, Execution, TerminalSize};
use crate::spec::Program;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Mutex;
use std::time::Instant;

/// A command that counts as running while this lives.
pub(super) struct RunningCommand<'a> {
    activity: &'a Mutex<SessionActivity>,
    command: Option<String>,
}

// === impl Keeper ===

impl Keeper {
    /// Runs a program in one of the sandboxes to its end.
    pub(super) fn exec(
        &self,
        caller: &OwnedFd,
        place: usize,
        (program, stdio): (&Program, Stdio),
    ) -> Result<KeeperResponse, BackendError> {
        let _running = RunningCommand::command(&self.activity, program);
        let (place, mut execution) = match self.start(place, (program, stdio)) {
            Ok(started) => started,
            Err(BackendError::NotStarted { program, source }) => {
                return Ok(KeeperResponse::NotStarted { program, errno: source.raw_os_error() });
            }
            Err(error) => return Err(error),
        };
        let terminal: Vec<OwnedFd> = execution.take_terminal().into_iter().collect();
        if send(caller.as_fd(), &KeeperResponse::Started, &terminal).is_ok() {
            watch(caller, execution.as_mut())?;
        }
        // One whose caller has hung up is still waited for: it was killed.
        let ended = execution.wait_until(None)?;
        let Some(ending) = ended else { return Ok(KeeperResponse::Over { kept: false }) };
        Ok(KeeperResponse::Ended(match ending.outcome {
            sealed::ProgramOutcome::Killed => match place.ended_by() {
                Some(limit) => ProgramOutcome::Exceeded(limit),
                None => ProgramOutcome::Killed,
            },
            outcome => outcome.into(),
        }))
    }

    /// Starts a program in one of the sandboxes; in a new one, should that have ended by itself.
    fn start(
        &self,
        number: usize,
        (program, stdio): (&Program, Stdio),
    ) -> Result<(SandboxReservation<'_>, Box<dyn Execution>), BackendError> {
        let again = copied(&stdio).map_err(|errno| BackendError::Reach(errno.into()))?;
        let place = self.sandboxes.place(number)?;
        let (place, execution) = match self.start_at(&place, program, stdio) {
            Err(BackendError::NotStarted { program, source }) => {
                return Err(BackendError::NotStarted { program, source });
            }
            Err(_) if place.is_to_be_replaced() => {
                let place = self.sandboxes.place(number)?;
                let execution = self.start_at(&place, program, again)?;
                (place, execution)
            }
            started => {
                let execution = started?;
                (place, execution)
            }
        };
        Ok((place, execution))
    }

    fn start_at(
        &self,
        place: &SandboxReservation<'_>,
        program: &Program,
        stdio: Stdio,
    ) -> Result<Box<dyn Execution>, BackendError> {
        let _alone = lock(&self.measure);
        place.exec(program, stdio)
    }
}

/// Duplicates the streams.
fn copied(stdio: &Stdio) -> Result<Stdio, Errno> {
    let copy = |stream: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(stream, 3);
    Ok(match stdio {
        Stdio::Descriptors([input, output, errors]) => {
            Stdio::Descriptors([copy(input)?, copy(output)?, copy(errors)?])
        }
        Stdio::Terminal => Stdio::Terminal,
    })
}

/// Watches a program and its caller: kills the one when the other wants it or hangs up.
fn watch(caller: &OwnedFd, execution: &mut dyn Execution) -> Result<(), BackendError> {
    loop {
        let (has_ended, is_called) = {
            let mut watched = [
                PollFd::from_borrowed_fd(execution.ending(), PollFlags::IN),
                PollFd::new(caller, PollFlags::IN),
            ];
            if poll(&mut watched, None).is_err() {
                continue;
            }
            (!watched[0].revents().is_empty(), !watched[1].revents().is_empty())
        };
        if has_ended {
            return Ok(());
        }
        if is_called {
            let asked = receive::<KeeperRequestMessage>(caller);
            if let Ok(Some((KeeperRequestMessage::Resize { rows, columns }, _))) = asked {
                // A program without a terminal has no use for a size.
                let _ = execution.resize(TerminalSize { rows, columns });
                continue;
            }
            execution.kill()?;
            if !matches!(asked, Ok(Some((KeeperRequestMessage::Kill, _)))) {
                return Ok(());
            }
        }
    }
}

// === impl RunningCommand ===

impl<'a> RunningCommand<'a> {
    pub(super) fn begin(activity: &'a Mutex<SessionActivity>) -> Self {
        lock(activity).running += 1;
        Self { activity, command: None }
    }

    fn command(activity: &'a Mutex<SessionActivity>, program: &Program) -> Self {
        let words: Vec<_> = program.argv.iter().map(|word| word.to_string_lossy()).collect();
        let command: String = words.join(" ").chars().take(80).collect();
        let mut running = Self::begin(activity);
        running.command = Some(command.clone());
        lock(activity).commands.push(command);
        running
    }
}

impl Drop for RunningCommand<'_> {
    fn drop(&mut self) {
        let mut activity = lock(self.activity);
        activity.running -= 1;
        activity.since = Instant::now();
        let command = self.command.as_ref();
        if let Some(at) = activity.commands.iter().position(|running| Some(running) == command) {
            activity.commands.remove(at);
        }
    }
}
