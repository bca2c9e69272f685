//! A command in a session: runs until it ends, its time limit is over, or its caller gives up.

use super::command_log::CommandEventKind;
use super::{Session, SessionError};
use crate::daemon::{Timeouts, WallClock};
use belljar_confine::sealed::{ProgramOutcome, SandboxEnding};
use belljar_contract::failure::FailureCode;
use belljar_contract::worker::ApiVersion;
use belljar_contract::worker::job::{JobOutputTruncation, LARGEST_STREAM_BYTES};
use belljar_contract::worker::session::{ExecStatus, SessionExecRequest, SessionExecResponse};
use belljar_sandbox::backend::Execution;
use belljar_sandbox::limits::Limit;
use belljar_sandbox::streams::{PipeEnds, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Interval at which cancellation is polled.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The exit code of a program that can't be run.
const CAN_NOT_BE_RUN: u8 = 127;

#[derive(Default)]
struct CollectedOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncated: JobOutputTruncation,
}

/// Stops a command when its caller gives up.
struct CommandCancelGuard(Arc<AtomicBool>);

impl Drop for CommandCancelGuard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Reasons why a command was killed.
#[derive(Clone, Copy)]
enum KillReason {
    OutOfTime,
    GivenUp,
}

impl Session {
    /// Runs a command in the session. Dropping the future kills the command.
    pub(crate) async fn exec(
        self: &Arc<Self>,
        request: SessionExecRequest,
        timeouts: Timeouts,
        clock: WallClock,
    ) -> Result<SessionExecResponse, SessionError> {
        let using = self.begin()?;
        let room = Arc::clone(&self.room).try_acquire_owned().map_err(|_| SessionError::NoRoom)?;
        let asked = request.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
        let timeout = timeouts.allow(asked).min(self.left());
        let is_given_up = Arc::<AtomicBool>::default();
        let given = CommandCancelGuard(Arc::clone(&is_given_up));
        let started_at = clock();
        let (session, logged_at) = (Arc::clone(self), Arc::clone(&clock));
        let ran = tokio::task::spawn_blocking(move || {
            let recorder =
                CommandRecorder { session: &session, clock: &logged_at, command_id: Uuid::now_v7() };
            let ran = run(&recorder, request, Instant::now() + timeout, &is_given_up);
            drop((using, room));
            ran
        });
        let died = |died: tokio::task::JoinError| SessionError::Terminal(std::io::Error::other(died));
        let ran = ran.await.map_err(died)?;
        drop(given);
        let (printed, exit_code, (status, failure)) = match ran {
            Ok((printed, ending, cut)) => {
                let outcome = match ending.outcome {
                    ProgramOutcome::Killed if self.ended_by() == Some(Limit::Memory) => {
                        ProgramOutcome::OutOfMemory
                    }
                    other => other,
                };
                (printed, outcome.exit_code(), judged(outcome, cut))
            }
            // Exit code as in a shell.
            Err(error @ SessionError::NotStarted(_)) => {
                let failed = Some((FailureCode::StepFailed, crate::chain(&error)));
                (CollectedOutput::default(), CAN_NOT_BE_RUN, (ExecStatus::Failed, failed))
            }
            Err(error) => return Err(error),
        };
        let CollectedOutput { stdout, stderr, truncated } = printed;
        let (failure_code, failure_message) = failure.unzip();
        Ok(SessionExecResponse {
            version: ApiVersion,
            task_id: self.request().task_id.clone(),
            session_id: self.request().session_id.clone(),
            status,
            exit_code: exit_code.into(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            truncated,
            started_at,
            ended_at: clock(),
            failure_code,
            failure_message,
        })
    }
}

/// A command whose output goes into the log of its session, too.
struct CommandRecorder<'s> {
    session: &'s Session,
    clock: &'s WallClock,
    command_id: Uuid,
}

fn run(
    recorder: &CommandRecorder<'_>,
    request: SessionExecRequest,
    deadline: Instant,
    is_given_up: &AtomicBool,
) -> Result<(CollectedOutput, SandboxEnding, Option<KillReason>), SessionError> {
    let kernel = |errno: Errno| SessionError::Terminal(errno.into());
    let (stdio, mut streams) = PipeEnds::make().map_err(kernel)?;
    let command = request.command.clone();
    let mut execution = recorder.session.start((request.command, request.cwd), stdio)?;
    recorder.add(CommandEventKind::Started { command });
    let (mut printed, mut cut) = (CollectedOutput::default(), None);
    loop {
        let mut ready = vec![PollFd::from_borrowed_fd(execution.ending(), PollFlags::IN)];
        streams.wait_for(&mut ready);
        match poll(&mut ready, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(kernel(errno)),
        }
        let has_ended = ready[0].revents().intersects(PollFlags::IN | PollFlags::HUP);
        streams.read(|stream, bytes| {
            recorder.printed(stream, bytes);
            printed.take(stream, bytes);
        });
        if has_ended {
            let ending = ended(&mut *execution)?;
            recorder.add(CommandEventKind::Ended { exit_code: ending.outcome.exit_code().into() });
            return Ok((printed, ending, cut));
        }
        if cut.is_some() {
            // The program has been killed, and will end.
            continue;
        }
        let over = match (Instant::now() >= deadline, is_given_up.load(Ordering::SeqCst)) {
            (true, _) => KillReason::OutOfTime,
            (_, true) => KillReason::GivenUp,
            _ => continue,
        };
        cut = Some(over);
        execution.kill().map_err(SessionError::Sandbox)?;
    }
}

fn ended(execution: &mut dyn Execution) -> Result<SandboxEnding, SessionError> {
    let ending = execution.wait_until(None).map_err(SessionError::Sandbox)?;
    ending.ok_or(SessionError::Sandbox(belljar_sandbox::backend::BackendError::Gone))
}

fn judged(outcome: ProgramOutcome, cut: Option<KillReason>) -> (ExecStatus, Option<(FailureCode, String)>) {
    let because = |code, why: &str| Some((code, why.to_owned()));
    match (cut, outcome) {
        (Some(KillReason::OutOfTime), _) => (
            ExecStatus::Timeout,
            because(FailureCode::Timeout, "the command ran longer than allowed and was ended"),
        ),
        (Some(KillReason::GivenUp), _) => {
            (ExecStatus::Failed, because(FailureCode::Canceled, "the caller stopped waiting for the command"))
        }
        (None, ProgramOutcome::OutOfMemory) => {
            (ExecStatus::Failed, because(FailureCode::ConstraintViolation, "the session's memory is used up"))
        }
        (None, ProgramOutcome::Killed) => {
            (ExecStatus::Failed, because(FailureCode::Canceled, "the session was ended under the command"))
        }
        (None, ProgramOutcome::Exited(0)) => (ExecStatus::Completed, None),
        (None, _) => (ExecStatus::Failed, None),
    }
}

// === impl CommandRecorder ===

impl CommandRecorder<'_> {
    fn add(&self, happening: CommandEventKind) {
        self.session.log().add((self.clock)(), self.command_id, happening);
    }

    fn printed(&self, stream: Stream, bytes: &[u8]) {
        self.add(CommandEventKind::Log { stream, text: String::from_utf8_lossy(bytes).into_owned() });
    }
}

// === impl CollectedOutput ===

impl CollectedOutput {
    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let (kept, is_cut) = match stream {
            Stream::Stdout => (&mut self.stdout, &mut self.truncated.stdout),
            Stream::Stderr => (&mut self.stderr, &mut self.truncated.stderr),
        };
        let room = LARGEST_STREAM_BYTES - kept.len();
        kept.extend_from_slice(&bytes[..room.min(bytes.len())]);
        *is_cut |= bytes.len() > room;
    }
}
