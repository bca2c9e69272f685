//! Runs a program, and leaves no process of it behind.

use super::{beneath, refused};
use crate::deadline::Deadline;
use crate::directory::Directory;
use crate::own_process;
use crate::process::{
    self, CaptureLimit, CapturedOutput, Ending as HowItEnded, ProgramOutcome, ProgramSpec, SpawnError,
};
use belljar_contract::path::WorkspacePath;
use belljar_contract::text::with_causes;
use belljar_contract::workbench::{
    Answer, Bytes, OutputExcerpt, ProgramExit, ProgramResult, RefusalReason, RequestRefusal, RunProgram,
    VARIABLE_OF_WORKSPACE,
};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;

/// Signal that is reported for a killed program whose status is unknown.
const KILL: i32 = 9;

pub(super) fn run(
    run: &RunProgram,
    workspace: &Directory,
    deadline: &Deadline<'_>,
) -> Result<Answer, RequestRefusal> {
    let path = run.directory.as_ref().map_or(Ok(WorkspacePath::root()), beneath)?;
    let directory = workspace.open_directory(Path::new(path.as_str())).map_err(|error| refused(&error))?;
    let order = ProgramSpec {
        argv: &run.argv,
        directory: directory.as_fd(),
        variables: variables(run, &path)?,
        input: &run.input.0,
        keep: CaptureLimit::Ends(run.most_bytes),
        allowed_paths: None,
    };
    let outcome = process::run(&order, deadline, |_| {}).map_err(|error| not_started(&error))?;
    let left_behind = outcome.survivors.is_some() || own_process::loses_orphans();
    let duration_ms = u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX);
    Ok(Answer::Ran(ProgramResult {
        ending: ending(&outcome),
        stdout: kept(outcome.stdout),
        stderr: kept(outcome.stderr),
        duration_ms,
        left_behind,
    }))
}

/// Returns the variables of the program: `PWD`, the workspace's path, and the requested ones, which take precedence.
fn variables(run: &RunProgram, path: &WorkspacePath) -> Result<Vec<(OsString, OsString)>, RequestRefusal> {
    // The real path, because the sandbox's programs see the workspace wherever its backend has put it.
    let workspace = std::env::current_dir();
    let workspace = workspace.map_err(|error| {
        RequestRefusal::new(RefusalReason::Failed, format!("the workspace has no path: {error}"))
    })?;
    let directory = if path.is_root() { workspace.clone() } else { workspace.join(path.as_str()) };
    let mut variables: Vec<(OsString, OsString)> =
        vec![("PWD".into(), directory.into()), (VARIABLE_OF_WORKSPACE.into(), workspace.into())];
    variables.extend(run.env.iter().map(|(name, value)| (name.into(), value.into())));
    Ok(variables)
}

fn ending(outcome: &ProgramOutcome) -> ProgramExit {
    match (outcome.ending, outcome.exit_code, outcome.signal) {
        (HowItEnded::Interrupted(_), ..) => ProgramExit::OutOfTime,
        (_, Some(code), _) => ProgramExit::Exited(code),
        (_, None, signal) => ProgramExit::Killed(signal.unwrap_or(KILL)),
    }
}

fn kept(captured: CapturedOutput) -> OutputExcerpt {
    OutputExcerpt {
        head: Bytes(captured.bytes),
        tail: Bytes(captured.tail),
        left_out_bytes: captured.left_out,
    }
}

fn not_started(error: &SpawnError) -> RequestRefusal {
    let why = match error {
        SpawnError::Program(_) => RefusalReason::NoProgram,
        SpawnError::Start { .. } | SpawnError::PathsNotHeld { .. } => RefusalReason::Failed,
        SpawnError::NoProcessLeft { .. } => RefusalReason::TooLarge,
    };
    RequestRefusal::new(why, with_causes(error))
}
