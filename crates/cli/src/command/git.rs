//! `belljar git`: clones that the host makes, and work of sandboxes that the host pushes.

mod clone;
pub(super) mod outcome;
pub(super) mod push;
mod requested;

use super::Subcommand;
use crate::error::CliError;
use crate::git::{GitHostAccess, RemoteArguments};
use belljar_policy::git::{Remote, redact};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct GitArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Clone a repository with this host's credentials, for a sandbox to work on. The clone contains no credentials
    Clone(clone::CloneArguments),
    /// Push what a sandbox has left in such a clone: as one commit, to a new branch
    Push(push::PushArguments),
}

/// Arguments of both commands.
#[derive(Debug, clap::Args)]
struct CommonArguments {
    #[command(flatten)]
    remote: RemoteArguments,
    /// Also take file:// addresses
    #[arg(long)]
    allow_file: bool,
    /// The configuration with `git` [default: BELLJAR_CONFIG, or config.yaml in the user's or the system's configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Subcommand for GitArguments {
    const NAME: &'static str = "git";
    const ABOUT: &'static str = "Clone repositories for sandboxes, and push their changes";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Clone(arguments) => arguments.run(),
            Action::Push(arguments) => arguments.run(),
        }
    }
}

// === impl CommonArguments ===

impl CommonArguments {
    fn reach(&self) -> Result<GitHostAccess, CliError> {
        self.remote.reach(self.config.as_deref())
    }
}

/// Parses a remote as given by the user.
pub(super) fn remote_of(text: &str, allows_files: bool) -> Result<Remote, CliError> {
    Remote::parse(text, allows_files).map_err(|error| CliError::usage(format!("{:?} {error}", redact(text))))
}
