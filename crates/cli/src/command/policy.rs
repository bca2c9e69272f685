//! `belljar policy`: what agents may do, and what another configuration would change about it.

mod check;
mod show;

use super::Subcommand;
use crate::error::CliError;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct PolicyArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show what a level or an agent may do, and what that means for its sandboxes
    Show(show::ShowArguments),
    /// Replay recorded calls with another configuration, and report verdicts that change; exit code 1 if any do
    Check(check::CheckArguments),
}

impl Subcommand for PolicyArguments {
    const NAME: &'static str = "policy";
    const ABOUT: &'static str =
        "Show the permissions of agents, and replay recorded calls with another configuration";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Show(arguments) => arguments.run(),
            Action::Check(arguments) => arguments.run(),
        }
    }
}
