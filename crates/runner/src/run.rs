//! Course of a job: read, admitted, carried out step by step, and answered with a result.
//!
//! The result is built up during the work, and is a failure until the work succeeds. So there is always a complete
//! result to write, even after a panic.

mod outlet;
mod record;
mod resuming;
mod steps_file;

use crate::agent::WorkRecord;
use crate::artifacts::{self, CollectedArtifacts};
use crate::atomic_file;
use crate::deadline::{Deadline, JobTime};
use crate::directory::{Directory, Symlinks};
use crate::failure_code::Fault;
use crate::invocation::{Options, Transport};
use crate::job_document::{self, ReadJobError};
use crate::log::Log;
use crate::status::StatusLine;
use crate::step::StepContext;
use crate::{agent, cancellation::Cancellation, own_process, process};
use belljar_contract::event::Event;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::job::step::StepType;
use belljar_contract::path::WORKSPACE;
use belljar_contract::result::agent::AgentReport;
use belljar_contract::result::{Failure, JobResult};
use belljar_contract::text::with_causes;
use belljar_policy::admission::{AdmittedJob, admit};
use jiff::Timestamp;
use outlet::Outlet;
use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use steps_file::StepsFile;

/// Runs the job that the options name, writes its result, and returns the matching exit code.
pub(crate) fn run(options: &Options) -> ExitCode {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let log = match options.transport {
        Transport::Files { .. } => Log::to(stdout.as_fd()),
        Transport::Stdio => Log::to(stderr.as_fd()),
    };
    let status = StatusLine::of_environment(&options.transport);
    let started = Instant::now();
    let unfinished = Failure::new(FailureCode::InternalError, "the run did not complete");
    let mut result = JobResult::of_failure((None, None), unfinished, Timestamp::now());
    let outlet = match Outlet::open(&options.transport) {
        Ok(outlet) => outlet,
        Err(error) => {
            let failed =
                result.failed(unwritable(&options.transport, &with_causes(&error)), Timestamp::now());
            // The host gets the result if it listens, and so do readers of the log.
            status.finish(&failed, false, &log);
            log.write_result(&failed);
            return ExitCode::FAILURE;
        }
    };
    let mut steps_file = StepsFile::default();
    let work = || work(options, (&log, &status), (&mut result, &mut steps_file));
    if let Err(failure) = guarded(&log, work) {
        result = result.failed(failure, Timestamp::now());
    }
    result.finished_at = Timestamp::now();
    let code = outlet.deliver(&mut result, &status, &log);
    steps_file.forget();
    log.write(Event::JobFinished {
        status: result.status,
        failure_code: result.failure_code,
        duration_ms: record::millis(started.elapsed()),
        resource_usage: result.resource_usage,
    });
    // The process ends: the kernel frees a large result at once, while dropping it takes milliseconds.
    std::mem::forget(result);
    code
}

/// Message for a job that root would run (`docs/contracts/job.md#j1.6`).
const AS_ROOT: &str = "cynode-sba does not run jobs as root: start the container as another user (`--user 1000:1000`, or USER in the \
     image) that can write /workspace and /job; --allow-root is for tests only";

/// Receivers of a job's progress: the log and the host.
type ProgressReporters<'t> = (&'t Log<'t>, &'t StatusLine);

/// Records of a run: its result, and until that exists its progress.
type RunRecords<'o> = (&'o mut JobResult, &'o mut StepsFile);

/// Does the work; a panic in it becomes a failure, and leaves no process behind.
fn guarded(log: &Log<'_>, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_panic| {
        if let Err(survivors) = process::end_all() {
            log.warn(survivors.to_string());
        }
        Err(incident(log, &own_process::take_last_panic().unwrap_or_else(|| "a panic".to_owned())))
    })
}

/// Failure of a job whose environment has no directory for the result.
fn unwritable(transport: &Transport, details: &str) -> Failure {
    let uid = rustix::process::geteuid().as_raw();
    let directory = match transport {
        Transport::Files { result, .. } => result.parent().unwrap_or(Path::new(".")).display().to_string(),
        Transport::Stdio => "standard output".to_owned(),
    };
    let message = format!(
        "cannot write the result, so the job was not started: {details}; {directory} must be a directory that uid {uid} can write to, \
         for example after `chown {uid} {directory}`"
    );
    Failure::new(FailureCode::NodeFailure, message)
}

/// Failure of a job whose environment has no workspace.
fn without_workspace(workspace: &Path, details: &str) -> Failure {
    let shown = workspace.display();
    let message = format!(
        "there is no workspace, so the job was not started: {details}; mount a directory at {shown}, or set another with --workspace"
    );
    Failure::new(FailureCode::NodeFailure, message)
}

/// Failure due to a fault of this program: the log has the details, the result an id to find them by.
fn incident(log: &Log<'_>, details: &str) -> Failure {
    let id = uuid::Uuid::new_v4();
    log.warn(format!("incident {id}: {details}"));
    Failure::new(FailureCode::InternalError, format!("internal error, incident {id}: {details}"))
}

fn work(
    options: &Options,
    (log, status): ProgressReporters<'_>,
    (result, steps_file): RunRecords<'_>,
) -> Result<(), Failure> {
    let cancellation = own_process::prepare(log)
        .map_err(|error| incident(log, &format!("cannot handle signals: {error}")))?;
    let document = job_document::read(&options.transport, &cancellation).map_err(|error| match error {
        ReadJobError::Interrupted(interrupted) => interrupted.failure(),
        error => incident(log, &with_causes(&error)),
    })?;
    let job = match Job::parse(&document) {
        Ok(job) => job,
        Err(invalid) => {
            *result = JobResult::of_invalid_job(invalid, result.started_at);
            return Ok(());
        }
    };
    log.name_job(job.job_id.as_str());
    status.name_job(job.job_id.as_str());
    *result = JobResult::begun(&job, result.started_at);
    if rustix::process::geteuid().is_root() && !options.allow_root {
        return Err(Failure::new(FailureCode::PolicyViolation, AS_ROOT));
    }
    let outline: Vec<(String, StepType)> =
        job.steps.iter().enumerate().map(|(at, step)| (step.name(at), step.action.step_type())).collect();
    let admitted = admit(job, options.workspace.to_str().unwrap_or(WORKSPACE)).map_err(|refused| {
        result.steps = record::refused_steps(&refused, &outline);
        Failure::new(FailureCode::PolicyViolation, refused.to_string())
    })?;
    resuming::take_up(&admitted, (&options.transport, &document), log, (result, steps_file));
    drop(document);
    carry_out(&admitted, options, (log, status), &cancellation, (result, steps_file))
}

/// Carries out an admitted job: its steps, then its agent, then the collection of artifacts.
fn carry_out(
    admitted: &AdmittedJob,
    options: &Options,
    (log, status): ProgressReporters<'_>,
    cancellation: &Cancellation,
    (result, steps_file): RunRecords<'_>,
) -> Result<(), Failure> {
    let constraints = &admitted.job().constraints;
    let absolute = |path| std::path::absolute(path).map_err(|error| incident(log, &error.to_string()));
    let (workspace_path, artifacts_path) = (absolute(&options.workspace)?, absolute(&options.artifacts)?);
    // With restricted paths, a link in an allowed place could stand for a file that isn't allowed.
    let symlinks = match constraints.allowed_paths {
        Some(_) => Symlinks::Refused,
        None => Symlinks::Beneath,
    };
    let workspace = Directory::open(&workspace_path)
        .map_err(|error| without_workspace(&workspace_path, &with_causes(&error)))?;
    let surroundings = StepContext {
        admitted,
        workspace: workspace.with_symlinks(symlinks),
        workspace_path: &workspace_path,
        artifacts_path: &artifacts_path,
        log,
        status,
        progress: options.progress,
        weak_fence_is_told: Cell::new(false),
    };
    // The folder is created for the steps' convenience; they can create it themselves.
    let _ = std::fs::create_dir_all(&artifacts_path);
    let job_file = match &options.transport {
        Transport::Files { job, .. } => Some(job.as_path()),
        Transport::Stdio => None,
    };
    let by_host = status.begin(log);
    let remaining = || status.remaining();
    let time = JobTime::start(constraints.max_runtime(), by_host, &remaining);
    let deadline = Deadline::of_job(&time, cancellation);
    log.write(Event::JobStarted { steps: admitted.job().steps.len() });
    // Read before any program runs that could change these files.
    let brief = agent::Brief::of(admitted.job(), job_file.and_then(Path::parent), log)?;
    let outcome = carry_out_steps(&surroundings, &deadline, (result, steps_file)).and_then(|()| {
        brief.map_or(Ok(()), |brief| have_the_agent_work(&surroundings, brief, &deadline, result))
    });
    let collected = collect(&surroundings, deadline.of_collecting(artifacts::TIME_LIMIT), result);
    if let (Err(_), Err(failure)) = (&outcome, &collected) {
        log.warn(format!("some artifacts are not kept: {}", failure.message));
    }
    outcome.and(collected)
}

/// Carries out the steps in order, after the reused ones, up to the first that fails.
fn carry_out_steps(
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
    (result, steps_file): RunRecords<'_>,
) -> Result<(), Failure> {
    let steps = surroundings.admitted.job().steps.iter().enumerate();
    for (index, step) in steps.skip(result.steps.len()) {
        steps_file.began(index, surroundings.log);
        let ended = record::carry_out(step, index, surroundings, deadline);
        steps_file.ended(&ended.entry, ended.usage, surroundings.log);
        record::add_usage(&mut result.resource_usage, ended.usage);
        result.steps.push(ended.entry);
        if let Some(failure) = ended.failure {
            return Err(failure);
        }
    }
    Ok(())
}

/// Lets a model work on the job's aims, and verifies its work in the end.
fn have_the_agent_work(
    surroundings: &StepContext<'_>,
    brief: agent::Brief,
    deadline: &Deadline<'_>,
    result: &mut JobResult,
) -> Result<(), Failure> {
    let steps: Vec<String> =
        result.steps.iter().map(|step| format!("{}: {}", step.id, step.step_type)).collect();
    let report = result.agent.insert(AgentReport::default());
    let record = WorkRecord { report, usage: &mut result.resource_usage };
    agent::work(surroundings, brief, &steps, deadline, record)
}

/// Finds and hashes the artifacts, of a failed job too.
fn collect(
    surroundings: &StepContext<'_>,
    deadline: Deadline<'_>,
    result: &mut JobResult,
) -> Result<(), Failure> {
    // A step may have taken the owner's permissions away; the folders beside the job are the runner's to read.
    for place in surroundings.artifacts_path.parent().into_iter().chain([surroundings.artifacts_path]) {
        let _ = atomic_file::open_directory(place);
    }
    let mut collected = CollectedArtifacts::default();
    let folder = collected.add_folder(surroundings.artifacts_path, &deadline);
    let named = collected.add_named(surroundings.admitted.artifacts(), &surroundings.workspace, &deadline);
    if collected.left_out > 0 {
        let left_out = collected.left_out;
        surroundings
            .log
            .warn(format!("{left_out} links or special files in the artifacts folder are not kept"));
    }
    result.artifacts = collected.artifacts;
    folder.and(named).map_err(|error| error.failure())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_a_failure_with_an_incident_id_from_the_log() {
        let (reader, writer) = io::pipe().unwrap();
        let log = Log::to(writer.as_fd());
        let failure = guarded(&log, || panic!("a bug")).unwrap_err();
        drop(writer);
        let line = io::read_to_string(reader).unwrap();
        assert_eq!(failure.code, FailureCode::InternalError);
        let incident = failure.message.split("incident ").nth(1).unwrap().get(..36).unwrap();
        assert!(line.contains(incident), "{line}");
    }
}
