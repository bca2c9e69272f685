//! Starting a program, fenced off from the runner.
//!
//! A thread of its own starts each program: it fences itself off first, the program inherits that, and the runner's
//! other threads stay outside. The thread ends as soon as the program has started.
//!
//! The program gets the environment of the runner without the gateway's token, the step's variables, its stdin, pipes
//! for its outputs, and a process group of its own. It gets no other descriptor, default signal dispositions and no
//! blocked signal (the standard library does the last two). Its directory is entered by descriptor. There is no shell:
//! a text file without `#!` doesn't run.

use super::capture::CaptureLimit;
use super::fence::{self, AllowedPaths, Fence};
use super::program::{self, ProgramError};
use crate::failure_code::{Fault, code_of_io};
use crate::mcp;
use belljar_contract::failure::FailureCode;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A program to run, with its options.
#[derive(Debug)]
pub(crate) struct ProgramSpec<'o> {
    /// The program and its arguments.
    pub(crate) argv: &'o [String],
    /// Working directory.
    pub(crate) directory: BorrowedFd<'o>,
    /// Variables beside those of the runner.
    pub(crate) variables: Vec<(OsString, OsString)>,
    /// Standard input.
    pub(crate) input: &'o [u8],
    /// Part of each output that is kept.
    pub(crate) keep: CaptureLimit,
    /// The only paths that it may use, if it is restricted.
    pub(crate) allowed_paths: Option<&'o AllowedPaths>,
}

/// A program that has started.
pub(super) struct SpawnedProgram {
    pub(super) leader: u32,
    /// Protection of the runner from the program.
    pub(super) fence: Fence,
    /// The ends of its stdout and stderr that are read.
    pub(super) outputs: [OwnedFd; 2],
}

/// A program that did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("cannot start {program}")]
    Start {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot start {program}: the limit of processes (pids) is reached")]
    NoProcessLeft { program: String },
    #[error(
        "cannot start {program}: constraints.allowed_paths cannot be enforced; it requires Landlock (Linux 6.2 or newer)"
    )]
    PathsNotHeld {
        program: String,
        #[source]
        source: io::Error,
    },
}

/// Starts a program.
///
/// Changes the current directory of the whole process to that of the order, for good: nothing in the runner resolves
/// a relative path once steps run.
pub(super) fn spawn(order: &ProgramSpec<'_>) -> Result<SpawnedProgram, SpawnError> {
    let started = thread::scope(|scope| {
        let starter = thread::Builder::new().name("starter".to_owned()).spawn_scoped(scope, || start(order));
        match starter.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(started)) => started,
            Ok(Err(_panic)) => Err(start_error(order, io::Error::other("the starting thread panicked"))),
            Err(error) => Err(start_error(order, error)),
        }
    });
    let (mut child, fence) = started?;
    match (child.stdout.take(), child.stderr.take()) {
        (Some(stdout), Some(stderr)) => {
            Ok(SpawnedProgram { leader: child.id(), fence, outputs: [stdout.into(), stderr.into()] })
        }
        _ => Err(start_error(order, io::Error::other("its outputs are not connected"))),
    }
}

fn start(order: &ProgramSpec<'_>) -> Result<(Child, Fence), SpawnError> {
    let failed = |error: io::Error| start_error(order, error);
    let fence = fence::enter().map_err(failed)?;
    if let Some(allowed) = order.allowed_paths {
        let not_held = |source| SpawnError::PathsNotHeld { program: program_name(order).to_owned(), source };
        allowed.enter().map_err(not_held)?;
    }
    rustix::process::fchdir(order.directory).map_err(|error| failed(error.into()))?;
    let path = order.variables.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = path.or_else(|| std::env::var_os("PATH"));
    let program = program::find(program_name(order), path.as_deref())?;
    let mut command = Command::new(program);
    for secret in mcp::TOKENS {
        command.env_remove(secret);
    }
    let child = command
        .arg0(program_name(order))
        .args(order.argv.iter().skip(1))
        .envs(order.variables.iter().map(|(name, value)| (name, value)))
        .stdin(input(order.input).map_err(failed)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    Ok((child, fence))
}

/// Returns the program's stdin. A thread writes the bytes while the program runs. It is not waited for, and ends when
/// the program is gone.
fn input(bytes: &[u8]) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return no_input();
    }
    let (reader, mut writer) = io::pipe()?;
    let bytes = bytes.to_vec();
    // A program need not read all of its input, so a failed write is ignored.
    thread::Builder::new().name("feeder".to_owned()).spawn(move || drop(writer.write_all(&bytes)))?;
    Ok(reader.into())
}

fn no_input() -> io::Result<Stdio> {
    match File::open("/dev/null") {
        Ok(null) => Ok(null.into()),
        // A root file system without devices: a pipe without a writer is just as empty.
        Err(_) => io::pipe().map(|(reader, _writer)| reader.into()),
    }
}

fn program_name<'o>(order: &ProgramSpec<'o>) -> &'o str {
    order.argv.first().map(String::as_str).unwrap_or_default()
}

fn start_error(order: &ProgramSpec<'_>, source: io::Error) -> SpawnError {
    let program = program_name(order).to_owned();
    match Errno::from_io_error(&source) {
        Some(Errno::AGAIN) => SpawnError::NoProcessLeft { program },
        _ => SpawnError::Start { program, source },
    }
}

// === impl SpawnError ===

impl Fault for SpawnError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Program(_) => FailureCode::StepFailed,
            Self::Start { source, .. } => code_of_io(source),
            Self::NoProcessLeft { .. } => FailureCode::ConstraintViolation,
            Self::PathsNotHeld { .. } => FailureCode::PolicyViolation,
        }
    }
}
