//! The agent of a job: a model that works with tools until what the job asks for is so, and shown to be so
//! (`spec/1 §Execution Model`, `§Todo List`, `§Context Supplied to SBA`).
//!
//! ```text
//! job ─► material ─► todo list ─┐
//!                               ▼
//!          ┌── system, what was said, runtime ─► model ─► calls ─► tools ──┐
//!          │                                                               │ outcomes, also of what failed
//!          └───────────────────────────────────────────────────────────────┘
//!                    finish ─► criteria: looked at by the model, then by their commands ─► all met: done
//!                                                                                      └► else back to work
//! ```
//!
//! What a model says is never believed where it can be looked at: criteria with a command are met when that says so.

mod conversation;
mod material;
mod model;
mod prompt;
mod todo;
mod tools;
mod verification;
mod window;

use crate::deadline::Deadline;
use crate::fault::Fault;
use crate::log::Log;
use crate::step::Surroundings;
use belljar_contract::event::Event;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::job::context::Criterion;
use belljar_contract::result::agent::{AgentReport, TodoItem, TodoOrigin, TodoStatus, Verified};
use belljar_contract::result::{Failure, ResourceUsage, StepStatus};
use conversation::{Call, Definition, Entry, Request};
use material::Material;
use model::{Answered, Models, NoModel};
use prompt::Runtime;
use std::path::Path;
use std::time::Instant;
use todo::{TodoFile, TodoList};
use tools::{Bench, Finding, Finish, Outcome};
use window::Window;

/// An agent at work.
struct Agent<'a> {
    bench: Bench<'a>,
    models: Models,
    system: String,
    /// What is verified in the end.
    criteria: Vec<Criterion>,
    conversation: Vec<Entry>,
    window: Window,
    max_turns: u32,
    phase: Phase,
    /// Whether the last answer was cut off for its length.
    was_cut: bool,
    /// Turns in a row without a call.
    idle_turns: u32,
    report: &'a mut AgentReport,
}

/// What the agent is at.
enum Phase {
    Working,
    /// It says that it is done, and looks at the criteria.
    Checking {
        answer: String,
    },
}

/// What a turn comes to.
enum Turn {
    Goes,
    Done,
}

const MAX_TURNS: u32 = 100;
const CONTEXT_TOKENS: u32 = 32_768;
/// A model that says nothing but words so often in a row doesn't work.
const IDLE_TURNS: u32 = 3;
/// So many calls of one answer are carried out.
const MOST_CALLS: usize = 32;

/// What is to be achieved, as it is known before anything of the job has run that could say otherwise.
pub(crate) struct Brief {
    material: Material,
    file: TodoFile,
    earlier: Option<TodoList>,
}

// === impl Brief ===

impl Brief {
    /// Of a job whose file is in that directory, if it came in one; nothing where steps are all that there is to do.
    pub(crate) fn of(job: &Job, directory: Option<&Path>, log: &Log<'_>) -> Result<Option<Self>, Failure> {
        let context = directory.map(|directory| directory.join("context"));
        let material = Material::gather(job, context.as_deref(), log)
            .map_err(|error| Failure::new(FailureCode::SchemaValidation, error.to_string()))?;
        let has_aim = match job.inference {
            Some(_) => material.has_an_aim(!job.steps.is_empty()),
            None => material.criteria.iter().any(|criterion| criterion.check.is_some()),
        };
        if !has_aim {
            return Ok(None);
        }
        let file = TodoFile::in_directory(directory, job.job_id.as_str()).unwrap_or_else(|error| {
            log.warn(format!("todo.json can't be kept: {error}"));
            TodoFile::nowhere()
        });
        let earlier = file.earlier().unwrap_or_else(|error| {
            log.warn(format!("todo.json can't be read, and is made anew: {error}"));
            None
        });
        Ok(Some(Self { material, file, earlier }))
    }
}

/// Works until everything is done and verified; what was done stands in the report, however it ends.
pub(crate) fn work(
    surroundings: &Surroundings<'_>,
    brief: Brief,
    steps: &[String],
    deadline: &Deadline<'_>,
    (report, usage): (&mut AgentReport, &mut ResourceUsage),
) -> Result<(), Failure> {
    let job = surroundings.admitted.job();
    let Brief { material, file, earlier } = brief;
    let mut todo = TodoList::of(&material, steps);
    if let Some(earlier) = earlier {
        report.resumed = true;
        todo.adopt(&earlier);
    }
    if let Err(error) = file.keep(&todo) {
        surroundings.log.warn(format!("todo.json can't be kept: {error}"));
    }
    let tokens =
        job.inference.as_ref().and_then(|inference| inference.context_tokens).unwrap_or(CONTEXT_TOKENS);
    // A single outcome never takes most of the window.
    let room = (tokens as usize).min(surroundings.max_shown());
    let bench = Bench { surroundings, todo: &mut todo, file: &file, usage, index: job.steps.len(), room };
    let outcome = match &job.inference {
        None => check(&material, bench, deadline, report),
        Some(inference) => Models::of_environment(&inference.allowed_models)
            .map_err(|error| error.failure())
            .and_then(|models| {
                let mut agent = Agent {
                    bench,
                    models,
                    system: prompt::system(&material),
                    criteria: material.to_verify(),
                    conversation: Vec::new(),
                    window: Window { tokens },
                    max_turns: inference.max_turns.unwrap_or(MAX_TURNS),
                    phase: Phase::Working,
                    was_cut: false,
                    idle_turns: 0,
                    report,
                };
                agent.run(deadline)
            }),
    };
    report.todo = todo.items().to_vec();
    outcome
}

/// Without models the checks alone are run; criteria without one are for whoever reads them.
fn check(
    material: &Material,
    mut bench: Bench<'_>,
    deadline: &Deadline<'_>,
    report: &mut AgentReport,
) -> Result<(), Failure> {
    let checks: Vec<Criterion> =
        material.criteria.iter().filter(|criterion| criterion.check.is_some()).cloned().collect();
    let verified = verification::conclude(&checks, &[], &mut bench, deadline);
    report.verification = verified.map_err(|interrupted| interrupted.failure())?;
    match report.verification.iter().find(|verified| !verified.met) {
        Some(unmet) => Err(not_met(unmet)),
        None => Ok(()),
    }
}

fn not_met(unmet: &Verified) -> Failure {
    let message = format!("not met: {}: {}", unmet.criterion, unmet.evidence);
    Failure::new(FailureCode::NotVerified, message)
}

// === impl Agent ===

impl Agent<'_> {
    fn run(&mut self, deadline: &Deadline<'_>) -> Result<(), Failure> {
        let begin = match self.report.resumed {
            true => {
                "An earlier run of this job was cut off. The workspace may hold some of its work: look before you go on."
            }
            false => "Begin.",
        };
        self.conversation.push(Entry::Note(begin.to_owned()));
        loop {
            if let Turn::Done = self.turn(deadline)? {
                return Ok(());
            }
        }
    }

    /// Asks once, and does what is wanted.
    fn turn(&mut self, deadline: &Deadline<'_>) -> Result<Turn, Failure> {
        deadline.check().map_err(|interrupted| interrupted.failure())?;
        if self.report.turns >= self.max_turns {
            return Err(self.out_of_turns());
        }
        let offered = match self.phase {
            Phase::Working => tools::working(),
            Phase::Checking { .. } => tools::checking(),
        };
        let calls = self.ask(&offered, deadline)?;
        if calls.is_empty() {
            return self.nudge();
        }
        self.idle_turns = 0;
        for (at, call) in calls.into_iter().enumerate() {
            let outcome = match at < MOST_CALLS {
                true => self.call(&call, &offered, deadline)?,
                false => Outcome::Told {
                    text: format!("not carried out: more than {MOST_CALLS} calls"),
                    failed: true,
                },
            };
            match outcome {
                Outcome::Told { text, failed } => self.tell(call, text, failed),
                Outcome::Finish(finish) => {
                    if let Turn::Done = self.finish(call, finish, deadline)? {
                        return Ok(Turn::Done);
                    }
                }
                Outcome::Report(findings) => {
                    if let Turn::Done = self.reported(call, &findings, deadline)? {
                        return Ok(Turn::Done);
                    }
                }
            }
        }
        if self.was_cut {
            let note = "Your last answer was cut off for its length. Do it in smaller pieces.";
            self.conversation.push(Entry::Note(note.to_owned()));
        }
        Ok(Turn::Goes)
    }

    /// What a model wants done.
    fn ask(&mut self, offered: &[Definition], deadline: &Deadline<'_>) -> Result<Vec<Call>, Failure> {
        let turn = self.report.turns + 1;
        let left = deadline.at().saturating_duration_since(Instant::now());
        let verified = &self.report.verification;
        let question = match self.phase {
            Phase::Checking { .. } => verification::question(&self.criteria),
            Phase::Working => None,
        };
        let question = question.as_deref();
        let max_turns = self.max_turns;
        let runtime = Runtime { left, turn, max_turns, todo: self.bench.todo, verified, question }.text();
        let answered = loop {
            self.window
                .fit((&self.system, &runtime, offered), &mut self.conversation)
                .map_err(|error| Failure::new(FailureCode::ConstraintViolation, error.to_string()))?;
            let request = Request {
                system: &self.system,
                conversation: &self.conversation,
                runtime: &runtime,
                tools: offered,
                context_tokens: self.window.tokens,
                is_said_first: false,
            };
            match self.models.ask(&request, turn, deadline) {
                // Somebody counts otherwise than we do.
                Err(NoModel::TooLong { .. }) => self.window.tokens -= self.window.tokens / 4,
                answered => break answered.map_err(|error| error.failure())?,
            }
        };
        Ok(self.heard(turn, answered))
    }

    fn heard(&mut self, turn: u32, Answered { model, reply }: Answered) -> Vec<Call> {
        let report = &mut *self.report;
        report.turns = turn;
        report.prompt_tokens = report.prompt_tokens.saturating_add(reply.prompt_tokens);
        report.completion_tokens = report.completion_tokens.saturating_add(reply.completion_tokens);
        if !report.models.contains(&model) {
            report.models.push(model.clone());
        }
        let (prompt_tokens, completion_tokens) = (reply.prompt_tokens, reply.completion_tokens);
        let event = Event::ModelAnswered { turn, model, prompt_tokens, completion_tokens };
        self.bench.surroundings.log.write(event);
        let calls = match &reply.entry {
            Entry::Said { calls, .. } => calls.clone(),
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
            Phase::Checking { .. } => "Nothing was done: look with the tools, then call `report_criteria`.",
        };
        self.conversation.push(Entry::Note(note.to_owned()));
        Ok(Turn::Goes)
    }

    fn call(
        &mut self,
        call: &Call,
        offered: &[Definition],
        deadline: &Deadline<'_>,
    ) -> Result<Outcome, Failure> {
        let begun = Instant::now();
        let outcome =
            self.bench.call(call, offered, deadline).map_err(|interrupted| interrupted.failure())?;
        self.report.tool_calls += 1;
        let status = match outcome {
            Outcome::Told { failed: true, .. } => StepStatus::Failure,
            _ => StepStatus::Success,
        };
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let tool = tools::within(call.tool.clone(), 64);
        self.bench.surroundings.log.write(Event::ToolFinished {
            turn: self.report.turns,
            tool,
            status,
            duration_ms,
        });
        Ok(outcome)
    }

    fn tell(&mut self, call: Call, text: String, failed: bool) {
        self.report.failed_tool_calls += u32::from(failed);
        let text = if failed && !text.starts_with("failed") { format!("failed: {text}") } else { text };
        self.conversation.push(Entry::Outcome { call, text });
    }

    /// It says that it is done: then the criteria are looked at.
    fn finish(&mut self, call: Call, finish: Finish, deadline: &Deadline<'_>) -> Result<Turn, Failure> {
        let Finish { summary, gave_up } = finish;
        let longest = self.bench.surroundings.admitted.job().constraints.max_output();
        if summary.len() > longest {
            self.tell(call, format!("the summary is longer than {longest} bytes"), true);
            return Ok(Turn::Goes);
        }
        if gave_up {
            let message = format!("the agent says that it can't: {summary}");
            self.report.answer = Some(summary);
            return Err(Failure::new(FailureCode::AgentGaveUp, message));
        }
        let is_left = |item: &&TodoItem| item.origin != TodoOrigin::AcceptanceCriterion;
        let open: Vec<String> =
            self.bench.todo.open().filter(is_left).map(|item| item.id.to_string()).collect();
        if !open.is_empty() {
            let text = format!(
                "items {} of the todo list are open: do them, or say with `todo_update` how they stand",
                open.join(", ")
            );
            self.tell(call, text, true);
            return Ok(Turn::Goes);
        }
        let is_missed = |item: &&TodoItem| {
            item.status == TodoStatus::Dropped
                && matches!(item.origin, TodoOrigin::Requirement | TodoOrigin::Task)
        };
        if let Some(missed) = self.bench.todo.items().iter().find(is_missed) {
            let reason = missed.reason.as_deref().unwrap_or_default();
            let message = format!("left undone: {}: {reason}", missed.title);
            self.report.answer = Some(summary);
            return Err(Failure::new(FailureCode::NotVerified, message));
        }
        match verification::question(&self.criteria) {
            Some(_) => {
                self.phase = Phase::Checking { answer: summary };
                self.tell(call, "The criteria are looked at next.".to_owned(), false);
                Ok(Turn::Goes)
            }
            None => self.conclude((call, summary), &[], deadline),
        }
    }

    /// It says what it has found of the criteria.
    fn reported(
        &mut self,
        call: Call,
        findings: &[Finding],
        deadline: &Deadline<'_>,
    ) -> Result<Turn, Failure> {
        if let Some(fault) = verification::fault(&self.criteria, findings) {
            self.tell(call, fault, true);
            return Ok(Turn::Goes);
        }
        match std::mem::replace(&mut self.phase, Phase::Working) {
            Phase::Checking { answer } => self.conclude((call, answer), findings, deadline),
            Phase::Working => {
                self.tell(call, "there is nothing to report on yet".to_owned(), true);
                Ok(Turn::Goes)
            }
        }
    }

    fn conclude(
        &mut self,
        (call, answer): (Call, String),
        findings: &[Finding],
        deadline: &Deadline<'_>,
    ) -> Result<Turn, Failure> {
        let verified = verification::conclude(&self.criteria, findings, &mut self.bench, deadline);
        self.report.verification = verified.map_err(|interrupted| interrupted.failure())?;
        let unmet: Vec<&Verified> =
            self.report.verification.iter().filter(|verified| !verified.met).collect();
        if unmet.is_empty() {
            self.report.answer = Some(answer);
            return Ok(Turn::Done);
        }
        let listed = unmet.iter().map(|verified| format!("- {}: {}", verified.criterion, verified.evidence));
        let text = format!("these criteria are not met:\n{}\nGo on.", listed.collect::<Vec<_>>().join("\n"));
        self.phase = Phase::Working;
        self.tell(call, text, true);
        Ok(Turn::Goes)
    }

    fn out_of_turns(&self) -> Failure {
        let turns = self.max_turns;
        let was_checking = matches!(self.phase, Phase::Checking { .. });
        match (was_checking, self.report.verification.iter().find(|verified| !verified.met)) {
            (_, Some(unmet)) => not_met(unmet),
            (true, None) => Failure::new(
                FailureCode::NotVerified,
                format!("the criteria were not all looked at within {turns} turns"),
            ),
            (false, None) => {
                Failure::new(FailureCode::TurnsExhausted, format!("not done after {turns} turns"))
            }
        }
    }
}
