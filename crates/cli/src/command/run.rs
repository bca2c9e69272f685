//! `belljar run`

mod watched;

use super::Subcommand;
use crate::error::CliError;
use crate::handoff::TrustArguments;
use crate::lending::SandboxArguments;
use crate::progress::Progress;
use crate::web::{self, WebArguments};
use crate::{state, summary};
use belljar_confine::plan::HostPath;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::result::{Failure, JobResult, JobStatus};
use belljar_node::inspection::Inspection;
use belljar_node::web::judge;
use belljar_sandbox::enclosure::{Maker, Site};
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::run::{Finished, Request, carry_out};
use belljar_sandbox::state::RunFolder;
use belljar_sandbox::workspace::apply::{ApplyError, apply};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use watched::Watched;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct RunArguments {
    /// The job's JSON file; `-` reads standard input
    job: PathBuf,
    #[command(flatten)]
    sandbox: SandboxArguments,
    #[command(flatten)]
    web: WebArguments,
    /// Print the result as JSON, alone on standard output
    #[arg(long)]
    json: bool,
    /// Keep the run's folder, with the changes to a workspace that is a copy
    #[arg(long)]
    keep: bool,
    /// Apply the changes to the workspace that was copied, if the job succeeds
    #[arg(long, requires = "workspace_copy")]
    apply: bool,
    #[command(flatten)]
    trust: TrustArguments,
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
                // Whoever reads the result gets one, whatever went wrong.
                let failure = Failure::new(FailureCode::InternalError, error.chain());
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
    let inspection = web.as_ref().map(|policy| Inspection::of_live(policy.live())).transpose()?.flatten();
    let (mut env, mut home) = (arguments.sandbox.env(), BTreeMap::new());
    inspection.iter().for_each(|inspection| inspection.furnish(&mut env, &mut home));
    let request = Request {
        document,
        workspace,
        lent: arguments.sandbox.lent()?,
        env,
        home,
        programs: arguments.sandbox.programs()?,
        limits: arguments.sandbox.limits(),
        required: arguments.sandbox.required()?,
        hatches: web.iter().map(|_| Hatch::Web).collect(),
        timeout: arguments.sandbox.timeout(),
        runner: HostPath::resolve(state::own_program()?)?,
        job,
    };
    let state = state::open();
    let progress = Progress::new(&request.job, arguments.json)?;
    let mut watched = Watched::new(progress, web.map(|policy| (policy, inspection)), &state);
    let site = Site { state: &state, maker: Maker::Itself };
    let finished = carry_out(request, &site, &mut watched);
    let seen = watched.finish()?;
    let mut finished = finished?;
    seen.into_iter().for_each(|seen| judge(&mut finished.result, seen));
    let result = &finished.result;
    match arguments.json {
        true => summary::print_json(result)?,
        false => {
            summary::print(result, &state);
            result.web.iter().for_each(web::tell_denied);
        }
    }
    if arguments.timings {
        summary::print_timings(&finished.timings);
    }
    let code = ExitCode::from(result.exit_code());
    settle(arguments, finished)?;
    Ok(code)
}

/// What becomes of the changes and of the run's folder.
fn settle(arguments: &RunArguments, mut finished: Finished) -> Result<(), CliError> {
    let succeeded = finished.result.status == JobStatus::Success;
    if let Some(changes) = finished.changes.as_ref().filter(|changes| !changes.set.is_empty()) {
        let choice = match (arguments.apply && succeeded, arguments.keep) {
            (true, _) => Choice::Apply,
            (_, true) => Choice::Keep,
            _ if !arguments.json && !arguments.apply => ask(),
            _ => Choice::Discard,
        };
        match choice {
            Choice::Apply => {
                let applied = arguments.trust.with_yes(|trust| {
                    Ok(apply(&changes.set, &changes.upper, &changes.source, changes.since, trust)?)
                });
                if matches!(applied, Err(CliError::Apply(ApplyError::Handoff { .. }))) {
                    // It takes a yes, and so is not lost.
                    keep(finished.folder.as_mut())?;
                }
                applied?;
                crate::output::errln!("The changes are applied.");
            }
            Choice::Keep => keep(finished.folder.as_mut())?,
            Choice::Discard => {
                crate::output::errln!(
                    "The changes are thrown away; --keep keeps them, --apply applies them."
                );
            }
        }
    }
    if arguments.keep {
        keep(finished.folder.as_mut())?;
    }
    match finished.folder {
        Some(folder) if folder.is_kept() => {
            crate::output::errln!("The run is kept in {}", crate::output::path(folder.path()));
            Ok(())
        }
        Some(folder) => Ok(folder.remove()?),
        None => Ok(()),
    }
}

fn keep(folder: Option<&mut RunFolder>) -> Result<(), CliError> {
    Ok(folder.map_or(Ok(()), RunFolder::keep)?)
}

#[derive(Debug, Clone, Copy)]
enum Choice {
    Apply,
    Keep,
    Discard,
}

/// Asks the person at the terminal; without one the changes are thrown away.
fn ask() -> Choice {
    let (input, output) = (std::io::stdin(), std::io::stderr());
    if !(input.is_terminal() && output.is_terminal()) {
        return Choice::Discard;
    }
    loop {
        crate::output::err!("Apply the changes, keep them for later, or throw them away? [a/k/t] ");
        let mut answer = String::new();
        let _ = output.lock().flush();
        match input.read_line(&mut answer) {
            Ok(0) | Err(_) => return Choice::Keep,
            Ok(_) => {}
        }
        match answer.trim() {
            "a" | "apply" => return Choice::Apply,
            "k" | "keep" => return Choice::Keep,
            "t" | "throw" => return Choice::Discard,
            _ => {}
        }
    }
}

/// Reads a job's document, within the cap.
pub(super) fn read_document(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut document = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().take(LARGEST_JOB_BYTES + 1).read_to_end(&mut document),
        false => std::fs::File::open(path)
            .and_then(|file| file.take(LARGEST_JOB_BYTES + 1).read_to_end(&mut document)),
    };
    read.map_err(|source| CliError::read(path, source))?;
    Ok(document)
}
