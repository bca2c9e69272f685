//! How a job ended, as an exit code and as a line.

use crate::command::plain;
use crate::error::{BAD_INPUT, OUT_OF_TIME};
use crate::summary::duration;
use anstyle::{AnsiColor, Style};
use belljar_contract::failure::FailureCode;
use belljar_contract::worker::job::JobResponse;
use belljar_contract::worker::state::JobState;

/// The exit code that `belljar run` has for the same.
pub(super) fn exit_code(state: JobState, failure: Option<FailureCode>) -> u8 {
    match (state, failure) {
        (JobState::Accepted | JobState::InProgress | JobState::Completed, _) => 0,
        (JobState::Timeout, _) => OUT_OF_TIME,
        (_, Some(FailureCode::SchemaValidation)) => BAD_INPUT,
        (JobState::Failed | JobState::Canceled | JobState::NodeFailure, _) => 1,
    }
}

/// The exit code of a job that is over.
pub(super) fn exit_code_of(job: &JobResponse) -> u8 {
    exit_code(job.job.status, job.outcome.as_ref().and_then(|outcome| outcome.failure_code))
}

/// How it ended, for a person.
pub(super) fn headline(job: &JobResponse) -> String {
    let status = job.job.status;
    let style = style(status);
    let mut line = format!("{style}{}{style:#}", words(status));
    if let (Some(begun), Some(ended)) = (job.job.started_at, job.job.ended_at) {
        line += &format!(" in {}", duration(ended.duration_since(begun).unsigned_abs()));
    }
    let Some(outcome) = &job.outcome else { return line };
    if outcome.exit_code >= 0 {
        line += &format!(" · exit code {}", outcome.exit_code);
    }
    match outcome.artifacts.len() {
        0 => {}
        1 => line += " · 1 artifact",
        many => line += &format!(" · {many} artifacts"),
    }
    if let Some(code) = outcome.failure_code {
        let message = outcome.failure_message.as_deref().unwrap_or_default();
        line += &format!("\n  {code}: {}", plain(message.lines().next().unwrap_or_default()));
    }
    line
}

/// A state as a person says it.
pub(super) fn words(state: JobState) -> &'static str {
    match state {
        JobState::Accepted => "accepted",
        JobState::InProgress => "in progress",
        JobState::Completed => "completed",
        JobState::Failed => "failed",
        JobState::Timeout => "out of time",
        JobState::Canceled => "canceled",
        JobState::NodeFailure => "lost with its node",
    }
}

pub(super) fn style(state: JobState) -> Style {
    let color = match state {
        JobState::Accepted | JobState::InProgress => return Style::new(),
        JobState::Completed => AnsiColor::Green,
        JobState::Failed | JobState::NodeFailure => AnsiColor::Red,
        JobState::Timeout | JobState::Canceled => AnsiColor::Yellow,
    };
    Style::new().bold().fg_color(Some(color.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_state_maps_to_the_exit_code_of_belljar_run() {
        let code = |state| exit_code(state, None);
        assert_eq!(JobState::ALL.map(code), [0, 0, 0, 1, 124, 1, 1]);
        assert_eq!(exit_code(JobState::Failed, Some(FailureCode::SchemaValidation)), 2);
        assert_eq!(exit_code(JobState::Failed, Some(FailureCode::StepFailed)), 1);
    }
}
