//! `belljar completions`

use super::Subcommand;
use crate::error::CliError;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: clap_complete::Shell,
}

impl Subcommand for CompletionsArguments {
    const NAME: &'static str = "completions";
    const ABOUT: &'static str = "Print a script that completes belljar's command line in a shell";

    fn run(&self) -> Result<ExitCode, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::definition(), "belljar", &mut script);
        crate::output::write_exactly(&script);
        Ok(ExitCode::SUCCESS)
    }
}
