//! `belljar doctor`

use crate::error::CliError;
use std::process::ExitCode;

/// Check this host: what a sandbox needs, what is missing and how to get it
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArguments {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(_arguments: &DoctorArguments) -> Result<ExitCode, CliError> {
    Ok(ExitCode::SUCCESS)
}
