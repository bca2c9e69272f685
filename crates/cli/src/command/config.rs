//! `belljar config`

mod check;
mod init;
mod show;

use super::Subcommand;
use crate::error::CliError;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Report every mistake of a configuration, or its settings: backends, models, web policy, agents
    Check(check::CheckArguments),
    /// Write a configuration file with every section and member, commented out with its default
    Init(init::InitArguments),
    /// Print the effective configuration as YAML, with the source of each value; secrets are left out
    Show(show::ShowArguments),
}

impl Subcommand for ConfigArguments {
    const NAME: &'static str = "config";
    const ABOUT: &'static str =
        "Write, check and show a configuration: backends of tools, models, web policy, agents";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Check(arguments) => arguments.run(),
            Action::Init(arguments) => arguments.run(),
            Action::Show(arguments) => arguments.run(),
        }
    }
}
