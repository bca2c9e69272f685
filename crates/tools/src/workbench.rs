//! Where tools have things done: in a sandbox of whoever calls, and never on the host.
//!
//! ```text
//! tool ─► Workbench::run, ask ─► the caller's sandbox: kept, or made ─► a program of ours, one request ─► one answer, bounded
//!                                   (sandbox::lifecycle)                 (cynode-sba workbench)
//! ```
//! Nothing of a call runs when the call is over, however it ends; files stay. Where that can't be said for certain, the
//! sandbox goes with the call.

use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::category::Category;
use belljar_contract::path::StepPath;
use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::{Answer, Bytes, Kept, Ran, Refusal, Refused, Request, Run};
pub use belljar_contract::workbench::{Ending, VARIABLE_OF_WORKSPACE};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// A place where things are done for callers.
pub trait Workbench: Send + Sync {
    /// Has something done by the program of ours. When this is done, or dropped, nothing that came of it runs.
    fn ask<'a>(
        &'a self,
        caller: &'a Caller,
        category: Category,
        request: Request,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// Runs a program, in the same way.
    fn run<'a>(&'a self, caller: &'a Caller, command: Command) -> BoxFuture<'a, Result<Ended, Failure>> {
        async move {
            match self.ask(caller, command.category, command.into_request()).await? {
                Answer::Ran(ran) => Ok(ran.into()),
                _ => Err(strange()),
            }
        }
        .boxed()
    }
}

/// A program to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// For what kind of tool: what decides in which sandbox.
    pub category: Category,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables beside those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Where, in the workspace; its root if nothing is said.
    pub directory: Option<StepPath>,
    /// What it reads.
    pub input: Vec<u8>,
    /// So long it may run.
    pub within: Duration,
    /// As much is kept of each of its outputs, in bytes.
    pub most_bytes: usize,
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub by: Ending,
    /// What it has printed.
    pub stdout: Output,
    /// What it has complained of.
    pub stderr: Output,
    /// How long it ran.
    pub took: Duration,
}

/// What a program has printed: all of it, or its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The first of it.
    pub head: Vec<u8>,
    /// The last of it, which follows on the first unless something was left out.
    pub tail: Vec<u8>,
    /// So many bytes were between them.
    pub left_out_bytes: u64,
}

/// So long a program may run at most.
pub const LONGEST_RUN: Duration = Duration::from_secs(600);

/// As much may be kept of each of its outputs at most, in bytes.
pub const MOST_OUTPUT_BYTES: usize = 1 << 20;

/// So long a program may take that is looked for.
const PROBE_WITHIN: Duration = Duration::from_secs(20);

/// Whether the sandboxes of that caller have a program: what it does with these arguments isn't asked.
///
/// # Errors
/// [`Failure`] when there is no sandbox to look in.
pub async fn has_program(
    workbench: &dyn Workbench,
    caller: &Caller,
    (category, argv): (Category, &[&str]),
) -> Result<bool, Failure> {
    let command = Command {
        within: PROBE_WITHIN,
        ..Command::new(category, argv.iter().map(|argument| (*argument).to_owned()).collect())
    };
    match workbench.run(caller, command).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.code == DomainCode::NotSupported => Ok(false),
        Err(failure) => Err(failure),
    }
}

// === impl Command ===

impl Command {
    /// One that reads nothing, in the workspace's root, for half a minute and with 64 KiB of each output.
    pub fn new(category: Category, argv: Vec<String>) -> Self {
        Self {
            category,
            argv,
            env: BTreeMap::new(),
            directory: None,
            input: Vec::new(),
            within: Duration::from_secs(30),
            most_bytes: 64 << 10,
        }
    }

    /// As the program of ours is asked for it, held to what one may take.
    fn into_request(self) -> Request {
        let within = self.within.min(LONGEST_RUN);
        Request::Run(Run {
            argv: self.argv,
            env: self.env,
            directory: self.directory,
            input: Bytes(self.input),
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            most_bytes: self.most_bytes.min(MOST_OUTPUT_BYTES),
        })
    }
}

// === impl Ended ===

impl Ended {
    /// Its exit code, as a shell would tell it.
    pub fn exit_code(&self) -> Option<i32> {
        match self.by {
            Ending::Exited(code) => Some(code),
            Ending::Killed(signal) => Some(128 + signal),
            Ending::OutOfTime => None,
        }
    }

    /// Whether it has ended well.
    pub fn is_well(&self) -> bool {
        self.by == Ending::Exited(0)
    }
}

impl From<Ran> for Ended {
    fn from(Ran { ending, stdout, stderr, duration_ms, left_behind: _ }: Ran) -> Self {
        let took = Duration::from_millis(duration_ms);
        Self { by: ending, stdout: stdout.into(), stderr: stderr.into(), took }
    }
}

// === impl Output ===

impl Output {
    /// As a text, in which what is no UTF-8 is replaced, with a line that says how much was left out.
    pub fn text(&self) -> String {
        let (head, tail) = (&self.head, &self.tail);
        if self.left_out_bytes == 0 {
            return String::from_utf8_lossy(&[head.as_slice(), tail].concat()).into_owned();
        }
        let [head, tail] = [head, tail].map(|part| String::from_utf8_lossy(part));
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.left_out_bytes)
    }

    /// All of it, if all was kept.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.left_out_bytes == 0).then(|| [self.head.as_slice(), &self.tail].concat())
    }
}

impl From<Kept> for Output {
    fn from(Kept { head, tail, left_out_bytes }: Kept) -> Self {
        Self { head: head.0, tail: tail.0, left_out_bytes }
    }
}

/// So long the program of ours may take for that.
pub fn time_for(request: &Request) -> Duration {
    match request {
        Request::Run(run) => Duration::from_millis(run.within_ms).min(LONGEST_RUN),
        _ => FILES_WITHIN,
    }
}

/// So long something with files may take.
const FILES_WITHIN: Duration = Duration::from_secs(30);

fn strange() -> Failure {
    Failure::new(DomainCode::Unavailable, "the sandbox has answered something else than was asked")
}

/// How what was not done is told to whoever called.
pub fn failure(Refused { why, message }: Refused) -> Failure {
    let code = match why {
        Refusal::Invalid => DomainCode::InvalidArgument,
        Refusal::NotFound => DomainCode::NotFound,
        Refusal::Forbidden => DomainCode::PermissionDenied,
        Refusal::WrongKind | Refusal::Failed => DomainCode::ToolFailed,
        Refusal::NotText | Refusal::NoProgram => DomainCode::NotSupported,
        Refusal::TooLarge => DomainCode::LimitExceeded,
        Refusal::Ambiguous | Refusal::Exists => DomainCode::Conflict,
    };
    // It comes from inside: a line, and no more of it than somebody reads.
    Failure::new(code, crate::page::one_line(&crate::page::cut(message, LONGEST_MESSAGE).0))
}

/// As much of what is said from inside is passed on, in bytes.
const LONGEST_MESSAGE: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_told_where_it_was() {
        let whole = Output { head: b"ab\xe2".to_vec(), tail: b"\x82\xacc".to_vec(), left_out_bytes: 0 };
        assert_eq!(whole.text(), "ab€c");
        let cut = Output { left_out_bytes: 7, ..whole.clone() };
        assert_eq!(cut.text(), "ab\u{fffd}\n[… 7 bytes left out …]\n\u{fffd}\u{fffd}c");
        assert_eq!((whole.whole().map(|all| all.len()), cut.whole()), (Some(6), None));
    }
}
