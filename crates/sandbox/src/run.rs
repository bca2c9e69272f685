//! Run of a job in a sandbox, from the job's document to its result.
//!
//! ```text
//! admit ─► folder ─► sandbox ─► supervise ─► collect ─► result
//!   │                              │
//!   └─ refused: a result, no       └─ out of time: everything in the sandbox is killed
//!      sandbox
//! ```
//! There is a result whatever happens. The runner's result counts only if the runner itself ended as that result claims; a
//! step that kills the runner and forges its result gains nothing.

mod allowed_programs;
mod collect;
pub mod command;
mod context;
mod deadline;
mod logged_steps;
mod run_start;
mod runner_log;

pub use deadline::Deadline;

use crate::artifact::ArtifactError;
use crate::backend::with_causes;
use crate::enclosure::{EnclosureError, EnclosureMaker, EnclosureSite};
use crate::hatch::{self, Hatch};
use crate::kept::{CopyRecord, RunKind, RunLabel};
use crate::native::HostUser;
use crate::provision::Provision;
use crate::resumption::{AbandonedFolder, Resumption};
use crate::spec::{Lent, Program, SandboxSpec, Workspace};
use crate::state::{JOB, RunFolder, StateDirectory, StateError};
use crate::streams::PipeEnds;
use crate::supervise;
use crate::workspace::changes::ChangeSet;
use crate::workspace::snapshot::SnapshotLimits;
use belljar_confine::plan::Identity;
use belljar_confine::stage::Timings;
use belljar_contract::event::LogLine;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::job::Job;
use belljar_contract::path::WORKSPACE;
use belljar_contract::programs::ProgramList;
use belljar_contract::result::{Failure, JobResult, StepError, StepResult, StepStatus};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::{HostPath, HostPathError};
use belljar_policy::admission::{AdmittedJob, RefusedJob, admit};
use jiff::Timestamp;
use runner_log::{RunnerLogReader, RunnerOutput};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

/// A job to carry out.
#[derive(Debug)]
pub struct JobRequest {
    /// The document that the job was read from; the runner gets it as it is.
    pub document: Vec<u8>,
    /// The job.
    pub job: Job,
    /// Files for its agent, by their paths below `/job/context`.
    pub context: BTreeMap<String, String>,
    /// Its workspace.
    pub workspace: WorkspaceChoice,
    /// Provision of its sandbox. The watcher of the run gets the sockets of its hatches.
    pub provision: Provision,
    /// Further time limit, besides the job's own.
    pub timeout: Option<Duration>,
    /// The program that is the runner inside.
    pub runner: HostPath,
    /// The attempt that it is, if what it leaves goes to the next one should this host die. Its workspace is empty at first, and lies on
    /// the disk. In containers nothing goes to the next attempt.
    pub resumption: Option<Resumption>,
}

/// Workspace of a job.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub enum WorkspaceChoice {
    /// An empty directory that is removed with the run.
    #[default]
    Empty,
    /// A directory, changed in place.
    Direct(HostPath),
    /// A copy of a directory, which itself is never changed.
    Copy(HostPath),
    /// A directory, which can be looked at and not changed.
    Seen(HostPath),
}

/// A job that is over.
#[derive(Debug)]
pub struct FinishedJob {
    /// Result of the job.
    pub result: JobResult,
    /// Changes made in a copy, with the folder that they lie in.
    pub changes: Option<PendingChanges>,
    /// The run's folder, if a sandbox was built.
    pub folder: Option<RunFolder>,
    /// Duration of each stage of the launch.
    pub timings: Timings,
}

/// A change set, ready to be applied.
#[derive(Debug)]
pub struct PendingChanges {
    /// The changes.
    pub set: ChangeSet,
    /// The directory that was copied.
    pub source: Directory,
    /// The layer that holds the changes.
    pub upper: Directory,
    /// Time at which the copy was made.
    pub since: SystemTime,
}

/// A run whose sandbox stands.
#[derive(Debug)]
pub struct StartedRun {
    /// Which.
    pub run: RunId,
    /// The listening sockets of its hatches.
    pub hatches: Vec<(Hatch, Vec<OwnedFd>)>,
    /// Deadline of the run.
    pub deadline: Deadline,
    /// Workspace of a job; `None` if the host can't reach it.
    pub workspace: Option<RunWorkspace>,
}

/// Workspace of a run while its programs run, for the host. Programs in the sandbox may change everything in it at any time.
#[derive(Debug)]
pub struct RunWorkspace {
    /// Its root.
    pub root: Directory,
    /// Owner of files there.
    pub owner: Identity,
}

/// Receiver of a job's progress.
pub trait JobWatch {
    /// The sandbox stands, and the runner has been started.
    fn begun(&mut self, _begun: StartedRun) {}
    /// The runner's status file exists: the runner has found its job valid. The file comes from inside.
    fn started(&mut self) {}
    /// Returns the job's result if one came by the hatches: it counts where there is no file.
    fn reported(&mut self) -> Option<JobResult> {
        None
    }
    /// The runner has logged something. It comes from inside: its texts are not to be trusted.
    fn heard(&mut self, line: &LogLine);
    /// Some time has passed; called several times a second.
    fn tick(&mut self);
    /// Returns the grace period before the job is killed, if it is to stop.
    fn is_to_stop(&self) -> Option<Duration>;
}

/// Why a job could not be carried out. No step of it ran.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run's folder can't be made.
    #[error("can't prepare the run")]
    State(#[from] StateError),
    /// The job's document can't be put in place.
    #[error("can't write the job into the run's folder")]
    WriteJob {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The record that is needed to keep the changes can't be written.
    #[error("cannot write the record of the run's workspace copy")]
    Record {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The sandbox can't be built, or not be watched.
    #[error(transparent)]
    Sandbox(#[from] EnclosureError),
    /// A container can't use this workspace: only one that is empty at first.
    #[error("a job in a container cannot use a host workspace; use an empty workspace")]
    Workspace,
    /// Something of the host can't be found.
    #[error(transparent)]
    HostPath(#[from] HostPathError),
    /// Something of the run can't be read.
    #[error("cannot read the run's output")]
    Read(#[from] DirectoryError),
    /// Artifacts can't be kept.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The sandbox can't be watched.
    #[error("can't watch the sandbox")]
    Watch {
        /// Why.
        #[source]
        source: rustix::io::Errno,
    },
}

// === impl FinishedJob ===

impl FinishedJob {
    /// A job that was refused, before its sandbox was built or because it could not be.
    fn of_refused(result: JobResult, folder: Option<RunFolder>) -> Self {
        Self { result, changes: None, folder, timings: Timings::default() }
    }
}

/// Path of the runner inside, relative to the root.
pub const RUNNER_INSIDE: &str = "run/belljar/cynode-sba";

/// The runner keeps its own time; it is given this much more to write its result down.
const GRACE: Duration = Duration::from_secs(3);

/// Carries a job out, in a sandbox that is made at `site`. Without a launcher or an engine there, this process must have a
/// single thread.
///
/// # Errors
/// [`RunError`] when the host can't do its part; how the job itself ended is in the result.
pub fn carry_out(
    request: JobRequest,
    site: &EnclosureSite<'_>,
    watch: &mut dyn JobWatch,
) -> Result<FinishedJob, RunError> {
    let (workspace, timeout) = (request.workspace.clone(), request.timeout);
    let admitted = match admit(request.job.clone(), WORKSPACE) {
        Ok(admitted) => admitted,
        Err(refused) => return Ok(FinishedJob::of_refused(refusal(&request.job, &refused), None)),
    };
    let job = admitted.job();
    let programs = match allowed_programs::of_job(request.provision.programs.clone(), job) {
        Ok(programs) => programs,
        Err(error) => return Ok(FinishedJob::of_refused(not_held(job, &error), None)),
    };
    let since = SystemTime::now();
    let RunContext { folder, user, own_workspace } = RunContext::begin(site, request.resumption.clone())?;
    context::write(&folder, site.maker.owner(user), &request.context)?;
    let written = std::fs::write(folder.private().join(JOB).join("job.json"), &request.document);
    written.map_err(|source| RunError::WriteJob { source })?;
    belljar_failpoint::reached("run.job_written");
    let (spec, base) = specify(request, programs, (&folder, user), own_workspace)?;
    let program = Program {
        argv: [format!("/{RUNNER_INSIDE}").into(), "--progress".into()].into(),
        directory: WORKSPACE.to_owned(),
    };
    let job_folder = collect::job_folder(&folder)?;
    record(job, &folder, (&workspace, &spec.workspace), base.as_ref())?;
    let copy = collect::HeldCopy::open(&spec.workspace, since)?;
    let (stdio, mut streams) = PipeEnds::make().map_err(|source| RunError::Watch { source })?;
    let mut enclosure = match run_start::begin(site, (&folder, &spec), &program, stdio) {
        Err(error)
            if job.constraints.allowed_commands.is_some() && allowed_programs::cannot_be_held(&error) =>
        {
            return Ok(FinishedJob::of_refused(not_held(job, &error), Some(folder)));
        }
        begun => begun?,
    };
    belljar_failpoint::reached("run.launched");
    let limit =
        timeout.map_or(job.constraints.max_runtime(), |timeout| timeout.min(job.constraints.max_runtime()));
    let deadline = Deadline::after(limit);
    let hatches = hatch::by_hatch(&spec.provision.hatches, enclosure.take_hatches());
    // Only in a workspace that began empty all files are the sandbox's own.
    let began_empty = matches!(workspace, WorkspaceChoice::Empty);
    let open_workspace = began_empty.then(|| enclosure.open_workspace(site.maker.owner(user))).flatten();
    watch.begun(StartedRun {
        run: folder.id().clone(),
        hatches,
        deadline: deadline.clone(),
        workspace: open_workspace,
    });
    let mut hearing = RunnerLogReader::new(watch, job_folder);
    let until = || deadline.at() + GRACE;
    let ended = supervise::until_end(&mut enclosure, &mut streams, &until, &mut hearing)?;
    belljar_failpoint::reached("run.ended");
    // From here on there is a result, whatever can't be collected.
    let exceeded = enclosure.ended_by(ended.ending.outcome);
    let (isolation, timings, workspace) =
        (enclosure.isolation().clone(), enclosure.timings(), enclosure.take_workspace());
    let is_gone = enclosure.end();
    let RunnerOutput { errors, reported, steps } = hearing.finish();
    let mut result = collect::result(&folder, &admitted, (&ended, &errors), reported);
    if let Some(limit) = exceeded {
        collect::exceeded(&mut result, limit, &spec.provision.limits);
    }
    steps.complete(&mut result, job, collect::job_folder(&folder).ok().as_ref());
    collect_artifacts(&mut result, site.state, &folder, &admitted, workspace);
    if let Err(error) = is_gone {
        collect::fail(&mut result, FailureCode::NodeFailure, &error);
    }
    result.isolation = Some(isolation);
    // The runner's value is ignored: the host that serves the web hatch knows it.
    result.web = None;
    // Where the job is from its host knows, too.
    result.skill_id.clone_from(&job.skill_id);
    result.persona_id.clone_from(&job.persona_id);
    let changes = copy.and_then(|copy| copy.changes(&mut result));
    Ok(FinishedJob { result, changes, folder: Some(folder), timings })
}

/// The sandbox of a job, and the snapshot that its copy of a workspace lies on, if it does.
fn specify(
    request: JobRequest,
    programs: Option<ProgramList>,
    (folder, user): (&RunFolder, HostUser),
    own_workspace: Option<HostPath>,
) -> Result<(SandboxSpec, Option<HostPath>), RunError> {
    let JobRequest { job, workspace, provision, runner, .. } = request;
    let (made, base) =
        Workspace::of_run_on_snapshot((&workspace, SnapshotLimits::FOR_LONG_RUN), Some(folder), user)?;
    let env = with_identity(provision.env, (&job.job_id, &job.task_id), &provision.hatches);
    let env = with_tools(env, &provision.hatches);
    let has_own_workspace = own_workspace.is_some();
    let mut spec = SandboxSpec {
        workspace: own_workspace.map_or(made, Workspace::Direct),
        has_own_workspace,
        job: Some(HostPath::resolve(folder.private().join(JOB))?),
        is_runner: true,
        provision: Provision { env, programs, ..provision },
        ..SandboxSpec::new(folder.id().clone(), user)
    };
    spec.provision.lent.push(Lent { path: runner, inside: RUNNER_INSIDE.to_owned() });
    Ok((spec, base))
}

/// The folder of a run, and the user of its sandbox.
struct RunContext {
    folder: RunFolder,
    user: HostUser,
    /// The workspace that goes to the next attempt should this host die.
    own_workspace: Option<HostPath>,
}

impl RunContext {
    fn begin(site: &EnclosureSite<'_>, resumption: Option<Resumption>) -> Result<Self, StateError> {
        let resumption = resumption.filter(|_| !matches!(site.maker, EnclosureMaker::Docker(_)));
        let left = resumption.as_ref().and_then(|resumption| resumption.left(site.state));
        let user = left.as_ref().map_or_else(HostUser::choose, AbandonedFolder::user);
        let folder = site.state.begin_run(site.maker.owner(user))?;
        let prepare =
            |resumption: Resumption| resumption.prepare(site.state, (&folder, user.identity()), left);
        let own_workspace = resumption.map(prepare).transpose()?;
        Ok(Self { folder, user, own_workspace })
    }
}

/// Writes the record that is needed to keep the changes to a copy, whatever ends the run.
fn record(
    job: &Job,
    folder: &RunFolder,
    (choice, made): (&WorkspaceChoice, &Workspace),
    base: Option<&HostPath>,
) -> Result<(), RunError> {
    let (WorkspaceChoice::Copy(source), Workspace::Copy { upper, .. }) = (choice, made) else {
        return Ok(());
    };
    let label = RunLabel { kind: RunKind::Run, name: None, title: format!("job {}", job.job_id) };
    let record = CopyRecord::begin(label, folder.path(), (source, upper.as_path()));
    let written = record.on_base(folder.path(), base).write(folder.path());
    written.map_err(|source| RunError::Record { source })
}

/// Sets the variables that tell every program of the job its identity; requested variables don't override them.
fn with_identity(
    mut env: BTreeMap<String, String>,
    (job_id, task_id): (&JobId, &TaskId),
    hatches: &[Hatch],
) -> BTreeMap<String, String> {
    if hatches.contains(&Hatch::Status) {
        env.insert("SBA_JOB_STATUS_URL".to_owned(), hatch::status_url(job_id));
    }
    env.insert("CYNODE_JOB_ID".to_owned(), job_id.to_string());
    env.insert("CYNODE_TASK_ID".to_owned(), task_id.to_string());
    env.insert("CYNODE_WORKSPACE_DIR".to_owned(), WORKSPACE.to_owned());
    env.insert("CYNODE_ARTIFACTS_DIR".to_owned(), crate::artifact::ARTIFACTS.to_owned());
    env
}

/// Sets the variable with the URL of tools for the runner. A job that is a command has none.
fn with_tools(mut env: BTreeMap<String, String>, hatches: &[Hatch]) -> BTreeMap<String, String> {
    if hatches.contains(&Hatch::Status) {
        env.insert("MCP_GATEWAY_URL".to_owned(), hatch::tools_url());
    }
    env
}

fn collect_artifacts(
    result: &mut JobResult,
    state: &StateDirectory,
    folder: &RunFolder,
    admitted: &AdmittedJob,
    workspace: Option<OwnedFd>,
) {
    // The runner's list of artifacts comes from inside. The result lists only what was stored.
    result.artifacts.clear();
    let workspace = workspace.map(Directory::from);
    let named = workspace.as_ref().map(|workspace| (workspace, admitted));
    match collect::artifacts(state, folder, named) {
        Ok((kept, failed)) => {
            result.artifacts = kept;
            if let Some(error) = failed {
                collect::fail(result, collect::code_of(&error), &error);
            }
        }
        Err(error) => collect::fail(result, FailureCode::InternalError, &error),
    }
}

/// The result of a job whose restrictions can't be held here.
fn not_held(job: &Job, why: &dyn std::error::Error) -> JobResult {
    let failure = Failure::new(FailureCode::PolicyViolation, with_causes(why));
    let now = Timestamp::now();
    JobResult::begun(job, now).failed(failure, now)
}

/// The result of a job that may not start.
pub fn refusal(job: &Job, refused: &RefusedJob) -> JobResult {
    let now = Timestamp::now();
    let mut result = JobResult::begun(job, now);
    for (index, denied) in &refused.steps {
        let Some(step) = job.steps.get(*index) else { continue };
        result.steps.push(StepResult {
            index: *index,
            id: step.name(*index),
            step_type: step.action.step_type(),
            status: StepStatus::Failure,
            started_at: None,
            finished_at: None,
            duration_ms: 0,
            result: None,
            error: Some(StepError { code: FailureCode::PolicyViolation, message: denied.to_string() }),
        });
    }
    result.failed(Failure::new(FailureCode::PolicyViolation, refused.to_string()), now)
}
