//! A program that PID 1 is starting: a process that is not the program yet.
//!
//! Programs that run already may stop this process (`SIGSTOP`), as it belongs to their user. PID 1 watches the limits, so it
//! never waits for the process: it goes on, and learns by a socket how far the process is. The socket closes when the
//! process becomes the program. So there is no `vfork` here, and no memory or table of descriptors in common.

use super::payload::PayloadError;
use crate::message;
use crate::plan::{LONGEST_START, wire};
use crate::wall;
use crate::walls::{ErrorContext, WallError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A process that is about to become a program.
pub(super) struct StartingProgram {
    pid: i32,
    /// Channel on which the process reports.
    reports: OwnedFd,
    /// Listener of the program's guard, once the process has reported it.
    listener: Option<OwnedFd>,
    /// The program, for error messages.
    program: String,
    /// Time after which a program that has not started has failed; `None` for the first one, which waits for the host's
    /// release.
    deadline: Option<Instant>,
}

/// A report of the starting process. It reports nothing when it becomes the program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum StartReport {
    /// Its guard stands. The guard's listener comes with it.
    Guarded,
    /// It can't become the program, and ends.
    Failed {
        #[serde(with = "wire::errno")]
        errno: Errno,
        subject: String,
    },
}

// === impl StartingProgram ===

impl StartingProgram {
    pub(super) fn new(pid: i32, reports: OwnedFd, program: String) -> Self {
        Self { pid, reports, listener: None, program, deadline: Some(Instant::now() + LONGEST_START) }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// Becomes readable when there is something to take.
    pub(super) fn reports(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// Takes what the process has reported, without waiting. Returns `None` while the program has neither started nor failed;
    /// when it has started, the listener of its guard. A process that fails or takes too long is killed.
    pub(super) fn settle(&mut self) -> Option<Result<Option<OwnedFd>, WallError>> {
        let outcome = self.outcome()?;
        if let (Err(_), Some(pid)) = (&outcome, Pid::from_raw(self.pid)) {
            // It has not been collected, so the number is its own.
            let _ = kill_process(pid, Signal::KILL);
        }
        Some(outcome)
    }

    /// Waits until the program has started or failed. Only for the first program: none is there that could stop it.
    pub(super) fn wait(mut self) -> Result<Option<OwnedFd>, WallError> {
        self.deadline = None;
        loop {
            if let Some(outcome) = self.settle() {
                return outcome;
            }
            let _ = poll(&mut [PollFd::new(&self.reports, PollFlags::IN)], None);
        }
    }

    fn outcome(&mut self) -> Option<Result<Option<OwnedFd>, WallError>> {
        loop {
            match message::receive_now(self.reports.as_fd()) {
                Ok(Some((bytes, descriptors))) => match wire::decode(&bytes, Vec::new()) {
                    Ok(StartReport::Guarded) => self.listener = descriptors.into_iter().next(),
                    Ok(StartReport::Failed { errno, subject }) => {
                        return Some(Err(WallError { subject, errno }));
                    }
                    Err(errno) => return Some(Err(errno).about("start")),
                },
                Ok(None) => return Some(self.guarded()),
                Err(Errno::AGAIN) if self.deadline.is_none_or(|deadline| Instant::now() < deadline) => {
                    return None;
                }
                Err(Errno::AGAIN) => return Some(Err(Errno::TIME).about(&self.program)),
                Err(errno) => return Some(Err(errno).about("start")),
            }
        }
    }

    /// The process has become the program, or was killed; it is collected then.
    fn guarded(&mut self) -> Result<Option<OwnedFd>, WallError> {
        let listener = self.listener.take();
        wall!(Guard: listener.as_ref().ok_or(Errno::BADF).about("guard").map(drop)?, else ());
        Ok(listener)
    }
}

// === impl StartReport ===

impl StartReport {
    pub(super) fn failed(PayloadError { subject, errno }: PayloadError, program: &str) -> Self {
        let subject = match subject {
            "exec" => program,
            "guard" => match super::filter_subject(errno) {
                "filter" => "guard",
                subject => subject,
            },
            subject => subject,
        };
        Self::Failed { errno, subject: subject.to_owned() }
    }

    pub(super) fn send(&self, reports: BorrowedFd<'_>, listener: Option<&OwnedFd>) -> Result<(), Errno> {
        let (bytes, _) = wire::encode(self)?;
        let listener: Vec<_> = listener.map(AsFd::as_fd).into_iter().collect();
        message::send(reports, &bytes, &listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    /// A process that never becomes a program, and where it reports.
    fn start() -> (Child, StartingProgram, OwnedFd) {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let (ours, theirs) = message::pair().unwrap();
        let starting = StartingProgram::new(child.id().cast_signed(), ours, "make".to_owned());
        (child, starting, theirs)
    }

    #[test]
    fn slow_program_start_fails_and_is_killed_without_waiting() {
        let (mut child, mut starting, _reports) = start();
        assert!(starting.settle().is_none(), "it may still start");
        starting.deadline = Some(Instant::now());
        let fault = starting.settle().unwrap().unwrap_err();
        assert_eq!((fault.subject.as_str(), fault.errno), ("make", Errno::TIME));
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn program_has_started_when_its_process_has_reported_a_guard_and_hung_up() {
        let (mut child, mut starting, reports) = start();
        let listener = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        StartReport::Guarded.send(reports.as_fd(), Some(&listener)).unwrap();
        assert!(starting.settle().is_none(), "the guard stands, the program has not begun");
        drop(reports);
        assert!(starting.settle().unwrap().unwrap().is_some());
        let (mut other, mut unguarded, reports) = start();
        drop(reports);
        assert_eq!(unguarded.settle().unwrap().unwrap_err().subject, "guard");
        let _ = (child.kill(), child.wait(), other.wait());
    }

    #[test]
    fn failed_start_names_the_program_or_the_step() {
        for (step, subject) in [("exec", "make"), ("terminal", "terminal"), ("guard", "guard")] {
            let (mut child, mut starting, reports) = start();
            let failure = PayloadError { subject: step, errno: Errno::ACCESS };
            StartReport::failed(failure, "make").send(reports.as_fd(), None).unwrap();
            let fault = starting.settle().unwrap().unwrap_err();
            assert_eq!((fault.subject.as_str(), fault.errno), (subject, Errno::ACCESS));
            let _ = child.wait();
        }
    }
}
