//! A call in a sandbox: runs the helper program from its start until all of its processes have ended.

use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::{Answer, LONGEST_ANSWER_BYTES};
use belljar_sandbox::backend::Execution;
use belljar_sandbox::streams::PipedStreams;
use belljar_tools::answer::Failure;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

/// A call in progress. Dropping it ends it in the background.
#[derive(Debug)]
pub(super) struct SandboxCall {
    held: Option<ExecutionGuard>,
    spoken: Option<PipedStreams>,
}

#[derive(Debug)]
struct ExecutionGuard {
    execution: Box<dyn Execution>,
}

/// State of a call at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallEnding {
    /// Answered; the program ends by itself.
    Answered,
    /// Answered, but processes may be left.
    LeftBehind,
    /// Dropped by the caller.
    GivenUp,
}

/// Time allowed in addition to the call's own limit, to end its processes.
const GRACE: Duration = Duration::from_secs(10);

/// Maximum time for ending.
const PATIENCE: Duration = Duration::from_secs(8);

/// Maximum length of standard error in messages, in bytes.
const LONGEST_COMPLAINT: usize = 4096;

const TERM: i32 = 15;

/// Exit code of a program terminated before it handles signals; it has not read its request either.
const ENDED_BY_TERM: u8 = 128 + 15;

// === impl SandboxCall ===

impl SandboxCall {
    pub(super) fn new(execution: Box<dyn Execution>, spoken: PipedStreams) -> Self {
        Self { held: Some(ExecutionGuard { execution }), spoken: Some(spoken) }
    }

    /// Sends the request, and waits for the answer and the end of all processes.
    pub(super) async fn carry_out(mut self, request: &[u8], within: Duration) -> Result<Answer, Failure> {
        let Some(spoken) = self.spoken.take() else { return Err(gone()) };
        let heard = tokio::time::timeout(within + GRACE, exchange(spoken, request)).await;
        let answer = match heard {
            Ok(Ok(bytes)) => serde_json::from_slice::<Answer>(&bytes).map_err(|error| {
                tracing::warn!(%error, bytes = bytes.len(), "no answer of a program of ours in a sandbox");
            }),
            Ok(Err(error)) => {
                tracing::warn!(%error, "can't hear a program of ours in a sandbox");
                Err(())
            }
            Err(_) => {
                tracing::warn!("a program of ours in a sandbox has not answered in time");
                Err(())
            }
        };
        let over = match &answer {
            Ok(Answer::Ran(ran)) if ran.left_behind => CallEnding::LeftBehind,
            Ok(_) => CallEnding::Answered,
            Err(()) => CallEnding::GivenUp,
        };
        let Some(held) = self.held.take() else { return Err(gone()) };
        tokio::task::spawn_blocking(move || held.end(over)).await.unwrap();
        answer.map_err(|()| gone())
    }
}

impl Drop for SandboxCall {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Ending takes time, so it is done on a separate thread, or here if no thread can be started.
        let held = Arc::new(Mutex::new(Some(held)));
        let end = |held: &Mutex<Option<ExecutionGuard>>| {
            let held = held.lock().unwrap_or_else(PoisonError::into_inner).take();
            held.map(|held| held.end(CallEnding::GivenUp))
        };
        let theirs = Arc::clone(&held);
        let ender = std::thread::Builder::new().name("workbench-end".to_owned());
        if ender.spawn(move || end(&theirs)).is_err() {
            end(&held);
        }
    }
}

// === impl ExecutionGuard ===

impl ExecutionGuard {
    /// Ends the execution. This blocks.
    fn end(self, over: CallEnding) {
        let Self { mut execution } = self;
        if over == CallEnding::GivenUp {
            let _ = execution.signal(TERM);
        }
        let patience = if over == CallEnding::LeftBehind { Duration::ZERO } else { PATIENCE };
        let is_clean = matches!(
            execution.wait_until(Some(Instant::now() + patience)),
            Ok(Some(ending)) if matches!(ending.outcome.exit_code(), 0 | ENDED_BY_TERM)
        );
        if !is_clean {
            let _ = execution.kill();
            let _ = execution.wait_until(Some(Instant::now() + PATIENCE));
        }
    }
}

async fn exchange(spoken: PipedStreams, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut input = Sender::from_owned_fd(spoken.input)?;
    let output = Receiver::from_owned_fd(spoken.output)?;
    let errors = Receiver::from_owned_fd(spoken.errors)?;
    let write = async {
        // A program that doesn't read everything reports the reason itself.
        let _ = input.write_all(request).await;
        drop(input);
        Ok(())
    };
    let mut answer = Vec::new();
    let read = async {
        let mut output = output.take(LONGEST_ANSWER_BYTES as u64 + 1);
        output.read_to_end(&mut answer).await
    };
    let ((), read) = tokio::try_join!(write, read)?;
    if answer.is_empty() {
        // Error output is short, so it fits in the pipe's buffer.
        let mut complaint = [0; LONGEST_COMPLAINT];
        let length = errors.try_read(&mut complaint).unwrap_or_default();
        let complaint = String::from_utf8_lossy(&complaint[..length]);
        tracing::warn!(%complaint, "a program of ours in a sandbox has not answered");
    }
    match read > LONGEST_ANSWER_BYTES {
        true => Err(io::Error::other("the answer is too long")),
        false => Ok(answer),
    }
}

fn gone() -> Failure {
    Failure::new(DomainCode::Unavailable, "the sandbox has ended meanwhile; it is not known how far this got")
}
