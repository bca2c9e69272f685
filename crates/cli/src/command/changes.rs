//! `belljar changes`: what runs and sessions changed in copies of directories, kept until a person decides.

mod apply;
mod list;
mod push;
mod retention;
mod show;

use super::Subcommand;
use crate::error::CliError;
use crate::kept::tell_collected;
use crate::state;
use belljar_sandbox::kept::{self, FrozenChangeSet, KeptChangeSet};
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::workspace::changes::ChangeSet;
use std::path::{Component, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = "\
A change set is named by the id of its run, by a beginning of that, or by the name of its session. It is kept for 14 days, and \
all but the newest together may take 10 GiB; `belljar changes retention` changes that. The largest are removed first.")]
pub(crate) struct ChangesArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the kept changes, and what was removed lately
    List(list::ListArguments),
    /// Show what a kept change set is: its run, its files, where it lies
    Show(show::ShowArguments),
    /// Show kept changes as a diff against the directory that was copied
    Diff(show::DiffArguments),
    /// Apply kept changes to the directory that was copied. Changes that conflict are kept
    Apply(apply::ApplyArguments),
    /// Push changes of an agent that worked on a clone: as one commit, to a new branch
    Push(push::PushKeptArguments),
    /// Delete kept changes
    Rm(RmArguments),
    /// Show or set how long changes are kept, and how much of them
    Retention(retention::RetentionArguments),
}

#[derive(Debug, clap::Args)]
struct RmArguments {
    /// The change sets
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

impl Subcommand for ChangesArguments {
    const NAME: &'static str = "changes";
    const ABOUT: &'static str = "List, show, apply and remove changes that runs and sessions left";

    fn run(&self) -> Result<ExitCode, CliError> {
        crate::trusted_files::register_usual();
        match &self.command {
            Command::List(arguments) => arguments.run(),
            Command::Show(arguments) => arguments.run(),
            Command::Diff(arguments) => arguments.run(),
            Command::Apply(arguments) => arguments.run(),
            Command::Push(arguments) => arguments.run(),
            Command::Rm(arguments) => {
                let state = look_for_leftovers();
                arguments
                    .ids
                    .iter()
                    .try_for_each(|id| Ok::<_, CliError>(kept::find(&state, id)?.remove()?))?;
                Ok(ExitCode::SUCCESS)
            }
            Command::Retention(arguments) => arguments.run(),
        }
    }
}

/// The state, once runs whose process was killed have become kept changes, and what is due is removed.
fn look_for_leftovers() -> StateDirectory {
    let state = state::open();
    // A failed cleanup doesn't keep the other changes from being shown.
    let _ = state.reconcile();
    tell_collected(&kept::collect(&state, None));
    state
}

/// The kept change set of that name.
fn find(name: &str) -> Result<KeptChangeSet, CliError> {
    Ok(kept::find(&look_for_leftovers(), name)?)
}

/// The changes at some paths and below; all of them for no paths.
///
/// # Errors
/// [`CliError::Usage`] for a path at which nothing was changed.
fn part_of(frozen: &FrozenChangeSet, paths: &[PathBuf]) -> Result<ChangeSet, CliError> {
    Ok(frozen.part(&named(frozen, paths)?))
}

/// Paths of changes as a person names them, without `./`.
///
/// # Errors
/// [`CliError::Usage`] for one at which nothing was changed.
fn named(frozen: &FrozenChangeSet, paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let plain = |path: &PathBuf| {
        let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        match frozen.set.iter().any(|(changed, _)| changed.starts_with(&plain)) {
            true => Ok(plain),
            false => Err(CliError::usage(format!("nothing was changed at {}", crate::output::path(path)))),
        }
    };
    paths.iter().map(plain).collect()
}
