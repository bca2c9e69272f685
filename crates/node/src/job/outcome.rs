//! The outcome of a job, as the Worker API reports it.

use crate::access_rules::PermissionExceeded;
use belljar_confine::launch::LaunchError;
use belljar_confine::stage::Stage;
use belljar_contract::failure::FailureCode;
use belljar_contract::result::{Artifact, JobResult, JobStatus};
use belljar_contract::usage::UsageTotals;
use belljar_contract::worker::job::{JobOutcome, JobOutputTruncation};
use belljar_execution::web::{WebTotals, judge, judged};
use belljar_journal::RunJournalError;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::enclosure::EnclosureError;
use belljar_sandbox::native::StartError;
use belljar_sandbox::run::RunError;
use belljar_sandbox::run::command::{CapturedOutput, FinishedCommand};
use belljar_store::task_artifacts::TaskArtifact;
use jiff::Timestamp;
use rustix::io::Errno;
use std::error::Error;

/// Outcome of an attempt.
#[derive(Debug)]
pub(super) struct RunOutcome {
    pub(super) ending: ReportedEnding,
    pub(super) outcome: JobOutcome,
}

const LARGEST_OUTCOME_BYTES: usize = 32 << 20;

// === impl RunOutcome ===

impl RunOutcome {
    /// Returns the outcome of a failure of the node.
    pub(super) fn of_fault(error: &dyn Error) -> Self {
        let outcome = JobOutcome::of_failure(FailureCode::NodeFailure, crate::chain(error));
        Self { ending: ReportedEnding::NodeFailure, outcome }
    }

    /// Returns the outcome of a run that could not be made. A program that can't be started is the job's failure; anything
    /// else is the node's.
    pub(super) fn of_run_error(error: &RunError, command: Option<&str>) -> Self {
        match (why_not_run(error), command) {
            (Some(why), Some(program)) => {
                // Exit codes as in a shell: 127 for a missing program, 126 for one that can't be executed.
                let exit_code = if why == Errno::NOENT { 127 } else { 126 };
                let message = cant_run(program, why);
                let outcome = JobOutcome::of_failure(FailureCode::StepFailed, message);
                Self { ending: ReportedEnding::Failed, outcome: JobOutcome { exit_code, ..outcome } }
            }
            _ => Self::of_fault(error),
        }
    }

    /// Returns the outcome of a job whose agent's current permissions don't cover its request.
    pub(super) fn of_policy(error: &PermissionExceeded) -> Self {
        let outcome = JobOutcome::of_failure(FailureCode::PolicyViolation, crate::chain(error));
        Self { ending: ReportedEnding::Failed, outcome }
    }

    /// Returns the outcome of a job that was canceled before it began.
    pub(super) fn of_stop() -> Self {
        let outcome = JobOutcome::of_failure(FailureCode::Canceled, "the job was canceled before it began");
        Self { ending: ReportedEnding::Canceled, outcome }
    }

    /// Adds the model usage. If not all of it could be recorded, the job has failed, whatever it did.
    pub(super) fn with_models(mut self, models: Option<Result<UsageTotals, RunJournalError>>) -> Self {
        match models {
            None => {}
            Some(Ok(usage)) => self.outcome.inference = Some(usage),
            Some(Err(error)) => {
                tracing::error!(error = crate::chain(&error), "calls of models are not recorded");
                self.is_not_recorded(&error);
            }
        }
        self
    }

    /// Adds the web usage, and adjusts the failure code by the denied requests. If not all of it could be recorded, the job
    /// has failed.
    pub(super) fn with_web(mut self, web: Option<Result<WebTotals, RunJournalError>>) -> Self {
        match web {
            None => {}
            Some(Ok(seen)) => self.judge_by(seen),
            Some(Err(error)) => {
                tracing::error!(error = crate::chain(&error), "what went to the web is not recorded");
                self.is_not_recorded(&error);
            }
        }
        self
    }

    fn judge_by(&mut self, seen: WebTotals) {
        let outcome = &mut self.outcome;
        outcome.web = Some(seen.usage.clone());
        if let Some(result) = &mut outcome.sba_result {
            judge(result, seen);
            (outcome.failure_code, outcome.failure_message) =
                (result.failure_code, result.failure_message.clone());
            return;
        }
        // A command is one step: every denial happened while it ran.
        let failure = (outcome.failure_code, outcome.failure_message.as_deref());
        if let Some((code, message)) = judged(failure, &seen, (Timestamp::MIN, FailureCode::StepFailed)) {
            (outcome.failure_code, outcome.failure_message) = (Some(code), Some(message));
        }
    }

    fn is_not_recorded(&mut self, error: &RunJournalError) {
        self.outcome.failure_code = Some(FailureCode::InternalError);
        self.outcome.failure_message = Some(crate::chain(error));
        if self.ending == ReportedEnding::Completed {
            self.ending = ReportedEnding::Failed;
        }
    }

    /// Marks a job as ended because its agent's permissions no longer cover the sandbox's terms.
    pub(super) fn demoted(mut self) -> Self {
        let why = "the agent of the job may do less by now than its sandbox was made for";
        let told = (Some(FailureCode::PolicyViolation), Some(why.to_owned()));
        self.ending = ReportedEnding::Failed;
        (self.outcome.failure_code, self.outcome.failure_message) = told.clone();
        if let Some(result) = &mut self.outcome.sba_result {
            (result.failure_code, result.failure_message) = told;
        }
        self
    }

    /// Adds the files that it has put into its task, after the artifacts of its sandbox.
    pub(super) fn with_files(mut self, files: &[TaskArtifact]) -> Self {
        for file in files {
            let (path, sha256) = (file.path.as_str().to_owned(), file.content.sha256().to_owned());
            let artifact = Artifact { path, sha256, size_bytes: file.content.size_bytes() };
            if let Some(result) = &mut self.outcome.sba_result {
                result.artifacts.push(artifact.clone());
            }
            self.outcome.artifacts.push(artifact);
        }
        self
    }

    /// Returns true if it was canceled.
    pub(super) fn was_stopped(&self) -> bool {
        self.ending == ReportedEnding::Canceled
    }
}

/// Returns the failure message of a command that can't be started.
fn cant_run(program: &str, why: Errno) -> String {
    let hint = match why {
        Errno::NOENT if program.contains('/') => {
            "there is no such file in the sandbox, or the interpreter that it names is missing"
        }
        Errno::NOENT => "there is no such program in the sandbox's PATH",
        Errno::ACCESS => "it may not be executed there",
        Errno::NOEXEC => "it is no program that the kernel can run",
        _ => "the kernel refused to execute it",
    };
    format!("can't run {program:?}, the first element of `command`: {hint} ({why})")
}

/// Returns why a program could not be executed in its sandbox; `None` if the sandbox itself failed.
fn why_not_run(error: &RunError) -> Option<Errno> {
    let RunError::Sandbox(error) = error else { return None };
    match error {
        EnclosureError::Start(StartError::Launch(LaunchError::Stage {
            stage: Stage::Exec, source, ..
        }))
        | EnclosureError::Container(BackendError::NotStarted { source, .. }) => Some(*source),
        _ => None,
    }
}

/// Returns the outcome of a runner's job.
pub(super) fn of_job(result: JobResult) -> RunOutcome {
    let ending = match result.status {
        JobStatus::Success => ReportedEnding::Completed,
        JobStatus::Timeout => ReportedEnding::Timeout,
        JobStatus::Failure => of_code(result.failure_code),
    };
    let outcome = JobOutcome {
        exit_code: result.exit_code().into(),
        stdout: String::new(),
        stderr: String::new(),
        truncated: JobOutputTruncation::default(),
        failure_code: result.failure_code,
        failure_message: result.failure_message.clone(),
        artifacts: result.artifacts.clone(),
        resource_usage: result.resource_usage,
        inference: None,
        web: None,
        isolation: result.isolation.clone(),
        sba_result: Some(Box::new(result)),
    };
    bounded(RunOutcome { ending, outcome })
}

/// Replaces an outcome that is larger than [`LARGEST_OUTCOME_BYTES`] by a failure. The job's own limits are far below.
fn bounded(came: RunOutcome) -> RunOutcome {
    let size = serde_json::to_vec(&came.outcome).map_or(usize::MAX, |written| written.len());
    if size <= LARGEST_OUTCOME_BYTES {
        return came;
    }
    let why = format!("the job's result is larger than {LARGEST_OUTCOME_BYTES} bytes");
    let failed = JobOutcome::of_failure(FailureCode::ConstraintViolation, why);
    RunOutcome {
        ending: ReportedEnding::Failed,
        outcome: JobOutcome { artifacts: came.outcome.artifacts, ..failed },
    }
}

/// Returns the outcome of a command. Takes its output out of `finished`.
pub(super) fn of_command(finished: &mut FinishedCommand) -> RunOutcome {
    let (failure_code, failure_message) = match finished.failure.take() {
        Some(failure) => (Some(failure.code), Some(failure.message)),
        None if finished.exit_code == 0 => (None, None),
        None => (
            Some(FailureCode::StepFailed),
            Some(format!("the command ended with exit code {}", finished.exit_code)),
        ),
    };
    let ending = match failure_code {
        None => ReportedEnding::Completed,
        code => of_code(code),
    };
    let truncated = JobOutputTruncation { stdout: finished.stdout.is_cut, stderr: finished.stderr.is_cut };
    let outcome = JobOutcome {
        exit_code: finished.exit_code,
        stdout: text(&mut finished.stdout),
        stderr: text(&mut finished.stderr),
        truncated,
        failure_code,
        failure_message,
        sba_result: None,
        artifacts: std::mem::take(&mut finished.artifacts),
        resource_usage: finished.resource_usage,
        inference: None,
        web: None,
        isolation: Some(finished.isolation.clone()),
    };
    RunOutcome { ending, outcome }
}

fn of_code(code: Option<FailureCode>) -> ReportedEnding {
    match code {
        Some(FailureCode::Timeout) => ReportedEnding::Timeout,
        Some(FailureCode::Canceled) => ReportedEnding::Canceled,
        Some(FailureCode::NodeFailure) => ReportedEnding::NodeFailure,
        _ => ReportedEnding::Failed,
    }
}

/// Returns the output as text. A character cut at the end is dropped; other invalid UTF-8 is replaced.
fn text(printed: &mut CapturedOutput) -> String {
    let mut bytes = std::mem::take(&mut printed.bytes);
    if printed.is_cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_output_ends_at_a_character_boundary() {
        let of = |bytes: &[u8], is_cut| text(&mut CapturedOutput { bytes: bytes.to_vec(), is_cut });
        assert_eq!(of("aé".as_bytes(), true), "aé");
        assert_eq!(of(&"aé".as_bytes()[..2], true), "a");
        assert_eq!(of(&"a€".as_bytes()[..3], true), "a");
        // Control: a program may write an incomplete character itself.
        assert_eq!(of(&"aé".as_bytes()[..2], false), "a\u{fffd}");
        assert_eq!(of(b"\xffa", true), "\u{fffd}a");
    }
}
