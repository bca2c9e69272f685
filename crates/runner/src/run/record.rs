//! Records of steps in the result and the log.

use crate::deadline::Deadline;
use crate::failure_code::Fault;
use crate::step::{self, StepContext};
use belljar_contract::event::Event;
use belljar_contract::job::step::{Step, StepType};
use belljar_contract::result::output::StepOutput;
use belljar_contract::result::{Failure, ResourceUsage, StepError, StepResult, StepStatus};
use belljar_policy::admission::RefusedJob;
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// A completed step with its entry in the result.
pub(super) struct RecordedStep {
    pub(super) entry: StepResult,
    pub(super) usage: ResourceUsage,
    /// Failure of the job by this step, if it fails.
    pub(super) failure: Option<Failure>,
}

/// Carries out a step, and logs its begin and end.
pub(super) fn carry_out(
    step: &Step,
    index: usize,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> RecordedStep {
    let (id, step_type) = (step.name(index), step.action.step_type());
    surroundings.log.write(Event::StepStarted { index, id: id.clone(), step_type });
    let (started, started_at) = (Instant::now(), Timestamp::now());
    let ended = step::carry_out(step, index, surroundings, deadline);
    let status = if ended.failure.is_some() { StepStatus::Failure } else { StepStatus::Success };
    let duration_ms = millis(started.elapsed());
    surroundings.log.write(Event::StepFinished {
        index,
        id: id.clone(),
        status,
        duration_ms,
        truncated: ended.output.as_ref().is_some_and(is_truncated),
        resource_usage: ended.usage,
        failure_code: ended.failure.as_ref().map(|failure| failure.code),
    });
    let failure = ended.failure.as_ref();
    let of_job = failure.map(|failure| Failure::new(failure.code, format!("step {id}: {}", failure.message)));
    let entry = StepResult {
        index,
        id,
        step_type,
        status,
        started_at: Some(started_at),
        finished_at: Some(Timestamp::now()),
        duration_ms,
        result: ended.output,
        error: ended.failure.map(|Failure { code, message }| StepError { code, message }),
    };
    RecordedStep { entry, usage: ended.usage, failure: of_job }
}

/// Returns an entry for each step that may not run, with all reasons.
pub(super) fn refused_steps(refused: &RefusedJob, outline: &[(String, StepType)]) -> Vec<StepResult> {
    let refused_step = |index: usize, (id, step_type): &(String, StepType)| {
        let mut denials =
            refused.steps.iter().filter(|(at, _)| *at == index).map(|(_, denied)| denied).peekable();
        let code = denials.peek()?.code();
        let message = denials.map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Some(StepResult {
            index,
            id: id.clone(),
            step_type: *step_type,
            status: StepStatus::Failure,
            started_at: None,
            finished_at: None,
            duration_ms: 0,
            result: None,
            error: Some(StepError { code, message }),
        })
    };
    outline.iter().enumerate().filter_map(|(index, step)| refused_step(index, step)).collect()
}

/// Adds the resource usage of a step to the job's: times are added, of memory the maximum counts.
pub(super) fn add_usage(total: &mut ResourceUsage, usage: ResourceUsage) {
    total.cpu_time_ms = total.cpu_time_ms.saturating_add(usage.cpu_time_ms);
    total.max_rss_bytes = total.max_rss_bytes.max(usage.max_rss_bytes);
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn is_truncated(output: &StepOutput) -> bool {
    match output {
        StepOutput::RunCommand(output) => output.truncated.stdout || output.truncated.stderr,
        StepOutput::ReadFile(content) => content.truncated,
        StepOutput::ListTree(listing) => listing.truncated,
        StepOutput::SearchFiles(matches) => matches.truncated,
        StepOutput::WriteFile(_) | StepOutput::ApplyUnifiedDiff(_) => false,
    }
}
