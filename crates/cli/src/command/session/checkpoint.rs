//! `belljar session diff`, `commit`, `discard` and `fork`: what a session changed in its copy, and what becomes of it.

use super::keeper::Errand;
use super::opening::{begin, must_be_free};
use crate::error::CliError;
use crate::handoff::TrustArguments;
use crate::progress::harmless;
use crate::{state, summary};
use belljar_contract::result::WorkspaceChanges;
use belljar_policy::untrusted::is_hidden;
use belljar_sandbox::session::{self, SessionError};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a terminal the diff alone is printed, byte for byte, for `git apply`. At a terminal, and with --escape, every character that \
reorders or hides text is printed as an escape (`\\u{202e}`).")]
pub(super) struct DiffArguments {
    /// The session's name, or the beginning of its id
    session: String,
    /// Count the lines of each file, and don't show them
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Print the files and the diff for a person, also without a terminal
    #[arg(long, conflicts_with_all = ["json", "stat"])]
    escape: bool,
    /// Print files and diff as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is written if somebody else has changed one of the files since the copy was made. The session goes on as before.
A commit that was interrupted is finished by asking for it again, also when the session is over.")]
pub(super) struct CommitArguments {
    /// The session's name, or the beginning of its id
    session: String,
    #[command(flatten)]
    trust: TrustArguments,
    /// Print the files as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
What is outside of /workspace stays as it is. What an interrupted commit of a session that is over has not written yet \
is thrown away.")]
pub(super) struct DiscardArguments {
    /// The session's name, or the beginning of its id
    session: String,
    /// Only what is at these paths of the workspace and below
    paths: Vec<PathBuf>,
    /// Also while programs run in the session
    #[arg(long)]
    force: bool,
    /// Print the files as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The new session has the other's workspace, variables, lent directories and limits. Programs, /tmp and the home directory \
are not taken along.")]
pub(super) struct ForkArguments {
    /// The session's name, or the beginning of its id
    session: String,
    /// A name to call the new one by, instead of its id
    #[arg(long)]
    name: Option<String>,
    /// Print the new session as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn diff(arguments: &DiffArguments) -> Result<ExitCode, CliError> {
    let changes = session::find(&state::open(), &arguments.session)?.changes()?;
    if arguments.json {
        print_json(&changes);
    } else if arguments.stat {
        crate::output::out!("{}", summary::stat(&changes));
    } else if arguments.escape || std::io::stdout().is_terminal() {
        crate::output::out!("{}", summary::changes(&changes));
    } else {
        std::io::stdout().write_all(changes.diff.as_bytes()).map_err(CliError::output)?;
        if changes.truncated {
            crate::output::errln!("belljar: there is more than is shown");
        }
        // A patch is exact; line ends of other systems are ordinary.
        let is_unseen = |character: char| is_hidden(character) && !matches!(character, '\n' | '\t' | '\r');
        let hidden = changes.diff.matches(is_unseen).count();
        if hidden > 0 {
            crate::output::errln!(
                "belljar: {hidden} characters in this patch reorder or hide text; at a terminal, and with --escape, they are shown"
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn commit(arguments: &CommitArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    let changes = arguments.trust.with_yes(|trust| match session::find(&state, &arguments.session) {
        Err(error @ SessionError::NoSuch { .. }) => {
            Ok(session::interrupted(&state, Some(&arguments.session)).ok_or(error)?.finish(trust)?)
        }
        found => Ok(found?.commit(trust)?),
    })?;
    tell(&changes, arguments.json, ("committed", "Nothing to commit."));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn discard(arguments: &DiscardArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    let changes = match session::find(&state, &arguments.session) {
        // All of it or nothing: there is no sandbox any more in which a path could be as it was.
        Err(error @ SessionError::NoSuch { .. }) if arguments.paths.is_empty() => {
            session::interrupted(&state, Some(&arguments.session)).ok_or(error)?.abandon()?;
            crate::output::errln!("What was not written yet is thrown away.");
            return Ok(ExitCode::SUCCESS);
        }
        found => found?.discard(&arguments.paths, arguments.force)?,
    };
    tell(&changes, arguments.json, ("as in the source again", "Nothing to discard."));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn fork(arguments: &ForkArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    must_be_free(arguments.name.as_deref())?;
    let origin = session::find(&state, &arguments.session)?.session().id.clone();
    let errand = Errand::Fork { state: state.path().to_owned(), origin, name: arguments.name.clone() };
    super::tell(&begin(&errand)?, arguments.json);
    Ok(ExitCode::SUCCESS)
}

/// Tells of a commit that nobody has finished: the folder of its run is kept as long.
pub(super) fn tell_interrupted() {
    if let Some(interrupted) = session::interrupted(&state::open(), None) {
        let session = interrupted.session();
        let name = harmless(session.name.as_deref().unwrap_or(&session.id));
        crate::output::errln!(
            "A commit of {name} was interrupted: `belljar session commit {name}` finishes it, \
             `belljar session discard {name}` gives it up."
        );
    }
}

fn tell(changes: &WorkspaceChanges, as_json: bool, (done, nothing): (&str, &str)) {
    if as_json {
        print_json(changes);
    } else if changes.files.is_empty() {
        crate::output::outln!("{nothing}");
    } else {
        crate::output::out!("{}", summary::files(changes, done));
    }
}

fn print_json(changes: &WorkspaceChanges) {
    crate::output::outln!("{}", crate::output::json(changes));
}
