//! `belljar run`

mod watched;

use super::Subcommand;
use crate::error::CliError;
use crate::kept::{RunChangesArguments, RunChangesOutcome, RunEnd};
use crate::models::ModelArguments;
use crate::progress::Progress;
use crate::sandbox_args::SandboxArguments;
use crate::web::{self, WebArguments};
use crate::{state, summary};
use belljar_contract::job::Job;
use belljar_contract::result::{ChangesState, Failure, JobResult, JobStatus};
use belljar_execution::tls_interception::TlsInterception;
use belljar_execution::web::judge;
use belljar_files::host_path::HostPath;
use belljar_sandbox::backends::chosen::BackendChoice;
use belljar_sandbox::enclosure::{EnclosureMaker, EnclosureSite};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::{FinishedJob, JobRequest, carry_out};
use belljar_trusted::input;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use watched::JobRunObserver;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct RunArguments {
    /// The job's JSON file; `-` reads standard input
    job: PathBuf,
    #[command(flatten)]
    sandbox: SandboxArguments,
    #[command(flatten)]
    models: ModelArguments,
    #[command(flatten)]
    web: WebArguments,
    /// Print the result as JSON, alone on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    fate: RunChangesArguments,
    /// Print how long each stage of building the sandbox took
    #[arg(long)]
    timings: bool,
}

/// The largest job that is read, in bytes.
const LARGEST_JOB_BYTES: u64 = 64 << 20;

impl Subcommand for RunArguments {
    const NAME: &'static str = "run";
    const ABOUT: &'static str = "Run a job in a sandbox of its own";

    fn run(&self) -> Result<ExitCode, CliError> {
        let document = read_document(&self.job)?;
        let job = match Job::parse(&document) {
            Ok(job) => job,
            Err(invalid) => {
                let result = JobResult::of_invalid_job(invalid, jiff::Timestamp::now());
                match self.json {
                    true => summary::print_json(&result)?,
                    false => summary::print_refusal(&belljar_policy::untrusted::name(&self.job), &result),
                }
                return Ok(ExitCode::from(result.exit_code()));
            }
        };
        let ids = (Some(job.job_id.to_string()), Some(job.task_id.to_string()));
        match run_job(self, document, job) {
            Ok(code) => Ok(code),
            Err(error) if self.json => {
                // A program that reads the result gets a document for every kind of failure.
                let failure = Failure::new(error.failure_code(), error.chain());
                summary::print_json(&JobResult::of_failure(ids, failure, jiff::Timestamp::now()))?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}

fn run_job(arguments: &RunArguments, document: Vec<u8>, job: Job) -> Result<ExitCode, CliError> {
    let workspace = arguments.sandbox.workspace()?;
    let web = job.constraints.ext_net_allowed.then(|| arguments.web.policy_of_job(&workspace)).transpose()?;
    let (models, grant) = (arguments.models.chosen_of_job(&job)?, arguments.models.grant()?);
    let inspection =
        web.as_ref().map(|policy| TlsInterception::of_live(policy.live())).transpose()?.flatten();
    let mut provision = arguments.sandbox.provision(&BackendChoice::Native)?;
    let Provision { env, home, .. } = &mut provision;
    inspection.iter().for_each(|inspection| inspection.furnish(env, home));
    let hatches = [(Hatch::Web, web.is_some()), (Hatch::Inference, models.is_some())];
    provision.hatches =
        hatches.into_iter().filter_map(|(hatch, is_wanted)| is_wanted.then_some(hatch)).collect();
    let request = JobRequest {
        document,
        context: BTreeMap::new(),
        workspace,
        provision,
        timeout: arguments.sandbox.timeout(),
        runner: HostPath::resolve(state::own_program()?)?,
        resumption: None,
        job,
    };
    let state = state::open();
    let progress = Progress::new(&request.job, arguments.json)?;
    let (web, models) =
        (web.map(|policy| (policy, inspection)), models.map(|config| ((config, grant), &arguments.models)));
    let mut watched = JobRunObserver::new(progress, (web, models), &state);
    let site = EnclosureSite { state: &state, maker: EnclosureMaker::Itself };
    let finished = carry_out(request, &site, &mut watched);
    let seen = watched.finish()?;
    let mut finished = finished?;
    seen.into_iter().for_each(|seen| judge(&mut finished.result, seen));
    if !arguments.json {
        summary::print(&finished.result, &state);
        finished.result.web.iter().for_each(web::tell_denied);
    }
    let fate = settle(arguments, &mut finished);
    if let (Ok(fate), Some(changes)) = (&fate, &mut finished.result.changes) {
        fate.add_to(changes);
    }
    if arguments.json {
        summary::print_json(&finished.result)?;
    }
    if arguments.timings {
        summary::print_timings(&finished.timings);
    }
    let fate = fate?;
    fate.tell();
    let code = finished.result.exit_code();
    Ok(ExitCode::from(match fate.report() {
        0 => code,
        own if code == 0 => own,
        _ => code,
    }))
}

/// Decides on the changes, and on the folder of the run.
fn settle(arguments: &RunArguments, finished: &mut FinishedJob) -> Result<RunChangesOutcome, CliError> {
    let succeeded = finished.result.status == JobStatus::Success;
    let Some(folder) = finished.folder.take() else {
        return Ok(RunChangesOutcome::of(ChangesState::None, None));
    };
    let end = RunEnd { succeeded, asks: !arguments.json, shows: false, keeps_run: true };
    arguments.fate.settle(folder, end)
}

/// Reads a job's document, within the cap.
pub(super) fn read_document(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut document = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().take(LARGEST_JOB_BYTES + 1).read_to_end(&mut document),
        false => {
            input::open(path).and_then(|file| file.take(LARGEST_JOB_BYTES + 1).read_to_end(&mut document))
        }
    };
    read.map_err(|source| CliError::read(path, source))?;
    Ok(document)
}
