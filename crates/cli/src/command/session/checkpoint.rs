//! `belljar session diff`, `commit`, `discard` and `fork`: what a session changed in its copy, and what becomes of it.

use super::keeper::KeeperTask;
use super::opening::{begin, must_be_free};
use crate::command::printing::warn_of_hidden;
use crate::error::{CliError, DENIED};
use crate::kept::{
    ReviewArguments, ReviewedChanges, RunChangesOutcome, apply, drift, is_unshown_approved,
    leave_out_conflicts, left_out,
};
use crate::progress::harmless;
use crate::prompt::{confirmed, is_at_terminal};
use crate::terminal::begin_review;
use crate::trust_review::{TrustArguments, is_trusted};
use crate::{state, summary};
use belljar_contract::result::WorkspaceChanges;
use belljar_policy::handoff::ApprovedPaths;
use belljar_sandbox::kept::{self, FrozenChangeSet, KeptChangeSet, KeptError};
use belljar_sandbox::session::{self, CommitOutcome, SessionClient, SessionError};
use belljar_sandbox::state::StateDirectory;
use belljar_sandbox::workspace::diff;
use belljar_sandbox::workspace::partial::ApplyOptions;
use serde::Serialize;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The digest of what is shown goes to standard error: `belljar session commit --reviewed DIGEST` writes exactly that, or nothing.
Without a terminal the diff alone is printed on standard output, byte for byte, for `git apply`. At a terminal, and with --escape,
every character that reorders or hides text is printed as an escape (`\\u{202e}`).")]
pub(super) struct DiffArguments {
    /// The session's name, or the beginning of its id
    session: String,
    /// Count the lines of each file, and don't show them
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Print the digest of the changes alone
    #[arg(long, conflicts_with_all = ["json", "stat"])]
    digest: bool,
    /// Print the files and the diff for a person, also without a terminal
    #[arg(long, conflicts_with_all = ["json", "stat", "digest"])]
    escape: bool,
    /// Print files, diff and digest as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
At a terminal the changes are shown first, and exactly what was shown is written, whatever a program in the session does
meanwhile. Elsewhere, --reviewed DIGEST writes the changes only if they are those that `belljar session diff` showed with
that digest; --trust and --trust-all take it.

Nothing is written if one of the files was changed in the directory since the copy was made. The session goes on as before.
A commit that was interrupted is finished by asking for it again, also when the session is over. Changes of a session that \
has ended by itself are committed in the same way, as long as they are kept (`belljar changes`).")]
pub(super) struct CommitArguments {
    /// The session's name, or the beginning of its id
    session: String,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    trust: TrustArguments,
    /// Print the files as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
What is outside of /workspace stays as it is. What an interrupted commit of a session that is over has not written yet, \
and kept changes of a session that has ended, are deleted.")]
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
    let state = state::open();
    let (changes, digest) = match session::find(&state, &arguments.session) {
        Err(error @ SessionError::NoSuch { .. }) => {
            let frozen = left(&state, &arguments.session, error)?.changes()?;
            (frozen.render()?, frozen.digest()?.to_string())
        }
        found => {
            let review = found?.changes()?;
            (review.changes, review.digest)
        }
    };
    let changes = &changes;
    if std::io::stdout().is_terminal() && !arguments.json && !arguments.digest {
        begin_review();
    }
    crate::output::err!("{}", drift(&changes.changed_in_source));
    if arguments.json {
        print_json(changes, Some(&digest));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.digest {
        crate::output::outln!("{digest}");
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.stat {
        crate::output::out!("{}", summary::stat(changes));
    } else if arguments.escape || std::io::stdout().is_terminal() {
        crate::output::out!("{}", summary::changes(changes));
    } else {
        crate::output::write_exactly(changes.diff.as_bytes());
        warn_of_hidden(&changes.diff);
    }
    crate::output::err!("{}", summary::unshown(changes));
    if !changes.files.is_empty() {
        crate::output::errln!("belljar: digest {digest}");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn commit(arguments: &CommitArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    let committed = match session::find(&state, &arguments.session) {
        Err(error @ SessionError::NoSuch { .. }) => {
            match session::interrupted(&state, Some(&arguments.session)) {
                Some(interrupted) => Some(interrupted.finish(&arguments.trust.trust())?),
                None => return commit_left(&state, arguments, error),
            }
        }
        found => commit_living(&found?, arguments)?,
    };
    let Some(CommitOutcome { changes, digest }) = committed else {
        crate::output::errln!("Nothing was written.");
        return Ok(ExitCode::from(DENIED));
    };
    crate::output::err!("{}", drift(&changes.changed_in_source));
    tell(&changes, (arguments.json, Some(&digest)), ("committed", "Nothing to commit."));
    Ok(ExitCode::SUCCESS)
}

/// The changes of a session that has ended.
fn left(state: &StateDirectory, session: &str, error: SessionError) -> Result<KeptChangeSet, CliError> {
    // A session whose keeper was killed becomes a kept change set only when leftovers are looked for.
    let _ = state.reconcile();
    match kept::find(state, session) {
        Err(KeptError::NoSuch { .. }) => Err(error.into()),
        found => Ok(found?),
    }
}

/// Commits the changes of a session that has ended. They are reviewed as those of a session that lives.
fn commit_left(
    state: &StateDirectory,
    arguments: &CommitArguments,
    error: SessionError,
) -> Result<ExitCode, CliError> {
    let mut kept = left(state, &arguments.session, error)?;
    let frozen = kept.changes()?;
    if is_reviewed_here(arguments)? && !is_left_approved(&frozen)? {
        crate::output::errln!("Nothing was written.");
        return Ok(ExitCode::from(DENIED));
    }
    let shown = frozen.digest()?.to_string();
    let mut changes = diff::listed(frozen.set.iter());
    let ReviewArguments { reviewed: digest, unshown } = arguments.review;
    let reviewed = ReviewedChanges { frozen: &frozen, set: &frozen.set, digest, unshown };
    let applied = apply(&mut kept, reviewed, &arguments.trust, &ApplyOptions::default())?;
    let fate = RunChangesOutcome::of_applied(kept, &applied, frozen.left_out())?;
    leave_out_conflicts(&mut changes, &fate.conflicts);
    fate.add_to(&mut changes);
    tell(&changes, (arguments.json, Some(&shown)), ("committed", "Nothing to commit."));
    fate.tell();
    Ok(ExitCode::from(fate.report()))
}

/// Commits what a session that lives changed. `None` if the person at the terminal said no.
fn commit_living(
    client: &SessionClient,
    arguments: &CommitArguments,
) -> Result<Option<CommitOutcome>, CliError> {
    let trust = arguments.trust.trust();
    let ReviewArguments { reviewed, unshown } = arguments.review;
    match is_reviewed_here(arguments)? {
        true => commit_reviewed_here(client, &trust),
        false => Ok(Some(client.commit(&trust, reviewed, unshown)?)),
    }
}

/// Returns true if a commit shows the changes to the person at the terminal and asks.
///
/// # Errors
/// [`CliError::Usage`] if paths are trusted, and neither a person nor a digest says in which state.
fn is_reviewed_here(arguments: &CommitArguments) -> Result<bool, CliError> {
    match arguments.review.reviewed {
        // The reader of JSON is a program, not a person.
        None if is_at_terminal() && !arguments.json => Ok(true),
        None if !arguments.trust.is_empty() => Err(CliError::usage(
            "--trust and --trust-all approve a state that was reviewed, and nothing says which: pass the digest that \
             `belljar session diff` printed with it (--reviewed sha256:…)"
                .to_owned(),
        )),
        _ => Ok(false),
    }
}

/// Shows what a session that has ended left, and asks. What gains trust is asked about when it is applied.
fn is_left_approved(frozen: &FrozenChangeSet) -> Result<bool, CliError> {
    let changes = frozen.render()?;
    if changes.files.is_empty() {
        return Ok(true);
    }
    show(&changes);
    crate::output::err!("{}", left_out(frozen.left_out()));
    Ok(is_unshown_approved(unshown(&changes)) && confirmed("Write these changes? [y/n] "))
}

/// Shows changes to the person at the terminal.
fn show(changes: &WorkspaceChanges) {
    begin_review();
    crate::output::err!("{}", summary::changes(changes));
    crate::output::err!("{}", drift(&changes.changed_in_source));
}

/// The number of files that are listed and not shown.
fn unshown(changes: &WorkspaceChanges) -> usize {
    changes.files.iter().filter(|file| file.unshown.is_some()).count()
}

/// Shows the changes to the person at the terminal, and writes what was shown if the answer is yes.
fn commit_reviewed_here(
    client: &SessionClient,
    trust: &ApprovedPaths,
) -> Result<Option<CommitOutcome>, CliError> {
    let pending = client.review()?;
    let review = pending.review();
    if !review.changes.files.is_empty() {
        show(&review.changes);
        if !is_unshown_approved(unshown(&review.changes)) {
            return Ok(None);
        }
        let left: Vec<_> =
            review.asking.iter().filter(|asking| !trust.covers(&asking.path)).cloned().collect();
        let is_approved = match left.is_empty() {
            true => confirmed("Write these changes? [y/n] "),
            false => is_trusted(&left),
        };
        if !is_approved {
            return Ok(None);
        }
        let trust = trust.clone().and_in(left.into_iter().map(|asking| asking.path));
        let mut committed = pending.write(&trust)?;
        // The person has just seen it.
        committed.changes.changed_in_source.clear();
        return Ok(Some(committed));
    }
    Ok(Some(pending.write(trust)?))
}

pub(super) fn discard(arguments: &DiscardArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    let changes = match session::find(&state, &arguments.session) {
        // All of it or nothing: there is no sandbox any more in which a path could be as it was.
        Err(error @ SessionError::NoSuch { .. }) if arguments.paths.is_empty() => {
            match session::interrupted(&state, Some(&arguments.session)) {
                Some(interrupted) => interrupted.abandon()?,
                None => left(&state, &arguments.session, error)?.remove()?,
            }
            crate::output::errln!("What was not written yet is discarded.");
            return Ok(ExitCode::SUCCESS);
        }
        found => found?.discard(&arguments.paths, arguments.force)?,
    };
    tell(&changes, (arguments.json, None), ("as in the source again", "Nothing to discard."));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn fork(arguments: &ForkArguments) -> Result<ExitCode, CliError> {
    let state = state::open();
    must_be_free(arguments.name.as_deref())?;
    let origin = session::find(&state, &arguments.session)?.session().id.clone();
    let errand = KeeperTask::Fork { state: state.path().to_owned(), origin, name: arguments.name.clone() };
    super::tell(&begin(&errand)?, arguments.json);
    Ok(ExitCode::SUCCESS)
}

/// Reports an interrupted commit. The folder of its run is kept until the commit is finished or discarded.
pub(crate) fn tell_interrupted() {
    if let Some(interrupted) = session::interrupted(&state::open(), None) {
        let session = interrupted.session();
        let name = harmless(session.name.as_deref().unwrap_or(&session.id));
        crate::output::errln!(
            "A commit of {name} was interrupted: `belljar session commit {name}` finishes it, \
             `belljar session discard {name}` gives it up."
        );
    }
}

fn tell(changes: &WorkspaceChanges, (as_json, digest): (bool, Option<&str>), (done, nothing): (&str, &str)) {
    if as_json {
        print_json(changes, digest);
    } else if changes.files.is_empty() {
        crate::output::outln!("{nothing}");
    } else {
        crate::output::out!("{}", summary::files(changes, done));
        if let Some(digest) = digest {
            crate::output::errln!("belljar: digest {digest}");
        }
    }
}

/// Changes with their digest, where there is one.
#[derive(Debug, Serialize)]
struct ChangesDocument<'a> {
    #[serde(flatten)]
    changes: &'a WorkspaceChanges,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'a str>,
}

fn print_json(changes: &WorkspaceChanges, digest: Option<&str>) {
    let printed = ChangesDocument { changes, digest };
    crate::output::outln!("{}", crate::output::json(&printed));
}
