//! Runs the work of tools in the caller's sandbox, never on the host.
//!
//! ```text
//! tool ─► Workbench::run, ask ─► the caller's sandbox: kept, or created ─► helper program, one request ─► one answer, bounded
//!                                   (sandbox::lifecycle)                 (cynode-sba workbench)
//! ```
//! No process of a call survives its end; files are kept. Where this can't be guaranteed, the sandbox is destroyed with the call.

use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::category::Category;
use belljar_contract::path::StepPath;
use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::{
    Answer, Bytes, OutputExcerpt, ProgramResult, RefusalReason, Request, RequestRefusal, RunProgram,
};
pub use belljar_contract::workbench::{ProgramExit, VARIABLE_OF_WORKSPACE};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// Runs work for callers.
pub trait Workbench: Send + Sync {
    /// Sends a request to the helper program. When the future completes or is dropped, no process of the call is running.
    fn ask<'a>(
        &'a self,
        caller: &'a Caller,
        category: Category,
        request: Request,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// Runs a program in the same way.
    fn run<'a>(
        &'a self,
        caller: &'a Caller,
        command: Command,
    ) -> BoxFuture<'a, Result<FinishedProgram, Failure>> {
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
    /// Category of the tool, which determines the sandbox.
    pub category: Category,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables in addition to those of the sandbox.
    pub env: BTreeMap<String, String>,
    /// Working directory within the workspace; by default its root.
    pub directory: Option<StepPath>,
    /// Standard input.
    pub input: Vec<u8>,
    /// Time limit.
    pub within: Duration,
    /// Maximum number of bytes kept of each output.
    pub most_bytes: usize,
}

/// A program that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedProgram {
    /// Kind of its end.
    pub by: ProgramExit,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// Duration.
    pub took: Duration,
}

/// Output of a program: all of it, or its beginning and end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Beginning of the output.
    pub head: Vec<u8>,
    /// End of the output, which directly follows the beginning unless bytes were omitted.
    pub tail: Vec<u8>,
    /// Number of bytes omitted between them.
    pub left_out_bytes: u64,
}

/// Maximum run time of a program.
pub const LONGEST_RUN: Duration = Duration::from_secs(600);

/// Upper bound for the number of bytes kept of each output.
pub const MOST_OUTPUT_BYTES: usize = 1 << 20;

/// Time limit for checking whether a program exists.
const PROBE_WITHIN: Duration = Duration::from_secs(20);

/// Returns true if the caller's sandbox has a program. Its exit code is ignored.
///
/// # Errors
/// [`Failure`] when there is no sandbox.
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
    /// A command without input, in the root of the workspace, with 30 seconds and 64 KiB per output.
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

    /// Converts the command to a request, with its limits enforced.
    fn into_request(self) -> Request {
        let within = self.within.min(LONGEST_RUN);
        Request::Run(RunProgram {
            argv: self.argv,
            env: self.env,
            directory: self.directory,
            input: Bytes(self.input),
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            most_bytes: self.most_bytes.min(MOST_OUTPUT_BYTES),
        })
    }
}

// === impl FinishedProgram ===

impl FinishedProgram {
    /// Exit code as a shell reports it.
    pub fn exit_code(&self) -> Option<i32> {
        match self.by {
            ProgramExit::Exited(code) => Some(code),
            ProgramExit::Killed(signal) => Some(128 + signal),
            ProgramExit::OutOfTime => None,
        }
    }

    /// True if the program exited with code 0.
    pub fn is_well(&self) -> bool {
        self.by == ProgramExit::Exited(0)
    }
}

impl From<ProgramResult> for FinishedProgram {
    fn from(ProgramResult { ending, stdout, stderr, duration_ms, left_behind: _ }: ProgramResult) -> Self {
        let took = Duration::from_millis(duration_ms);
        Self { by: ending, stdout: stdout.into(), stderr: stderr.into(), took }
    }
}

// === impl Output ===

impl Output {
    /// Text with invalid UTF-8 replaced, and a line with the number of omitted bytes.
    pub fn text(&self) -> String {
        let (head, tail) = (&self.head, &self.tail);
        if self.left_out_bytes == 0 {
            return String::from_utf8_lossy(&[head.as_slice(), tail].concat()).into_owned();
        }
        let [head, tail] = [head, tail].map(|part| String::from_utf8_lossy(part));
        format!("{head}\n[… {} bytes left out …]\n{tail}", self.left_out_bytes)
    }

    /// The whole output, unless bytes were omitted.
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.left_out_bytes == 0).then(|| [self.head.as_slice(), &self.tail].concat())
    }
}

impl From<OutputExcerpt> for Output {
    fn from(OutputExcerpt { head, tail, left_out_bytes }: OutputExcerpt) -> Self {
        Self { head: head.0, tail: tail.0, left_out_bytes }
    }
}

/// Time limit of a request to the helper program.
pub fn time_for(request: &Request) -> Duration {
    match request {
        Request::Run(run) => Duration::from_millis(run.within_ms).min(LONGEST_RUN),
        _ => FILES_WITHIN,
    }
}

/// Time limit of file operations.
const FILES_WITHIN: Duration = Duration::from_secs(30);

fn strange() -> Failure {
    Failure::new(DomainCode::Unavailable, "the sandbox sent an unexpected response")
}

/// Converts a refusal of the helper program to a failure.
pub fn failure(RequestRefusal { why, message }: RequestRefusal) -> Failure {
    let code = match why {
        RefusalReason::Invalid => DomainCode::InvalidArgument,
        RefusalReason::NotFound => DomainCode::NotFound,
        RefusalReason::Forbidden => DomainCode::PermissionDenied,
        RefusalReason::WrongKind | RefusalReason::Failed => DomainCode::ToolFailed,
        RefusalReason::NotText | RefusalReason::NoProgram => DomainCode::NotSupported,
        RefusalReason::TooLarge => DomainCode::LimitExceeded,
        RefusalReason::Ambiguous | RefusalReason::Exists => DomainCode::Conflict,
    };
    // The message is untrusted: reduce it to one short line.
    Failure::new(code, crate::page::one_line(&crate::page::cut(message, LONGEST_MESSAGE).0))
}

/// Maximum length of an untrusted message, in characters.
const LONGEST_MESSAGE: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_output_marks_the_omitted_part() {
        let whole = Output { head: b"ab\xe2".to_vec(), tail: b"\x82\xacc".to_vec(), left_out_bytes: 0 };
        assert_eq!(whole.text(), "ab€c");
        let cut = Output { left_out_bytes: 7, ..whole.clone() };
        assert_eq!(cut.text(), "ab\u{fffd}\n[… 7 bytes left out …]\n\u{fffd}\u{fffd}c");
        assert_eq!((whole.whole().map(|all| all.len()), cut.whole()), (Some(6), None));
    }
}
