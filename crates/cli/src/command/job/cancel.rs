//! `belljar job cancel`

use super::job_exit::words;
use super::parse_id;
use crate::client::Client;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use belljar_contract::id::JobId;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct CancelArguments {
    /// The job's id
    #[arg(value_parser = parse_id)]
    id: JobId,
    /// Print the job as the node tells it, as JSON
    #[arg(long)]
    json: bool,
}

// === impl CancelArguments ===

impl CancelArguments {
    pub(super) fn run(&self, client: &Client) -> Result<ExitCode, CliError> {
        let told = client.cancel(&self.id)?;
        if self.json {
            print_json(&told.document)?;
            return Ok(ExitCode::SUCCESS);
        }
        let job = &told.known.job;
        match job.status.is_final() {
            true => print(&format!("{} is over: {}\n", job.job_id, words(job.status)))?,
            false => print(&format!("{} is to stop\n", job.job_id))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
