//! `belljar completions`

use crate::error::CliError;
use std::process::ExitCode;

/// Print a script that completes belljar's command line in a shell
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(arguments: &CompletionsArguments) -> Result<ExitCode, CliError> {
    clap_complete::generate(arguments.shell, &mut super::definition(), "belljar", &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}
