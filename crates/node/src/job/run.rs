//! A single run of a job, on a thread of its own, from the start to the end of its sandbox.

use super::NodeState;
use super::attempt::{StopReason, StopRequest};
use super::outcome::{self, RunOutcome};
use super::recorder::RunEvent;
use super::run_watcher::{HatchTotals, RunHatches, RunIdentity, RunWatcher};
use crate::access_rules::{AccessRequest, PermissionExceeded, SandboxPermissions};
use crate::images::{Image, ImageError, OF_JOB};
use crate::models::{CallOwner, ModelsError, NodeModels};
use crate::tools::RunOwnership;
use crate::traces::{AttemptRun, TracedStep};
use crate::web::RunPolicy;
use belljar_confine::stage::Timings;
use belljar_contract::id::{AgentId, JobId, TaskId};
use belljar_contract::isolation::RequiredLayers;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::LARGEST_STREAM_BYTES;
use belljar_egress::identity::RunOwner;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::serving::ServeError;
use belljar_policy::lifecycle::JobLifecycle;
use belljar_sandbox::backend::BackendError;
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::docker::DockerBackend;
use belljar_sandbox::enclosure::{EnclosureMaker, EnclosureSite};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::resumption::Resumption;
use belljar_sandbox::run::command::{CommandRequest, carry_out_command};
use belljar_sandbox::run::{self, JobRequest, RunError, WorkspaceChoice};
use belljar_sandbox::state::RunFolder;
use belljar_store::jobs::{ClaimedJob, JobRecord};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A run that is over.
pub(super) struct FinishedRun {
    pub(super) came: RunOutcome,
    pub(super) folder: Option<RunFolder>,
    pub(super) has_begun: bool,
    /// Its timeline, if it had a sandbox.
    pub(super) ran: Option<AttemptRun>,
}

/// Resources and limits of a run.
struct RunProvision {
    models: Option<InferenceConfig>,
    /// Web access, if the run has it.
    way: Option<RunPolicy>,
    /// Terms of its agent; `None` without access rules.
    terms: Option<SandboxPermissions>,
    image: Image,
    /// `None` for the node's own programs.
    docker: Option<DockerBackend>,
    limits: Limits,
    required: RequiredLayers,
}

/// Reasons why the resources can't be provided.
#[derive(Debug, thiserror::Error)]
enum ProvisionError {
    #[error(transparent)]
    TooMuch(#[from] PermissionExceeded),
    #[error(transparent)]
    NoModels(#[from] ModelsError),
    #[error(transparent)]
    NoImage(#[from] ImageError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Runs a claimed job.
pub(super) fn run(
    workplace: &Arc<NodeState>,
    claimed: ClaimedJob,
    heard: mpsc::UnboundedSender<RunEvent>,
    stop: &StopRequest,
) -> FinishedRun {
    if stop.why().is_some() {
        return FinishedRun { came: RunOutcome::of_stop(), folder: None, has_begun: false, ran: None };
    }
    let with = match RunProvision::what_is_asked_for(workplace, &claimed.assignment) {
        Ok(with) => with,
        // The access rules or the agent's trust may have changed since the job was accepted.
        Err(ProvisionError::TooMuch(error)) => {
            return FinishedRun {
                came: RunOutcome::of_policy(&error),
                folder: None,
                has_begun: false,
                ran: None,
            };
        }
        // Another node may have accepted the job, with other resources.
        Err(error) => return FinishedRun::of_fault(&error, false),
    };
    let assignment = &claimed.assignment;
    let is_command = assignment.sandbox.job_spec.is_none();
    let program = assignment.sandbox.command.first().cloned().filter(|_| is_command);
    let whose = RunIdentity {
        task_id: assignment.task_id.clone(),
        job_id: assignment.job_id.clone(),
        attempt: claimed.job.life.attempt,
        image: with.image.clone(),
        is_command,
        given: RunOwnership {
            project_id: assignment.project_id.clone(),
            user_id: assignment.user_id.clone(),
            group_ids: assignment.group_ids.clone(),
            agent_id: assignment.agent_id.clone(),
            may_reach_out: with.way.is_some(),
        },
        owner: CallOwner {
            user_id: assignment.user_id.clone(),
            trace_id: assignment.traceparent.as_ref().map(|parent| parent.trace_id().to_owned()),
        },
        terms: with.terms.clone(),
    };
    let hatches = RunHatches { models: with.models.clone(), way: with.way.clone() };
    let mut hearing = RunWatcher::new(workplace, whose, hatches, heard, stop.clone());
    let done = carry_out(workplace, claimed, with, &mut hearing);
    let (came, folder, timings) = done.unwrap_or_else(|error| {
        (RunOutcome::of_run_error(&error, program.as_deref()), None, Timings::default())
    });
    hearing.exit_code = came.outcome.exit_code;
    let steps =
        came.outcome.sba_result.as_ref().map_or_else(Vec::new, |result| TracedStep::all(&result.steps));
    // The sandbox is gone, so no call is made any more.
    let HatchTotals { models, web, ran } = hearing.end(timings, steps);
    let came = came.with_web(web).with_models(models);
    let is_demoted = stop.why() == Some(StopReason::Demoted) && came.was_stopped();
    FinishedRun { came: if is_demoted { came.demoted() } else { came }, folder, has_begun: true, ran }
}

/// Outcome, folder, and duration of each launch stage.
type RunResult = (RunOutcome, Option<RunFolder>, Timings);

fn carry_out(
    workplace: &NodeState,
    claimed: ClaimedJob,
    with: RunProvision,
    hearing: &mut RunWatcher,
) -> Result<RunResult, RunError> {
    let settings = &workplace.settings;
    let ClaimedJob { job: JobRecord { life: JobLifecycle { attempt, max_attempts, .. }, .. }, assignment } =
        claimed;
    let Assignment { job_id, task_id, agent_id, mut sandbox, .. } = assignment;
    let mut home = BTreeMap::new();
    let RunProvision { models, way, terms, image: _, docker, limits, required } = with;
    let programs = terms.as_ref().and_then(SandboxPermissions::programs).cloned();
    let ways_out = models.iter().map(|_| Hatch::Inference).chain(way.iter().map(|_| Hatch::Web));
    let hatches = ways_out.chain([Hatch::Status]).collect();
    sandbox.env.extend(correlated(&job_id, &task_id, agent_id.as_ref()));
    way.iter().for_each(|way| way.furnish(&mut sandbox.env, &mut home));
    let timeout = settings.timeouts.allow(sandbox.timeout());
    let maker = docker.as_ref().map_or(EnclosureMaker::Launcher(&workplace.launcher), EnclosureMaker::Docker);
    let site = EnclosureSite { state: &settings.state, maker };
    let env = sandbox.env;
    let provision = Provision { lent: Vec::new(), env, home, programs, limits, required, hatches };
    if let Some(spec) = sandbox.job_spec {
        let request = JobRequest {
            document: spec.document().into_bytes(),
            job: spec.job,
            context: sandbox.context_files.into_map(),
            workspace: WorkspaceChoice::Empty,
            provision,
            timeout: Some(timeout),
            runner: settings.runner.clone(),
            resumption: (max_attempts > 1).then_some(Resumption { job_id, attempt }),
        };
        let finished = run::carry_out(request, &site, hearing)?;
        return Ok((outcome::of_job(finished.result), finished.folder, finished.timings));
    }
    let request = CommandRequest {
        job_id,
        task_id,
        argv: sandbox.command,
        provision,
        timeout,
        max_output_bytes: LARGEST_STREAM_BYTES,
    };
    let mut finished = carry_out_command(request, &site, hearing)?;
    let came = outcome::of_command(&mut finished);
    Ok((came, Some(finished.folder), finished.timings))
}

/// Returns the correlation variables, by which programs inside identify their job (`docs/contracts/tools.md#t6.2`).
fn correlated(job: &JobId, task: &TaskId, agent: Option<&AgentId>) -> BTreeMap<String, String> {
    let id = |text: &str| CorrelationId::parse(text).ok();
    let correlation = Correlation {
        agent_id: agent.and_then(|agent| id(agent.as_str())),
        session_id: None,
        task_id: id(task.as_str()),
        request_id: id(job.as_str()),
    };
    correlation.env()
}

// === impl FinishedRun ===

impl FinishedRun {
    /// Returns a run that failed because of the node.
    pub(super) fn of_fault(error: &dyn Error, has_begun: bool) -> Self {
        Self { came: RunOutcome::of_fault(error), folder: None, has_begun, ran: None }
    }
}

// === impl RunProvision ===

impl RunProvision {
    fn what_is_asked_for(workplace: &NodeState, assignment: &Assignment) -> Result<Self, ProvisionError> {
        let sandbox = &assignment.sandbox;
        let models = workplace.models.allowed(sandbox)?;
        NodeModels::check_credentials(models.as_ref())?;
        let image = workplace.images.choose(sandbox.image.as_deref(), OF_JOB)?;
        let house = workplace.tools.house();
        let terms = house
            .map(|house| house.terms(assignment.agent_id.as_ref(), &AccessRequest::of_job(sandbox, &image)));
        let terms = terms.transpose()?;
        let way =
            sandbox.wants_web().then(|| workplace.web.way(terms.as_ref().map(SandboxPermissions::compiled)));
        let owner =
            RunOwner { task_id: Some(assignment.task_id.clone()), job_id: Some(assignment.job_id.clone()) };
        let way = way.transpose()?.map(|way| way.owned_by(owner));
        let (docker, (limits, required)) = match &image {
            Image::Native => (None, (workplace.settings.limits, workplace.settings.required.clone())),
            Image::Of(allowed) => (Some(workplace.images.backend_of(allowed)?), workplace.images.bounds()),
        };
        Ok(Self { models, way, terms, image, docker, limits, required })
    }
}
