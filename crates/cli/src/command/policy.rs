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
    /// Judge again what was recorded, by another configuration, and tell what would change; exit code 1 if anything would
    Check(check::CheckArguments),
}

impl Subcommand for PolicyArguments {
    const NAME: &'static str = "policy";
    const ABOUT: &'static str =
        "What agents may do: show it, and try another configuration on what was recorded";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Show(arguments) => arguments.run(),
            Action::Check(arguments) => arguments.run(),
        }
    }
}
