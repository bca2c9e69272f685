//! One call in a sandbox: the program of ours that does it there, from its start until nothing of it is left.

use super::Answer;
use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::LONGEST_ANSWER_BYTES;
use belljar_sandbox::backend::Execution;
use belljar_sandbox::lifecycle::Lease;
use belljar_sandbox::streams::Spoken;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};

/// A call that has begun. Dropping it ends it, somewhere else.
#[derive(Debug)]
pub(super) struct Call {
    held: Option<Held>,
    spoken: Option<Spoken>,
}

#[derive(Debug)]
struct Held {
    // Before the sandbox that it runs in.
    execution: Box<dyn Execution>,
    lease: Lease,
    /// Whether programs may come of it.
    runs_programs: bool,
}

/// How a call is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// It has been answered, and ends by itself.
    Answered,
    /// It has been answered, and something may be left of it.
    LeftBehind,
    /// Nobody waits for it.
    GivenUp,
}

/// So much longer than its own time a call may take, to end what came of it.
const GRACE: Duration = Duration::from_secs(10);

/// So long it may take to end, once it shall.
const PATIENCE: Duration = Duration::from_secs(8);

/// As much of what it complains of is told, in bytes.
const LONGEST_COMPLAINT: usize = 4096;

const TERM: i32 = 15;

/// Whoever is asked to end before it can hear that has not read what it is asked for either.
const ENDED_BY_TERM: u8 = 128 + 15;

// === impl Call ===

impl Call {
    pub(super) fn new(
        (execution, lease): (Box<dyn Execution>, Lease),
        spoken: Spoken,
        runs_programs: bool,
    ) -> Self {
        Self { held: Some(Held { execution, lease, runs_programs }), spoken: Some(spoken) }
    }

    /// Asks, and waits for the answer and until nothing is left.
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
            Ok(Answer::Ran(ran)) if ran.left_behind => Over::LeftBehind,
            Ok(_) => Over::Answered,
            Err(()) => Over::GivenUp,
        };
        let Some(held) = self.held.take() else { return Err(gone()) };
        let ended = tokio::task::spawn_blocking(move || held.end(over)).await;
        let failure = ended.map_err(|error| Failure::internal("end what it has begun", &error))?;
        answer.map_err(|()| failure.unwrap_or_else(gone))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // It takes time, and whoever drops this has none. Where there can't be a thread, they have to take it.
        let held = Arc::new(Mutex::new(Some(held)));
        let end = |held: &Mutex<Option<Held>>| {
            let held = held.lock().unwrap_or_else(PoisonError::into_inner).take();
            held.and_then(|held| held.end(Over::GivenUp))
        };
        let theirs = Arc::clone(&held);
        let ender = std::thread::Builder::new().name("workbench-end".to_owned());
        if ender.spawn(move || end(&theirs)).is_err() {
            end(&held);
        }
    }
}

// === impl Held ===

impl Held {
    /// Ends it; why it has failed, if it was the sandbox. It takes time.
    fn end(self, over: Over) -> Option<Failure> {
        let Self { mut execution, lease, runs_programs } = self;
        if over == Over::GivenUp {
            let _ = execution.signal(TERM);
        }
        let patience = if over == Over::LeftBehind { Duration::ZERO } else { PATIENCE };
        let is_clean = matches!(
            execution.wait_until(Some(Instant::now() + patience)),
            Ok(Some(ending)) if matches!(ending.outcome.exit_code(), 0 | ENDED_BY_TERM)
        );
        if is_clean {
            return None;
        }
        let _ = execution.kill();
        let is_dead = matches!(execution.wait_until(Some(Instant::now() + PATIENCE)), Ok(Some(_)));
        drop(execution);
        let failure = lease.ended_by().map(|limit| {
            let said =
                format!("the sandbox has run into its {limit} limit and is over; what was in it is lost");
            Failure::new(DomainCode::LimitExceeded, said)
        });
        // Nobody can tell what came of it from what came of others: there must be nothing at all.
        let is_empty = lease.stats().is_ok_and(|stats| stats.processes == 0);
        if !is_dead || (runs_programs && !is_empty) {
            tracing::warn!(sandbox = %lease.id(), "a call may have left something running: its sandbox goes");
            lease.discard("a call may have left something running in it");
        }
        failure
    }
}

async fn exchange(spoken: Spoken, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut input = Sender::from_owned_fd(spoken.input)?;
    let output = Receiver::from_owned_fd(spoken.output)?;
    let errors = Receiver::from_owned_fd(spoken.errors)?;
    let write = async {
        // Whoever doesn't read it all has its reasons, and says them.
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
        // It complains of little, and the pipe has kept it.
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
