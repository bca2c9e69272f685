//! Events of a job, as lines for a person. What comes from inside never acts on a terminal.

use super::job_exit::words;
use crate::command::plain;
use crate::summary::duration;
use belljar_contract::event::{Event, LogLine};
use belljar_contract::result::StepStatus;
use belljar_contract::worker::event::{JobEvent, JobEventKind, Stream};
use belljar_contract::worker::state::JobState;
use serde::Deserialize;
use std::time::Duration;

/// The lines that tell of an event; none where there is nothing to tell.
pub(super) fn lines(event: &JobEvent) -> Vec<String> {
    let at = event.at.strftime("%H:%M:%S");
    let told = match &event.happening {
        JobEventKind::Status { status, attempt, failure_code } => {
            let mut line = words(*status).to_owned();
            if *attempt > 1 {
                line += &format!(", attempt {attempt}");
            }
            // Of the other endings it says the same once more.
            if let (JobState::Failed, Some(code)) = (status, failure_code) {
                line += &format!(": {code}");
            }
            vec![line]
        }
        JobEventKind::CancelRequested => vec!["is to stop".to_owned()],
        JobEventKind::Step { line } => step(line).into_iter().collect(),
        JobEventKind::Log { stream, text } => {
            let name = match stream {
                Stream::Stdout => "stdout",
                Stream::Stderr => "stderr",
            };
            text.lines().map(|line| format!("{name} | {}", plain(line))).collect()
        }
        JobEventKind::Progress(progress) => {
            let percent = progress.percent.map(|percent| format!("{percent} %"));
            let message = progress.message.as_deref().map(plain);
            vec![[percent, message].into_iter().flatten().collect::<Vec<_>>().join("  ")]
        }
        JobEventKind::Extension { asked_seconds, granted, deadline, reason } => {
            let answer = match (granted, reason) {
                (true, _) => format!("granted: until {}", deadline.strftime("%H:%M:%S")),
                (false, Some(reason)) => format!("denied: {}", plain(reason)),
                (false, None) => "denied".to_owned(),
            };
            vec![format!("asks for {asked_seconds} s more: {answer}")]
        }
        JobEventKind::Truncated => vec!["further events are not listed".to_owned()],
    };
    told.into_iter().map(|line| format!("{at}  {line}")).collect()
}

/// A line of the runner's log, where it is one that says something.
fn step(line: &serde_json::Value) -> Option<String> {
    let line = LogLine::deserialize(line).ok()?;
    match line.event {
        Event::StepStarted { index, id, step_type } => {
            Some(format!("step {}  {}  {}", index + 1, step_type.as_str(), plain(&id)))
        }
        Event::StepFinished { index, id, status, duration_ms, failure_code, .. } => {
            let mark = if status == StepStatus::Success { '✓' } else { '✗' };
            let took = duration(Duration::from_millis(duration_ms));
            let why = failure_code.map(|code| format!("  {code}")).unwrap_or_default();
            Some(format!("step {}  {mark} {took}  {}{why}", index + 1, plain(&id)))
        }
        Event::Warning { message } => Some(format!("warning: {}", plain(&message))),
        _ => None,
    }
}
