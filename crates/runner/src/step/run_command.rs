//! `run_command`: a program, started without a shell.
//!
//! The step ends with the program; processes that it left running are killed.

use super::{StepContext, StepOutcome, too_much_output};
use crate::deadline::Deadline;
use crate::directory::{self, PathError};
use crate::failure_code::Fault;
use crate::log::Progress;
use crate::network_need::{self, UnreachableDestination};
use crate::process::{
    self, AllowedPaths, CaptureLimit, Ending, Fence, ProgramOutcome, ProgramSpec, SpawnError,
};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::run_command::RunCommand;
use belljar_contract::result::Failure;
use belljar_contract::result::output::{CommandOutput, OutputTruncation, StepOutput};
use belljar_policy::admission::{AdmissionDenial, JobPath};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Reason why no program was started.
#[derive(Debug, thiserror::Error)]
enum RunCommandError {
    #[error(transparent)]
    Denied(#[from] AdmissionDenial),
    #[error(transparent)]
    Directory(#[from] PathError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

pub(super) fn carry_out(
    command: &RunCommand,
    index: usize,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> StepOutcome {
    match run(command, index, surroundings, &deadline.of_step(command.timeout)) {
        Ok(outcome) => conclude(outcome, surroundings),
        Err(error) => StepOutcome::failed(error.failure()),
    }
}

fn run(
    command: &RunCommand,
    index: usize,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<ProgramOutcome, RunCommandError> {
    let place = surroundings.admitted.working_directory(command.cwd.as_ref())?;
    let (directory, path) = match &place {
        JobPath::Workspace(path) if path.is_root() => {
            (surroundings.workspace.open_directory(Path::new(""))?, surroundings.workspace_path.to_owned())
        }
        JobPath::Workspace(path) => (
            surroundings.workspace.open_directory(Path::new(path.as_str()))?,
            surroundings.workspace_path.join(path.as_str()),
        ),
        JobPath::Outside(path) => (directory::open_outside(Path::new(path))?, PathBuf::from(path)),
    };
    let allowed_paths = allowed_paths(surroundings);
    let order = ProgramSpec {
        argv: &command.argv,
        directory: directory.as_fd(),
        variables: variables(command, path, surroundings),
        input: &[],
        keep: CaptureLimit::First(surroundings.max_output()),
        allowed_paths: allowed_paths.as_ref(),
    };
    let mut progress = surroundings.progress.then(|| Progress::of_step(surroundings.log, index));
    let show = |news: &[u8]| progress.iter_mut().for_each(|progress| progress.show(news));
    Ok(process::run(&order, deadline, show)?)
}

/// Returns the paths that the job allows, as far as they exist now; `None` if it doesn't restrict its programs.
fn allowed_paths(surroundings: &StepContext<'_>) -> Option<AllowedPaths> {
    let StepContext { admitted, workspace, workspace_path, artifacts_path, .. } = surroundings;
    let located = |place: &JobPath| match place {
        JobPath::Workspace(path) => workspace.locate(Path::new(path.as_str())).ok(),
        JobPath::Outside(path) => directory::locate_outside(Path::new(path)).ok(),
    };
    let mut open: Vec<OwnedFd> = admitted.allowed_paths()?.iter().filter_map(located).collect();
    open.extend(directory::locate_outside(artifacts_path));
    let of_job = artifacts_path.parent().filter(|parent| parent.parent().is_some());
    let closed = [Some(*workspace_path), of_job].into_iter().flatten();
    // Canonical paths, because a rule is about a file, not about a name that leads there.
    let closed = closed.filter_map(|path| path.canonicalize().ok()).collect();
    Some(AllowedPaths { open, closed })
}

/// Returns the step's own variables, followed by those that it can't override.
fn variables(
    command: &RunCommand,
    working_directory: PathBuf,
    surroundings: &StepContext<'_>,
) -> Vec<(OsString, OsString)> {
    let job = surroundings.admitted.job();
    let workspace = surroundings.workspace_path;
    let own = command.env.iter().map(|(name, value)| (name.into(), value.into()));
    let mut variables = vec![("PWD".into(), working_directory.into())];
    variables.extend(own);
    variables.extend([
        ("CYNODE_JOB_ID".into(), job.job_id.as_str().into()),
        ("CYNODE_TASK_ID".into(), job.task_id.as_str().into()),
        ("CYNODE_WORKSPACE_DIR".into(), workspace.into()),
        ("CYNODE_ARTIFACTS_DIR".into(), surroundings.artifacts_path.into()),
    ]);
    variables
}

fn conclude(outcome: ProgramOutcome, surroundings: &StepContext<'_>) -> StepOutcome {
    report(&outcome, surroundings);
    let failure = failure_of(&outcome, surroundings);
    let usage = outcome.usage;
    let truncated = OutputTruncation { stdout: outcome.stdout.truncated, stderr: outcome.stderr.truncated };
    let (stdout, stderr) = (outcome.stdout.into_content(), outcome.stderr.into_content());
    let output = StepOutput::RunCommand(CommandOutput {
        exit_code: outcome.exit_code,
        signal: outcome.signal,
        stdout: stdout.text,
        stderr: stderr.text,
        stdout_encoding: stdout.encoding,
        stderr_encoding: stderr.encoding,
        truncated,
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        resource_usage: usage,
    });
    StepOutcome { output: Some(output), usage, failure }
}

fn report(outcome: &ProgramOutcome, surroundings: &StepContext<'_>) {
    let Fence { domain, filter } = outcome.fence;
    let is_whole = domain && filter;
    if !is_whole && !surroundings.weak_fence_is_told.replace(true) {
        let have = |layer: bool| if layer { "in force" } else { "missing" };
        surroundings.log.warn(format!(
            "steps may be able to harm the runner: Landlock signal scope {}, seccomp filter {}",
            have(domain),
            have(filter)
        ));
    }
    if let Some(survivors) = &outcome.survivors {
        surroundings.log.warn(survivors.to_string());
    }
}

fn failure_of(outcome: &ProgramOutcome, surroundings: &StepContext<'_>) -> Option<Failure> {
    let cap = surroundings.max_output();
    if let Ending::Interrupted(interrupted) = outcome.ending {
        return Some(interrupted.failure());
    }
    match (outcome.stdout.truncated, outcome.stderr.truncated) {
        (true, true) => return Some(too_much_output("each of stdout and stderr", cap)),
        (true, false) => return Some(too_much_output("stdout", cap)),
        (false, true) => return Some(too_much_output("stderr", cap)),
        (false, false) => {}
    }
    let how = match (outcome.exit_code, outcome.signal) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    };
    let unreached = network_need::find([&outcome.stdout.bytes, &outcome.stderr.bytes]);
    Some(match unreached {
        Some(unreached) => needs_network(&unreached, &how, surroundings),
        None => Failure::new(FailureCode::StepFailed, how),
    })
}

/// Returns the failure of a program that could not reach an external host.
fn needs_network(unreached: &UnreachableDestination, how: &str, surroundings: &StepContext<'_>) -> Failure {
    let host = unreached.host.as_deref().unwrap_or("an external host");
    let message = match surroundings.admitted.job().constraints.ext_net_allowed {
        true => format!("could not reach {host} ({how})"),
        false => format!("needs {host}, and this job has no external network access ({how})"),
    };
    Failure::new(FailureCode::ExtNetRequired, message)
}

// === impl RunCommandError ===

impl Fault for RunCommandError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Denied(denied) => denied.code(),
            Self::Directory(error) => error.code(),
            Self::Spawn(error) => error.code(),
        }
    }
}
