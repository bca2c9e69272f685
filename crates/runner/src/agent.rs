//! The agent of a job: a model that works with tools until the job's criteria are met, and verified
//! (`docs/contracts/job.md#j1`, `docs/contracts/job.md#j3`, `docs/contracts/job.md#j9`).
//!
//! ```text
//! job ─► material ─► todo list ─┐
//!                               ▼
//!          ┌── system, conversation, runtime ─► model ─► calls ─► tools ──┐
//!          │                                                              │ outcomes, also of failed calls
//!          └──────────────────────────────────────────────────────────────┘
//!                    finish ─► criteria: checked by the model, then by their commands ─► all met: done
//!                                                                                      └► else back to work
//! ```
//!
//! Claims of a model are never trusted where they can be checked: criteria with a command are met if the command
//! succeeds.

mod agent_aim;
mod agent_end;
mod conversation;
mod disclosure;
mod material;
mod model;
mod prompt;
mod remote;
mod skills;
mod todo;
mod toolbox;
mod tools;
mod turns;
mod verification;
mod window;

pub(crate) use agent_aim::Brief;

use crate::deadline::Deadline;
use crate::failure_code::Fault;
use crate::step::StepContext;
use belljar_contract::failure::FailureCode;
use belljar_contract::result::agent::{AgentReport, CriterionVerification, Verifier};
use belljar_contract::result::{Failure, ResourceUsage};
use material::Material;
use model::Models;
use remote::Remote;
use todo::TodoList;
use tools::ToolContext;
use turns::{Agent, Phase};
use window::Window;

const MAX_TURNS: u32 = 100;
const CONTEXT_TOKENS: u32 = 32_768;

/// Record of the work, which is part of the job's result.
pub(crate) struct WorkRecord<'r> {
    pub(crate) report: &'r mut AgentReport,
    pub(crate) usage: &'r mut ResourceUsage,
}

/// Works until everything is done and verified. The report shows what was done, even if this fails.
pub(crate) fn work(
    surroundings: &StepContext<'_>,
    brief: Brief,
    steps: &[String],
    deadline: &Deadline<'_>,
    record: WorkRecord<'_>,
) -> Result<(), Failure> {
    let WorkRecord { report, usage } = record;
    let job = surroundings.admitted.job();
    let Brief { mut material, file, earlier } = brief;
    let mut todo = TodoList::of(&material, steps);
    if let Some(earlier) = earlier {
        report.resumed = true;
        todo.adopt(&earlier);
    }
    if let Err(error) = file.keep(&todo) {
        surroundings.log.warn(format!("cannot write todo.json: {error}"));
    }
    let tokens =
        job.inference.as_ref().and_then(|inference| inference.context_tokens).unwrap_or(CONTEXT_TOKENS);
    // Limits the share of the window that a single outcome may take.
    let room = (tokens as usize).min(surroundings.max_shown());
    let remote = match &job.inference {
        Some(_) => gateway(&mut material, tokens, surroundings, deadline)?,
        None => Remote::default(),
    };
    let bench = ToolContext {
        surroundings,
        todo: &mut todo,
        file: &file,
        remote,
        usage,
        index: job.steps.len(),
        room,
        network_need: None,
    };
    let outcome = match &job.inference {
        None => check(&material, bench, deadline, report),
        Some(inference) => Models::of_environment(&inference.allowed_models)
            .map_err(|error| error.failure())
            .and_then(|models| {
                let mut agent = Agent {
                    system: prompt::system(&material, &bench.remote.outline()),
                    bench,
                    models,
                    criteria: material.to_verify(),
                    conversation: Vec::new(),
                    window: Window { tokens },
                    max_turns: inference.max_turns.unwrap_or(MAX_TURNS),
                    phase: Phase::Working,
                    was_cut: false,
                    idle_turns: 0,
                    has_asked_for_time: false,
                    report,
                };
                agent.run(deadline)
            }),
    };
    report.todo = todo.items().to_vec();
    outcome
}

/// Finds the tools and skills that the host's gateway offers the agent.
fn gateway(
    material: &mut Material,
    window: u32,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<Remote, Failure> {
    let (job, log) = (surroundings.admitted.job(), surroundings.log);
    let found = Remote::find(job, window, log, deadline).and_then(|mut remote| {
        skills::fetch(material, &mut remote, log, deadline)?;
        Ok(remote)
    });
    found.map_err(|interrupted| interrupted.failure())
}

/// Runs only the commands of the criteria, for a job without models. A criterion without a command stays unverified,
/// and fails the job.
fn check(
    material: &Material,
    mut bench: ToolContext<'_>,
    deadline: &Deadline<'_>,
    report: &mut AgentReport,
) -> Result<(), Failure> {
    let verified = verification::conclude(&material.to_verify(), &[], &mut bench, deadline);
    report.verification = verified.map_err(|interrupted| interrupted.failure())?;
    let unmet = || report.verification.iter().filter(|verified| !verified.met);
    let is_refuted = |verified: &&CriterionVerification| verified.by != Verifier::Unverified;
    // A refuted criterion is reported in preference to one that could not be checked.
    match unmet().find(is_refuted).or_else(|| unmet().next()) {
        Some(unmet) => Err(not_met(unmet)),
        None => Ok(()),
    }
}

fn not_met(unmet: &CriterionVerification) -> Failure {
    let how = if unmet.by == Verifier::Unverified { "not verified" } else { "not met" };
    let message = format!("{how}: {}: {}", unmet.criterion, unmet.evidence);
    Failure::new(FailureCode::NotVerified, message)
}
