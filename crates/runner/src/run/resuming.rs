//! Resuming a job after an interrupted run.

use super::RunRecords;
use super::record;
use super::steps_file::{EarlierProgress, StepsFile};
use crate::invocation::Transport;
use crate::log::Log;
use belljar_contract::result::ResumeSummary;
use belljar_policy::admission::AdmittedJob;
use std::path::Path;

/// Puts the steps of an earlier run into the result, and starts the journal of this run.
pub(super) fn take_up(
    admitted: &AdmittedJob,
    (transport, document): (&Transport, &[u8]),
    log: &Log<'_>,
    (result, steps_file): RunRecords<'_>,
) {
    let steps = &admitted.job().steps;
    let Transport::Files { job: file, .. } = transport else { return };
    if steps.is_empty() {
        return;
    }
    let directory = file.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let EarlierProgress { done, running } = match StepsFile::begin(directory, admitted.job(), document) {
        Ok((file, earlier)) => {
            *steps_file = file;
            earlier
        }
        Err(error) => {
            log.warn(format!("cannot record completed steps, so the job cannot be resumed: {error}"));
            return;
        }
    };
    if done.is_empty() && running.is_none() {
        return;
    }
    let again = running.and_then(|index| Some(steps.get(index)?.name(index)));
    let and_again =
        again.as_ref().map(|id| format!("; the interrupted step {id} is repeated")).unwrap_or_default();
    log.warn(format!(
        "resuming an interrupted run of this job: {} completed steps are reused{and_again}",
        done.len()
    ));
    result.resumed = Some(ResumeSummary { steps_taken_over: done.len(), step_run_again: again });
    for step in done {
        record::add_usage(&mut result.resource_usage, step.usage);
        result.steps.push(step.entry);
    }
}
