//! Tools of the agent: the steps of jobs, its todo list, and the report that it is done.

mod definitions;
mod discovery;
mod outcome;
mod todo_calls;

pub(super) use definitions::{checking, working};
pub(super) use discovery::discovery;

use super::conversation::Call;
use super::remote::Remote;
use super::todo::{TodoFile, TodoList};
use crate::deadline::{Deadline, Interruption};
use crate::step::{self, StepContext};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::{Action, Step, StepType};
use belljar_contract::result::ResourceUsage;
use serde::Deserialize;

/// Environment of the tools.
pub(super) struct ToolContext<'b> {
    pub(super) surroundings: &'b StepContext<'b>,
    pub(super) todo: &'b mut TodoList,
    pub(super) file: &'b TodoFile,
    pub(super) remote: Remote,
    /// Resources that the calls have used so far.
    pub(super) usage: &'b mut ResourceUsage,
    /// Index in the log of the next call that is a step.
    pub(super) index: usize,
    /// Maximum number of bytes of an outcome for a model.
    pub(super) room: usize,
    /// Network destination that a command last failed to reach.
    pub(super) network_need: Option<String>,
}

/// Outcome of a call.
pub(super) enum ToolOutcome {
    /// Text for the model.
    Told { text: String, failed: bool },
    /// The agent reports that it is done, or can't be.
    Finish(Finish),
    /// The agent's findings about the criteria.
    Report(Vec<Finding>),
}

/// End of the agent's work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finish {
    pub(super) summary: String,
    #[serde(default)]
    pub(super) gave_up: bool,
}

/// The agent's finding about one criterion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Finding {
    /// Number of the criterion, from 1.
    pub(super) criterion: usize,
    pub(super) met: bool,
    pub(super) evidence: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    results: Vec<Finding>,
}

pub(super) const FINISH: &str = "finish";
pub(super) const REPORT: &str = "report_criteria";

/// Returns the names of all tools of the runner's own, in any phase.
pub(super) fn own_names() -> Vec<&'static str> {
    let own = [todo_calls::ADD, todo_calls::UPDATE, todo_calls::REORDER, FINISH, REPORT];
    let discovery = [discovery::LIST, discovery::LOAD, discovery::READ];
    StepType::ALL.into_iter().map(StepType::as_str).chain(own).chain(discovery).collect()
}

// === impl ToolContext ===

impl ToolContext<'_> {
    /// Performs a model's call, if the tool was offered. A failure is reported to the model, and ends nothing else.
    pub(super) fn call(
        &mut self,
        call: &Call,
        offered: &[super::conversation::Definition],
        deadline: &Deadline<'_>,
    ) -> Result<ToolOutcome, Interruption> {
        if !offered.iter().any(|tool| tool.name == call.tool) {
            if let Some(why) = self.remote.why_not(&call.tool) {
                return Ok(ToolOutcome::failed(why));
            }
            let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
            return Ok(ToolOutcome::failed(format!(
                "there is no tool of that name; available tools: {}",
                names.join(", ")
            )));
        }
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let outcome = match call.tool.as_str() {
            FINISH => read(arguments, ToolOutcome::Finish),
            REPORT => read(arguments, |Report { results }| ToolOutcome::Report(results)),
            name => match StepType::ALL.into_iter().find(|step| step.as_str() == name) {
                Some(step_type) => self.carry_out(step_type, arguments, deadline),
                None => self
                    .change_todo(name, arguments)
                    .or_else(|| self.discover(name, arguments, deadline))
                    .unwrap_or_else(|| self.call_gateway(name, arguments, deadline)),
            },
        };
        // A call that the job's end has interrupted has no outcome.
        deadline.check()?;
        Ok(outcome)
    }

    fn carry_out(&mut self, step_type: StepType, arguments: &str, deadline: &Deadline<'_>) -> ToolOutcome {
        let action = match Action::parse(step_type, arguments.as_bytes()) {
            Ok(action) => action,
            Err(problems) => return ToolOutcome::failed(format!("the arguments are wrong: {problems}")),
        };
        let (text, failed) = self.run(action, deadline);
        ToolOutcome::Told { text, failed }
    }

    /// Runs a step that isn't the job's, within the job's limits; returns its text for the model.
    pub(super) fn run(&mut self, action: Action, deadline: &Deadline<'_>) -> (String, bool) {
        let step = Step { id: None, action };
        let denials = self.surroundings.admitted.denials(&step);
        if !denials.is_empty() {
            let denials: Vec<String> = denials.iter().map(ToString::to_string).collect();
            return (format!("refused: {}", denials.join("; ")), true);
        }
        self.index += 1;
        let ended = step::carry_out(&step, self.index, self.surroundings, deadline);
        self.usage.cpu_time_ms = self.usage.cpu_time_ms.saturating_add(ended.usage.cpu_time_ms);
        self.usage.max_rss_bytes = self.usage.max_rss_bytes.max(ended.usage.max_rss_bytes);
        let failed = ended.failure.is_some();
        if let Some(failure) =
            ended.failure.as_ref().filter(|failure| failure.code == FailureCode::ExtNetRequired)
        {
            self.network_need = Some(failure.message.clone());
        }
        (outcome::told(&ended, self.room), failed)
    }
}

impl ToolOutcome {
    fn failed(text: impl Into<String>) -> Self {
        Self::Told { text: text.into(), failed: true }
    }
}

/// Parses arguments, or returns the problem.
fn read<'a, T: Deserialize<'a>>(arguments: &'a str, then: impl FnOnce(T) -> ToolOutcome) -> ToolOutcome {
    match serde_json::from_str(arguments) {
        Ok(arguments) => then(arguments),
        Err(error) => ToolOutcome::failed(format!("the arguments are wrong: {error}")),
    }
}
