//! Carrying out steps (`docs/contracts/job.md#j10`). One file for each type, named like it.

mod apply_unified_diff;
mod list_tree;
mod read_file;
mod run_command;
mod search_files;
mod write_file;

use crate::deadline::Deadline;
use crate::directory::Directory;
use crate::failure_code::Fault;
use crate::log::Log;
use crate::status::StatusLine;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::{Action, Step};
use belljar_contract::path::{StepPath, WorkspacePath};
use belljar_contract::result::output::StepOutput;
use belljar_contract::result::{Failure, ResourceUsage};
use belljar_policy::admission::{AdmissionDenial, AdmittedJob};
use std::cell::Cell;
use std::path::Path;

/// Environment of the steps.
pub(crate) struct StepContext<'r> {
    /// The job they belong to.
    pub(crate) admitted: &'r AdmittedJob,
    /// The directory they work in.
    pub(crate) workspace: Directory,
    /// Path of the workspace, as programs get it.
    pub(crate) workspace_path: &'r Path,
    /// Path of the artifacts folder, as programs get it.
    pub(crate) artifacts_path: &'r Path,
    /// Log that steps report to.
    pub(crate) log: &'r Log<'r>,
    /// Connection to the host.
    pub(crate) status: &'r StatusLine,
    /// True if output of running programs is logged.
    pub(crate) progress: bool,
    /// True if the log already has the warning that the protection of the runner is incomplete.
    pub(crate) weak_fence_is_told: Cell<bool>,
}

/// Result of a step.
#[derive(Debug)]
pub(crate) struct StepOutcome {
    /// Output; of a failed step as much as there was.
    pub(crate) output: Option<StepOutput>,
    /// Resources that it used.
    pub(crate) usage: ResourceUsage,
    /// Failure of the step, if it failed.
    pub(crate) failure: Option<Failure>,
}

/// Carries out one step, whose place in the job is `index`.
pub(crate) fn carry_out(
    step: &Step,
    index: usize,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> StepOutcome {
    if let Err(interrupted) = deadline.check() {
        return StepOutcome::failed(interrupted.failure());
    }
    match &step.action {
        Action::RunCommand(command) => run_command::carry_out(command, index, surroundings, deadline),
        Action::WriteFile(write) => write_file::carry_out(write, surroundings).into(),
        Action::ReadFile(read) => read_file::carry_out(read, surroundings, deadline),
        Action::ListTree(list) => list_tree::carry_out(list, surroundings, deadline).into(),
        Action::SearchFiles(search) => search_files::carry_out(search, surroundings, deadline).into(),
        Action::ApplyUnifiedDiff(apply) => {
            apply_unified_diff::carry_out(apply, surroundings, deadline).into()
        }
    }
}

// === impl StepContext ===

impl StepContext<'_> {
    /// Returns the path that a step names; the workspace's root if it names none.
    fn resolve(&self, path: Option<&StepPath>) -> Result<WorkspacePath, AdmissionDenial> {
        match path {
            Some(path) => self.admitted.resolve(path),
            None => self.admitted.permit_path(&WorkspacePath::root()).map(|()| WorkspacePath::root()),
        }
    }

    /// Returns the maximum number of bytes of one outcome for an agent.
    pub(crate) fn max_shown(&self) -> usize {
        const MOST: usize = 24 << 10;
        self.max_output().min(MOST)
    }

    /// Returns the limit of one output of a step, in bytes.
    fn max_output(&self) -> usize {
        self.admitted.job().constraints.max_output()
    }
}

// === impl StepOutcome ===

impl StepOutcome {
    /// A success.
    pub(crate) fn well(output: StepOutput) -> Self {
        Self { output: Some(output), usage: ResourceUsage::default(), failure: None }
    }

    /// A failure without anything to return.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self { output: None, usage: ResourceUsage::default(), failure: Some(failure) }
    }
}

impl<E: Fault> From<Result<StepOutput, E>> for StepOutcome {
    fn from(outcome: Result<StepOutput, E>) -> Self {
        outcome.map_or_else(|error| Self::failed(error.failure()), Self::well)
    }
}

impl Fault for AdmissionDenial {
    fn code(&self) -> FailureCode {
        FailureCode::PolicyViolation
    }
}

/// Returns the failure of a step whose output is larger than the job allows.
fn too_much_output(what: &str, cap: usize) -> Failure {
    Failure::new(
        FailureCode::ConstraintViolation,
        format!("{what} is longer than constraints.max_output_bytes ({cap})"),
    )
}
