//! What a keeper is asked and answers: JSON, with descriptors beside it.

use super::Session;
use crate::backend::Stats;
use crate::limits::Limit;
use belljar_confine::message;
use belljar_confine::sealed;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a keeper is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// Run a program. Its three streams come beside this unless it shall have a terminal. It ends when whoever asked
    /// hangs up.
    Exec {
        /// The program and its arguments, as bytes.
        argv: Vec<Vec<u8>>,
        /// Where it starts.
        directory: String,
        /// Whether it gets a terminal.
        terminal: bool,
    },
    /// Kill the program that was asked for here.
    Kill,
    /// Tell about the session.
    Describe,
    /// End it.
    End,
}

/// What a keeper answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The program runs. Its terminal comes beside this if it has one.
    Started,
    /// It can't be run.
    NotStarted {
        program: String,
        errno: i32,
    },
    /// It has ended.
    Ended(Outcome),
    Description {
        session: Session,
        running: u64,
        idle_for: Duration,
        load: Load,
    },
    /// The session is over, and nothing of it is left.
    Over,
    /// It could not be done.
    Failed {
        message: String,
    },
}

/// What a session uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Processes that run.
    pub processes: u64,
    /// Memory that they hold.
    pub memory_bytes: u64,
    /// Processor time used.
    pub cpu_time_ms: u64,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// With the whole session.
    Killed,
    /// With the whole session, which has used up what it may.
    Exceeded(Limit),
}

/// What a program in a session is connected to.
#[derive(Debug)]
pub enum Streams {
    /// These: input, output and error.
    Descriptors([OwnedFd; 3]),
    /// A terminal of its own.
    Terminal,
}

/// Sends something with descriptors.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    what: &impl Serialize,
    descriptors: &[OwnedFd],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(what).map_err(|_| Errno::BADMSG)?;
    message::send(socket, &bytes, &message::borrowed(descriptors))
}

/// Receives something with descriptors; nothing when the other end is gone.
pub(super) fn receive<T: DeserializeOwned>(socket: &OwnedFd) -> Result<Option<(T, Vec<OwnedFd>)>, Errno> {
    let Some((bytes, descriptors)) = message::receive(socket.as_fd())? else { return Ok(None) };
    let what = serde_json::from_slice(&bytes).map_err(|_| Errno::BADMSG)?;
    Ok(Some((what, descriptors)))
}

// === impl Outcome ===

impl Outcome {
    /// The exit code that a shell would give.
    pub fn exit_code(self) -> u8 {
        sealed::Outcome::from(self).exit_code()
    }
}

impl From<Outcome> for sealed::Outcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Exited(code) => Self::Exited(code),
            Outcome::Signaled(signal) => Self::Signaled(signal),
            Outcome::Killed | Outcome::Exceeded(_) => Self::Killed,
        }
    }
}

impl From<sealed::Outcome> for Outcome {
    fn from(outcome: sealed::Outcome) -> Self {
        match outcome {
            sealed::Outcome::Exited(code) => Self::Exited(code),
            sealed::Outcome::Signaled(signal) => Self::Signaled(signal),
            sealed::Outcome::Killed => Self::Killed,
            sealed::Outcome::OutOfMemory => Self::Exceeded(Limit::Memory),
        }
    }
}

// === impl Load ===

impl From<Stats> for Load {
    fn from(stats: Stats) -> Self {
        let cpu_time_ms = u64::try_from(stats.cpu.as_millis()).unwrap_or(u64::MAX);
        Self { processes: stats.processes, memory_bytes: stats.memory_bytes, cpu_time_ms }
    }
}
