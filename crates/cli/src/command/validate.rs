//! `belljar validate`

use super::Subcommand;
use crate::error::CliError;
use belljar_contract::job::Job;
use belljar_contract::path::WORKSPACE;
use belljar_contract::result::JobResult;
use belljar_policy::admission::admit;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct ValidateArguments {
    /// The job's JSON file; `-` reads standard input
    job: PathBuf,
    /// Print the result that running it would have, as JSON, if it is refused
    #[arg(long)]
    json: bool,
}

impl Subcommand for ValidateArguments {
    const NAME: &'static str = "validate";
    const ABOUT: &'static str = "Check a job without running it: its form, and whether it would be admitted";

    fn run(&self) -> Result<ExitCode, CliError> {
        let document = super::run::read_document(&self.job)?;
        let now = jiff::Timestamp::now();
        let refused = match Job::parse(&document) {
            Err(invalid) => Some(JobResult::of_invalid_job(invalid, now)),
            Ok(job) => {
                let (steps, models) = (job.steps.len(), models_of(&job));
                match admit(job.clone(), WORKSPACE) {
                    Ok(_) => {
                        let steps = if steps == 1 { "1 step".to_owned() } else { format!("{steps} steps") };
                        crate::output::outln!("{}: valid, {steps}{models}", crate::output::path(&self.job));
                        None
                    }
                    Err(refused) => Some(belljar_sandbox::run::refusal(&job, &refused)),
                }
            }
        };
        let Some(result) = refused else { return Ok(ExitCode::SUCCESS) };
        match self.json {
            true => crate::summary::print_json(&result)?,
            false => crate::summary::print_refusal(&belljar_policy::untrusted::name(&self.job), &result),
        }
        Ok(ExitCode::from(result.exit_code()))
    }
}

/// Returns a note about the models that the job's agent may call; the command or node that runs the job names them.
fn models_of(job: &Job) -> String {
    let Some(inference) = &job.inference else { return String::new() };
    let models = inference.allowed_models.iter().map(|name| crate::command::plain(name)).collect::<Vec<_>>();
    format!("; its agent calls one of: {} (`belljar run --model NAME`, or a node with it)", models.join(", "))
}
