//! The steps of a job as its runner has logged them, for a result that the runner could not write.
//!
//! An OOM kill of a sandbox kills the runner with the step. By then the log, which comes by a pipe that no step has, shows
//! which steps have ended and which step was running. Their outputs are in `steps.jsonl` beside the job. Steps can write
//! there, so that file adds an output to a step that has succeeded according to the log, and nothing else.

use belljar_contract::event::{Event, LogLine};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::result::output::StepOutput;
use belljar_contract::result::{JobResult, StepError, StepResult, StepStatus};
use belljar_files::directory::Directory;
use jiff::Timestamp;
use serde::Deserialize;
use std::io::Read;
use std::path::Path;

/// Steps, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct LoggedSteps {
    steps: Vec<LoggedStep>,
}

#[derive(Debug)]
struct LoggedStep {
    index: usize,
    started_at: Timestamp,
    end: Option<LoggedStepEnd>,
}

#[derive(Debug)]
struct LoggedStepEnd {
    at: Timestamp,
    status: StepStatus,
    duration_ms: u64,
    failure_code: Option<FailureCode>,
}

/// A line of `steps.jsonl`, as far as it matters here.
#[derive(Deserialize)]
struct StepLine {
    done: Option<FinishedStep>,
}

#[derive(Deserialize)]
struct FinishedStep {
    entry: StepResult,
}

const OUTPUTS: &str = "steps.jsonl";

/// The runner writes no more into it.
const MOST_OUTPUT_BYTES: u64 = 64 << 20;

// === impl LoggedSteps ===

impl LoggedSteps {
    /// Takes a line of the runner's log.
    pub(super) fn note(&mut self, line: &LogLine) {
        match &line.event {
            Event::StepStarted { index, .. } if self.steps.last().is_none_or(|last| last.index < *index) => {
                self.steps.push(LoggedStep { index: *index, started_at: line.at, end: None });
            }
            Event::StepFinished { index, status, duration_ms, failure_code, .. } => {
                let running = self.steps.last_mut().filter(|step| step.index == *index && step.end.is_none());
                if let Some(running) = running {
                    running.end = Some(LoggedStepEnd {
                        at: line.at,
                        status: *status,
                        duration_ms: *duration_ms,
                        failure_code: *failure_code,
                    });
                }
            }
            _ => {}
        }
    }

    /// Puts the steps into a failed result that has none. A step that was still running fails as the job did.
    pub(super) fn complete(self, result: &mut JobResult, job: &Job, job_folder: Option<&Directory>) {
        let Some(code) = result.failure_code.filter(|_| result.steps.is_empty()) else { return };
        let message = result.failure_message.clone().unwrap_or_default();
        let mut outputs = if self.steps.is_empty() { Vec::new() } else { outputs(job_folder) };
        for LoggedStep { index, started_at, end } in self.steps {
            let Some(step) = job.steps.get(index) else { continue };
            let (id, step_type) = (step.name(index), step.action.step_type());
            let (finished_at, status, duration_ms, error) = match end {
                Some(LoggedStepEnd { at, status, duration_ms, failure_code }) => {
                    let error = (status == StepStatus::Failure).then(|| StepError {
                        code: failure_code.unwrap_or(FailureCode::StepFailed),
                        message: "the step failed, and the runner ended before it reported the error"
                            .to_owned(),
                    });
                    (at, status, duration_ms, error)
                }
                None => {
                    let now = Timestamp::now();
                    let duration_ms = u64::try_from(now.duration_since(started_at).as_millis()).unwrap_or(0);
                    let error = Some(StepError { code, message: message.clone() });
                    (now, StepStatus::Failure, duration_ms, error)
                }
            };
            let result_of_step = match status {
                StepStatus::Success => take_output(&mut outputs, index),
                StepStatus::Failure => None,
            };
            result.steps.push(StepResult {
                index,
                id,
                step_type,
                status,
                started_at: Some(started_at),
                finished_at: Some(finished_at),
                duration_ms,
                result: result_of_step,
                error,
            });
        }
    }
}

fn take_output(outputs: &mut Vec<StepResult>, index: usize) -> Option<StepOutput> {
    let at = outputs.iter().position(|entry| entry.index == index)?;
    outputs.swap_remove(at).result
}

/// Returns the results of successful steps in the file; none where it can't be read.
fn outputs(job_folder: Option<&Directory>) -> Vec<StepResult> {
    let Some(file) = job_folder.and_then(|folder| folder.open_file(Path::new(OUTPUTS)).ok()) else {
        return Vec::new();
    };
    let mut bytes = Vec::new();
    if file.take(MOST_OUTPUT_BYTES).read_to_end(&mut bytes).is_err() {
        return Vec::new();
    }
    let lines = bytes.split(|byte| *byte == b'\n');
    let read = lines.filter_map(|line| serde_json::from_slice::<StepLine>(line).ok()?.done);
    read.map(|done| done.entry).filter(|entry| entry.status == StepStatus::Success).collect()
}
