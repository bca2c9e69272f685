//! `belljar git`: clones that the host makes, and work of sandboxes that the host pushes.

mod clone;
pub(super) mod outcome;
pub(super) mod push;

use super::Subcommand;
use crate::error::CliError;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct GitArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Clone a repository with this host's credentials, for a sandbox to work on. Nothing of them gets into the clone
    Clone(clone::CloneArguments),
    /// Push what a sandbox has left in such a clone: as one commit, to a new branch
    Push(push::PushArguments),
}

impl Subcommand for GitArguments {
    const NAME: &'static str = "git";
    const ABOUT: &'static str = "Clone repositories for sandboxes, and push what became of them";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Clone(arguments) => arguments.run(),
            Action::Push(arguments) => arguments.run(),
        }
    }
}
