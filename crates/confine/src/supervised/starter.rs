//! The process that starts programs: it stands behind the walls itself, and hands its children to the supervisor.
//!
//! A program inside could harm this process, and would gain nothing: it holds one socket, on which the supervisor accepts
//! nothing but the ids of children, which it checks. Without it the sandbox is over.

use super::SupervisedPlan;
use super::walls::{self, ActiveWalls};
use crate::init::payload;
use crate::init::streams::Streams;
use crate::kernel::{self, CloneResult};
use crate::message;
use crate::plan::{Command, Stdio, wire};
use crate::walls::{ErrorContext, WallError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The starter, as the supervisor holds it.
pub(super) struct Starter {
    pub(super) pid: i32,
    socket: OwnedFd,
}

/// A request to the starter.
#[derive(Debug, Serialize, Deserialize)]
struct StartRequest {
    command: Command,
    /// Standard streams of the program.
    stdio: Stdio,
    /// True if they are a terminal, which the program takes as its controlling terminal.
    has_terminal: bool,
    #[serde(with = "wire::descriptor")]
    directory: OwnedFd,
}

/// Answer of the starter: a number, or the errno and what it was about.
type StarterResponse = Result<u32, (i32, String)>;

/// Why a program was not started.
pub(super) enum StartError {
    /// The program can't be run.
    Program(WallError),
    /// The starter is of no use any more.
    StarterLost,
}

/// Maximum time for the starter to answer. One that a program inside has stopped would never answer.
const PATIENCE: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

// === impl Starter ===

impl Starter {
    /// Starts a starter behind the walls of that plan, and returns the walls in force.
    pub(super) fn begin(plan: &SupervisedPlan) -> Result<(Self, ActiveWalls), WallError> {
        let (ours, theirs) = message::pair().about("starter")?;
        let supervisor = rustix::process::getpid().as_raw_pid();
        // SAFETY: the supervisor has a single thread.
        let pid = match unsafe { kernel::clone_into(0, None) }.about("starter")? {
            CloneResult::Child => serve(plan, theirs.as_fd(), supervisor),
            CloneResult::Parent { pid, .. } => pid,
        };
        drop(theirs);
        let starter = Self { pid, socket: ours };
        match starter.answer() {
            Ok(Ok((landlock_abi, listener))) => Ok((starter, ActiveWalls { landlock_abi, listener })),
            Ok(Err(fault)) | Err(fault) => Err(fault),
        }
    }

    /// Starts a program, which is then a child of this process.
    pub(super) fn start(
        &self,
        command: &Command,
        streams: &Streams,
        directory: OwnedFd,
    ) -> Result<i32, StartError> {
        let order = encode(command, streams, directory).map_err(StartError::Program)?;
        let (bytes, descriptors) = order;
        let told =
            message::send(self.socket.as_fd(), &bytes, &message::borrowed(&descriptors)).about("starter");
        match told.and_then(|()| self.answer()) {
            Ok(started) => started.map(|(pid, _)| pid.cast_signed()).map_err(StartError::Program),
            Err(_) => Err(StartError::StarterLost),
        }
    }

    /// Returns the starter's answer, and the descriptor sent with it, if any.
    fn answer(&self) -> Result<Result<(u32, Option<OwnedFd>), WallError>, WallError> {
        let mut spoken = [PollFd::new(&self.socket, PollFlags::IN)];
        let ready = rustix::io::retry_on_intr(|| poll(&mut spoken, Some(&PATIENCE))).about("starter")?;
        if ready == 0 {
            return Err(Errno::TIMEDOUT).about("starter");
        }
        let received = message::receive(self.socket.as_fd()).and_then(|received| received.ok_or(Errno::PIPE));
        let (bytes, descriptors) = received.about("starter")?;
        let answer = wire::decode::<StarterResponse>(&bytes, Vec::new()).about("starter")?;
        let fault = |(errno, subject)| WallError { subject, errno: Errno::from_raw_os_error(errno) };
        Ok(answer.map(|number| (number, descriptors.into_iter().next())).map_err(fault))
    }
}

fn encode(
    command: &Command,
    streams: &Streams,
    directory: OwnedFd,
) -> Result<(Vec<u8>, Vec<OwnedFd>), WallError> {
    let copy = |from: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(from, 3).about("standard stream");
    let [input, output, errors] = &streams.standard;
    let stdio = Stdio::Descriptors([copy(input)?, copy(output)?, copy(errors)?]);
    let start =
        StartRequest { command: command.clone(), stdio, has_terminal: streams.has_terminal, directory };
    wire::encode(&start).about("program")
}

/// Main loop of the starter.
fn serve(plan: &SupervisedPlan, socket: BorrowedFd<'_>, supervisor: i32) -> ! {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let _ = rustix::thread::set_name(c"belljar-starter");
    let built = walls::put_up(plan, supervisor);
    let (built, listener) = match built {
        Ok(ActiveWalls { landlock_abi, listener }) => (Ok(landlock_abi), listener),
        Err(fault) => (Err(fault), None),
    };
    let told = tell(socket, &built, listener.as_ref());
    // The supervisor's descriptors must not reach a process that takes over this one, nor the programs.
    kernel::close_all_but(&mut [socket]);
    if told.is_err() || built.is_err() {
        kernel::exit_now(1);
    }
    loop {
        let Ok(Some((bytes, descriptors))) = message::receive(socket) else { kernel::exit_now(0) };
        let started = wire::decode::<StartRequest>(&bytes, descriptors).about("starter").and_then(start);
        if tell(socket, &started.map(i32::cast_unsigned), None).is_err() {
            kernel::exit_now(1);
        }
    }
}

fn start(StartRequest { command, stdio, has_terminal, directory }: StartRequest) -> Result<i32, WallError> {
    let streams = Streams { has_terminal, ..Streams::connect(&stdio)? };
    payload::start_supervised(&command, streams, directory.as_fd())
}

fn tell(
    socket: BorrowedFd<'_>,
    outcome: &Result<u32, WallError>,
    descriptor: Option<&OwnedFd>,
) -> Result<(), Errno> {
    let failure = |fault: &WallError| (fault.errno.raw_os_error(), fault.subject.clone());
    let answer: StarterResponse = outcome.as_ref().copied().map_err(failure);
    let (bytes, _) = wire::encode(&answer)?;
    message::send(socket, &bytes, &descriptor.map(AsFd::as_fd).into_iter().collect::<Vec<_>>())
}
