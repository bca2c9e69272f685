//! One run of a job, on a thread of its own, from the first to the last of its sandbox.

use super::Workplace;
use super::attempt::Stop;
use super::hearing::{Hearing, Whose};
use super::models::JobModels;
use super::outcome::{self, Came};
use super::recorder::Heard;
use belljar_contract::worker::job::LARGEST_STREAM_BYTES;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::command::{CommandRequest, carry_out_command};
use belljar_sandbox::run::{self, Request, RunError, WorkspaceChoice};
use belljar_sandbox::state::RunFolder;
use belljar_store::jobs::Claimed;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A run that is over: what came of it, and what it has left.
pub(super) struct Run {
    pub(super) came: Came,
    pub(super) folder: Option<RunFolder>,
    pub(super) has_begun: bool,
}

/// Carries out what was claimed.
pub(super) fn run(
    workplace: &Arc<Workplace>,
    claimed: Claimed,
    heard: mpsc::UnboundedSender<Heard>,
    stop: Stop,
) -> Run {
    if stop.why().is_some() {
        return Run { came: Came::of_stop(), folder: None, has_begun: false };
    }
    let settings = &workplace.settings;
    let models = match JobModels::allowed(workplace.models.as_ref(), &claimed.assignment.sandbox) {
        Ok(models) => models,
        // Whoever accepted it has others.
        Err(error) => return Run { came: Came::of_fault(&error), folder: None, has_begun: false },
    };
    let hatches = models.iter().map(|_| Hatch::Inference).chain([Hatch::Status]).collect();
    let attempt = claimed.job.life.attempt;
    let (job_id, sandbox) = (claimed.assignment.job_id, claimed.assignment.sandbox);
    let timeout = settings.timeouts.allow(sandbox.timeout());
    let is_command = sandbox.job_spec.is_none();
    let task_id = claimed.assignment.task_id;
    let whose = Whose { task_id: task_id.clone(), job_id: job_id.clone(), attempt, is_command };
    let mut hearing = Hearing::new(workplace, whose, models, heard, stop);
    let (limits, required) = (settings.limits, settings.required.clone());
    let done = match sandbox.job_spec {
        Some(spec) => {
            let request = Request {
                document: spec.document().into_bytes(),
                job: spec.job,
                workspace: WorkspaceChoice::Empty,
                lent: Vec::new(),
                env: sandbox.env,
                limits,
                required,
                hatches,
                timeout: Some(timeout),
                runner: settings.runner.clone(),
            };
            of_job(workplace, request, &mut hearing)
        }
        None => {
            let request = CommandRequest {
                job_id,
                task_id,
                argv: sandbox.command,
                lent: Vec::new(),
                env: sandbox.env,
                limits,
                required,
                hatches,
                timeout,
                max_output_bytes: LARGEST_STREAM_BYTES,
            };
            of_command(workplace, request, &mut hearing)
        }
    };
    let run = done.unwrap_or_else(|error| Run {
        came: Came::of_run_error(&error, is_command),
        folder: None,
        has_begun: true,
    });
    hearing.exit_code = run.came.outcome.exit_code;
    // Nothing of the sandbox runs any more, and so nothing is called.
    Run { came: run.came.with_models(hearing.end()), ..run }
}

fn of_job(workplace: &Workplace, request: Request, hearing: &mut Hearing) -> Result<Run, RunError> {
    let state = &workplace.settings.state;
    let finished = run::carry_out(request, state, Some(&workplace.launcher), hearing)?;
    Ok(Run { came: outcome::of_job(finished.result), folder: finished.folder, has_begun: true })
}

fn of_command(
    workplace: &Workplace,
    request: CommandRequest,
    hearing: &mut Hearing,
) -> Result<Run, RunError> {
    let state = &workplace.settings.state;
    let mut finished = carry_out_command(request, state, &workplace.launcher, hearing)?;
    let came = outcome::of_command(&mut finished);
    Ok(Run { came, folder: Some(finished.folder), has_begun: true })
}
