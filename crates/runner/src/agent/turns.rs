//! An agent at work: it asks a model, performs its calls, and returns the outcomes, turn by turn.

use super::conversation::{Call, ConversationEntry, Definition, Request};
use super::model::{ModelAnswer, ModelError, Models};
use super::prompt::Runtime;
use super::tools::{self, ToolContext, ToolOutcome};
use super::verification;
use super::window::Window;
use crate::deadline::Deadline;
use crate::failure_code::Fault;
use crate::step::StepContext;
use belljar_contract::event::Event;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::context::Criterion;
use belljar_contract::result::agent::AgentReport;
use belljar_contract::result::{Failure, StepStatus};
use belljar_contract::worker::status::{LONGEST_EXTENSION_SECONDS, StatusAnswer};
use std::time::{Duration, Instant};

/// An agent at work.
pub(super) struct Agent<'a> {
    pub(super) bench: ToolContext<'a>,
    pub(super) models: Models,
    pub(super) system: String,
    /// Criteria that are verified in the end.
    pub(super) criteria: Vec<Criterion>,
    pub(super) conversation: Vec<ConversationEntry>,
    pub(super) window: Window,
    pub(super) max_turns: u32,
    pub(super) phase: Phase,
    /// True if the last answer was cut for length.
    pub(super) was_cut: bool,
    /// Turns in a row without a call.
    pub(super) idle_turns: u32,
    /// True if the host was asked for more time, which is done once.
    pub(super) has_asked_for_time: bool,
    pub(super) report: &'a mut AgentReport,
}

/// Phase of the agent.
pub(super) enum Phase {
    Working,
    /// The agent has reported that it is done, and checks the criteria.
    Checking {
        answer: String,
    },
}

/// Result of a turn.
pub(super) enum Turn {
    Goes,
    Done,
}

/// Number of consecutive answers without a call after which the agent fails.
const IDLE_TURNS: u32 = 3;
/// Share of the time, in percent, after which the runner asks the host for more.
const LATE_PERCENT: u128 = 80;
/// Maximum number of calls in one answer that are carried out.
const MOST_CALLS: usize = 32;

// === impl Agent ===

impl Agent<'_> {
    pub(super) fn run(&mut self, deadline: &Deadline<'_>) -> Result<(), Failure> {
        let begin = match self.report.resumed {
            true => {
                "An earlier run of this job was interrupted. The workspace may contain some of its work: check before you continue."
            }
            false => "Begin.",
        };
        self.conversation.push(ConversationEntry::Note(begin.to_owned()));
        loop {
            let turn = self.turn(deadline).map_err(|failure| self.for_want_of_network(failure))?;
            if let Turn::Done = turn {
                return Ok(());
            }
        }
    }

    /// Returns the failure of an agent one of whose commands could not reach an external host: that is reported as the
    /// reason if the agent gives up, or if its work isn't verified.
    fn for_want_of_network(&self, failure: Failure) -> Failure {
        match (failure.code, &self.bench.network_need) {
            (FailureCode::AgentGaveUp | FailureCode::NotVerified, Some(need)) => Failure::new(
                FailureCode::ExtNetRequired,
                format!("{}; one of its commands {need}", failure.message),
            ),
            _ => failure,
        }
    }

    /// Asks once, and performs the calls.
    fn turn(&mut self, deadline: &Deadline<'_>) -> Result<Turn, Failure> {
        deadline.check().map_err(|interrupted| interrupted.failure())?;
        if self.report.turns >= self.max_turns {
            return Err(self.out_of_turns());
        }
        self.ask_for_time(deadline);
        let mut offered = self.offered();
        let fill = self.window.fill_percent((&self.system, "", &offered), &self.conversation);
        if self.bench.remote.relieve(fill) {
            offered = self.offered();
        }
        let calls = self.ask(&mut offered, deadline)?;
        if calls.is_empty() {
            return self.nudge();
        }
        self.idle_turns = 0;
        for (at, call) in calls.into_iter().enumerate() {
            let outcome = match at < MOST_CALLS {
                true => self.call(&call, &offered, deadline)?,
                false => ToolOutcome::Told {
                    text: format!("not carried out: more than {MOST_CALLS} calls"),
                    failed: true,
                },
            };
            match outcome {
                ToolOutcome::Told { text, failed } => self.tell(call, text, failed),
                ToolOutcome::Finish(finish) => {
                    if let Turn::Done = self.finish(call, finish, deadline)? {
                        return Ok(Turn::Done);
                    }
                }
                ToolOutcome::Report(findings) => {
                    if let Turn::Done = self.reported(call, &findings, deadline)? {
                        return Ok(Turn::Done);
                    }
                }
            }
        }
        if self.was_cut {
            let note = "Your last answer was cut off because it was too long. Work in smaller pieces.";
            self.conversation.push(ConversationEntry::Note(note.to_owned()));
        }
        Ok(Turn::Goes)
    }

    /// Asks the host for half as much time again, when most is over and something is left to do. The next request shows
    /// the model the remaining time.
    fn ask_for_time(&mut self, deadline: &Deadline<'_>) {
        let is_due = deadline.used_percent() >= LATE_PERCENT && self.bench.todo.open().next().is_some();
        if !is_due || std::mem::replace(&mut self.has_asked_for_time, true) {
            return;
        }
        let StepContext { admitted, status, log, .. } = self.bench.surroundings;
        let half = admitted.job().constraints.max_runtime().as_secs().div_ceil(2);
        let seconds = half.clamp(1, LONGEST_EXTENSION_SECONDS);
        let answer = u32::try_from(seconds).ok().and_then(|seconds| status.ask_for_time(seconds));
        let Some(StatusAnswer { granted: Some(granted), remaining_ms, reason, .. }) = answer else { return };
        if granted {
            deadline.put_off(Duration::from_millis(remaining_ms));
        }
        let outcome = if granted { "granted" } else { "refused" };
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        log.warn(format!("extension of {seconds} s requested and {outcome}{reason}"));
    }

    /// Returns the tools that a model may call now: the runner's own, then the gateway's.
    fn offered(&self) -> Vec<Definition> {
        let (mut offered, only_looks) = match self.phase {
            Phase::Working => (tools::working(), false),
            Phase::Checking { .. } => (tools::checking(), true),
        };
        offered.extend(self.bench.remote.offered(only_looks));
        offered
    }

    /// Asks a model for the next calls.
    fn ask(&mut self, offered: &mut Vec<Definition>, deadline: &Deadline<'_>) -> Result<Vec<Call>, Failure> {
        let turn = self.report.turns + 1;
        let left = deadline.at().saturating_duration_since(Instant::now());
        let verified = &self.report.verification;
        let question = match self.phase {
            Phase::Checking { .. } => verification::question(&self.criteria),
            Phase::Working => None,
        };
        let question = question.as_deref();
        let max_turns = self.max_turns;
        let loaded = self.bench.remote.loaded();
        let runtime =
            Runtime { left, turn, max_turns, todo: self.bench.todo, verified, question, loaded }.text();
        let answered = loop {
            let fits = self.window.fit((&self.system, &runtime, offered), &mut self.conversation);
            if let Err(error) = fits {
                // Before the job fails for lack of space, tools that can be loaded again are unloaded.
                if !self.bench.remote.give_way() {
                    return Err(Failure::new(FailureCode::ConstraintViolation, error.to_string()));
                }
                *offered = self.offered();
                continue;
            }
            let request = Request {
                system: &self.system,
                conversation: &self.conversation,
                runtime: &runtime,
                tools: offered,
                context_tokens: self.window.tokens,
                is_said_first: false,
            };
            match self.models.ask(&request, turn, deadline) {
                // The model counts tokens otherwise than the runner.
                Err(ModelError::TooLong { .. }) => self.window.tokens -= self.window.tokens / 4,
                answered => break answered.map_err(|error| error.failure())?,
            }
        };
        Ok(self.heard(turn, answered))
    }

    fn heard(&mut self, turn: u32, ModelAnswer { model, reply }: ModelAnswer) -> Vec<Call> {
        let report = &mut *self.report;
        report.turns = turn;
        // An unknown count is not counted as zero.
        let sum = |total: Option<u64>, told: Option<u64>| Some(total?.saturating_add(told?));
        report.prompt_tokens = sum(report.prompt_tokens, reply.prompt_tokens);
        report.completion_tokens = sum(report.completion_tokens, reply.completion_tokens);
        if !report.models.contains(&model) {
            report.models.push(model.clone());
        }
        let (prompt_tokens, completion_tokens) = (reply.prompt_tokens, reply.completion_tokens);
        let event = Event::ModelAnswered { turn, model, prompt_tokens, completion_tokens };
        self.bench.surroundings.log.write(event);
        let calls = match &reply.entry {
            ConversationEntry::Said { calls, .. } => calls.clone(),
            _ => Vec::new(),
        };
        self.conversation.push(reply.entry);
        self.was_cut = reply.is_cut;
        calls
    }

    /// An answer in words alone.
    fn nudge(&mut self) -> Result<Turn, Failure> {
        self.idle_turns += 1;
        if self.idle_turns >= IDLE_TURNS {
            let message = format!("the model has called no tool in {IDLE_TURNS} answers");
            return Err(Failure::new(FailureCode::AgentGaveUp, message));
        }
        let note = match self.phase {
            Phase::Working => "Nothing was done: call a tool. If all is done, call `finish`.",
            Phase::Checking { .. } => "Nothing was done: check with the tools, then call `report_criteria`.",
        };
        self.conversation.push(ConversationEntry::Note(note.to_owned()));
        Ok(Turn::Goes)
    }

    fn call(
        &mut self,
        call: &Call,
        offered: &[Definition],
        deadline: &Deadline<'_>,
    ) -> Result<ToolOutcome, Failure> {
        let begun = Instant::now();
        let outcome =
            self.bench.call(call, offered, deadline).map_err(|interrupted| interrupted.failure())?;
        self.report.tool_calls += 1;
        let status = match outcome {
            ToolOutcome::Told { failed: true, .. } => StepStatus::Failure,
            _ => StepStatus::Success,
        };
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let tool = crate::excerpt::within(self.bench.remote.name_of(&call.tool).to_owned(), 128);
        self.bench.surroundings.log.write(Event::ToolFinished {
            turn: self.report.turns,
            tool,
            status,
            duration_ms,
        });
        Ok(outcome)
    }

    pub(super) fn tell(&mut self, call: Call, text: String, failed: bool) {
        self.report.failed_tool_calls += u32::from(failed);
        let text = if failed && !text.starts_with("failed") { format!("failed: {text}") } else { text };
        self.conversation.push(ConversationEntry::Outcome { call, text });
    }
}
