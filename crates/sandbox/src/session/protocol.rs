//! Requests to a keeper, and its answers: JSON, with descriptors sent along.

use super::Session;
use crate::backend::Stats;
use crate::limits::Limit;
use crate::workspace::digest::ReviewDigest;
use belljar_confine::message;
use belljar_confine::sealed;
use belljar_contract::category::Category;
use belljar_contract::result::WorkspaceChanges;
use belljar_policy::handoff::{ApprovedPaths, Finding};
use belljar_policy::untrusted;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};
use std::path::PathBuf;
use std::time::Duration;

/// A request to a keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperRequestMessage {
    /// Run a program. Its three streams come with this request unless it gets a terminal. It ends when the client hangs up.
    Exec {
        /// The program and its arguments, as bytes.
        argv: Vec<Vec<u8>>,
        /// Working directory at the start.
        directory: String,
        /// True if it gets a terminal.
        terminal: bool,
        /// Category of tools that the command is for, if any.
        #[serde(default)]
        category: Option<Category>,
    },
    /// Kill the program that was started on this connection.
    Kill,
    /// Set the size of the terminal.
    Resize {
        rows: u16,
        columns: u16,
    },
    /// Report the session's activity.
    Describe,
    /// Report the changes in its copy.
    Changes,
    /// Write what it changed into the directory that was copied.
    Commit {
        /// The paths that may gain trust.
        trusted: ApprovedPathsMessage,
        /// The digest of what was reviewed, if something was.
        reviewed: Option<ReviewDigest>,
        /// True if paths that a review lists and doesn't show are written, too.
        #[serde(default)]
        unshown: bool,
    },
    /// Report the changes, and keep that state until [`Self::Write`] or until the caller hangs up.
    Review,
    /// Write the state that was reported. Sent after [`Self::Review`].
    Write {
        /// The paths that may gain trust.
        trusted: ApprovedPathsMessage,
    },
    /// Undo what it changed.
    Discard {
        /// Undo at these paths and below, as bytes; everywhere if there are none.
        paths: Vec<Vec<u8>>,
        /// Undo even if programs run in it.
        forced: bool,
    },
    /// Report what another session must be to be this one's fork.
    Fork,
    /// Pause until [`Self::Release`], or until the client hangs up. Sent after [`Self::Fork`].
    Hold,
    Release,
    /// End it.
    End {
        /// Treatment of changes that are not committed.
        uncommitted: UncommittedChanges,
    },
}

/// Treatment of the uncommitted changes of a session that is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UncommittedChanges {
    /// The session goes on if there are any.
    Refused,
    /// The changes are kept (`crate::kept`).
    Kept,
    /// The changes are deleted.
    Discarded,
}

/// An answer of a keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperResponse {
    /// The program runs. Its terminal comes beside this if it has one.
    Started,
    /// The program can't be run.
    NotStarted { program: String, errno: i32 },
    /// The program has ended.
    Ended(ProgramOutcome),
    Description {
        session: Box<Session>,
        running: u64,
        idle_for: Duration,
        /// Resource usage; `None` if a sandbox doesn't answer.
        load: Option<Load>,
    },
    /// A document lies in the file whose descriptor comes beside this.
    Document,
    /// Everything is paused; the directory that the fork begins with is sent along.
    Held,
    /// The pause has only ended now.
    Released,
    /// The request was refused.
    Refused(Refusal),
    /// The session is over, and nothing of it is left but changes that were to be kept.
    Over {
        /// True if changes are kept, under the session's id.
        kept: bool,
    },
    /// The session has no sandbox for the request at present.
    Unavailable { message: String },
    /// The request could not be carried out.
    Failed { message: String },
}

/// Why a session's workspace is not shown, committed, undone, forked or worked on. Nothing was done then, if not said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The session works on a directory itself.
    #[error("the session uses {directory} directly, so its changes are already there")]
    Direct {
        /// The directory.
        directory: String,
    },
    /// The session works on a directory itself, and was to be forked.
    #[error("cannot fork: the session uses {directory} directly, and its fork would share the same files")]
    Shared {
        /// The directory.
        directory: String,
    },
    /// The workspace is not the sandbox's own.
    #[error("cannot fork: the session must have exactly one sandbox, made by the native backend")]
    Apart,
    /// The workspace was empty at first.
    #[error("the session's workspace started empty and has no source directory")]
    Empty,
    /// Programs run in it.
    #[error("programs are running in the session: {}", running(.processes, .commands))]
    Busy {
        /// Number of processes.
        processes: u64,
        /// The commands that have not ended. What they have left in the background has no name here.
        commands: Vec<String>,
    },
    /// Files of the source were changed by another program.
    #[error("changed in the meantime: {}{}", .paths.join(", "), more(.further))]
    Conflict {
        /// Some of the files.
        paths: Vec<String>,
        /// Number of further paths.
        further: usize,
    },
    /// Files of the source were changed by another program while a commit was written. They are as they were; all other changes are
    /// written.
    #[error(
        "changed while the commit was written, and left as they are: {}{}; all other changes are written",
        .paths.join(", "),
        more(.further)
    )]
    Partly {
        /// Some of the files.
        paths: Vec<String>,
        /// Number of further paths.
        further: usize,
    },
    /// The changes are others than those that were reviewed.
    #[error("the changes are no longer those that were reviewed: their digest is {digest} now")]
    Stale {
        /// The digest of the changes as they are now.
        digest: String,
    },
    /// The review lists files whose content it doesn't show.
    #[error("the review does not show the content of: {}{}", .paths.join(", "), more(.further))]
    Unshown {
        /// Some of the files.
        paths: Vec<String>,
        /// Number of further paths.
        further: usize,
    },
    /// Another commit was written since the review.
    #[error("another commit of the session was written since these changes were shown")]
    Overtaken,
    /// An approval is needed first.
    #[error("{} of the paths gain trust at the destination and have no approval", .asking.len() + .further)]
    Handoff {
        /// Some of the paths, and the reasons.
        asking: Vec<PathApproval>,
        /// Number of further paths.
        further: usize,
    },
    /// The session was to be ended, and has changes that are not committed.
    #[error("the session has uncommitted changes: {}{}", .paths.join(", "), more(.further))]
    Uncommitted {
        /// Some of the changed paths.
        paths: Vec<String>,
        /// Number of further paths.
        further: usize,
    },
    /// The sandboxes have together used up their disk quota.
    #[error("the session's disk quota ({most}) is used up")]
    Full {
        /// The limit, for people.
        most: String,
    },
    /// A path leads elsewhere.
    #[error("{path} is not in the workspace")]
    Outside {
        /// The path.
        path: String,
    },
    /// The path has no changes.
    #[error("{path} has no changes")]
    Unchanged {
        /// The path.
        path: String,
    },
}

/// Changes of a session, as one frozen state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// The files and their diff.
    pub changes: WorkspaceChanges,
    /// The digest of the state ([`ReviewDigest`](crate::workspace::digest::ReviewDigest)).
    pub digest: String,
    /// The paths that gain trust where they go, or the first of them.
    pub asking: Vec<PathApproval>,
    /// Number of further such paths.
    pub further: usize,
}

/// Result of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitOutcome {
    /// The files.
    pub changes: WorkspaceChanges,
    /// The digest of the state that was written.
    pub digest: String,
}

/// Paths that were approved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ApprovedPathsMessage {
    is_all: bool,
    paths: Vec<String>,
}

/// A path that needs an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathApproval {
    /// The path.
    pub path: String,
    /// The stable code of who would trust it.
    pub kind: String,
    /// Reason, for a person.
    pub reason: String,
}

fn running(processes: &u64, commands: &[String]) -> String {
    match commands {
        [] => format!("{processes} in the background"),
        commands => format!("{processes} processes of {}", commands.join(", ")),
    }
}

fn more(further: &usize) -> String {
    if *further == 0 { String::new() } else { format!(" and {further} more") }
}

/// Resource usage of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Processes that run.
    pub processes: u64,
    /// Memory that they hold.
    pub memory_bytes: u64,
    /// Processor time used.
    pub cpu_time_ms: u64,
}

/// Outcome of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramOutcome {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signaled(i32),
    /// It was killed with the whole session.
    Killed,
    /// It ended with the whole session, which exceeded this limit.
    Exceeded(Limit),
}

// === impl Refusal ===

impl Refusal {
    /// Refuses a review in which files are listed without being shown.
    ///
    /// # Errors
    /// [`Refusal::Unshown`] if there are any.
    pub fn of_unshown(paths: &[PathBuf]) -> Result<(), Self> {
        const MOST_NAMED: usize = 20;
        if paths.is_empty() {
            return Ok(());
        }
        let named = paths.iter().take(MOST_NAMED).map(|path| untrusted::name(path)).collect();
        Err(Self::Unshown { paths: named, further: paths.len().saturating_sub(MOST_NAMED) })
    }
}

/// Standard streams of a program in a session.
#[derive(Debug)]
pub enum ProgramStreams {
    /// These descriptors: input, output and error.
    Descriptors([OwnedFd; 3]),
    /// A terminal of its own.
    Terminal,
}

/// Sends something with descriptors.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    what: &impl Serialize,
    descriptors: &[OwnedFd],
) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(what).map_err(|_| Errno::BADMSG)?;
    message::send(socket, &bytes, &message::borrowed(descriptors))
}

/// Receives a message with descriptors; `None` when the other end is gone.
pub(super) fn receive<T: DeserializeOwned>(socket: &OwnedFd) -> Result<Option<(T, Vec<OwnedFd>)>, Errno> {
    let Some((bytes, descriptors)) = message::receive(socket.as_fd())? else { return Ok(None) };
    let what = serde_json::from_slice(&bytes).map_err(|_| Errno::BADMSG)?;
    Ok(Some((what, descriptors)))
}

/// Writes a document where its descriptor can be sent: it may be larger than a message.
pub(super) fn document(what: &impl Serialize) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"belljar-document", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(BufWriter::new(&mut file), what)?;
    file.rewind()?;
    Ok(file.into())
}

/// Reads such a document.
pub(super) fn read_document<T: DeserializeOwned>(descriptors: Vec<OwnedFd>) -> Result<T, Errno> {
    let document = descriptors.into_iter().next().ok_or(Errno::BADMSG)?;
    serde_json::from_reader(BufReader::new(File::from(document))).map_err(|_| Errno::BADMSG)
}

// === impl ProgramOutcome ===

impl ProgramOutcome {
    /// The exit code that a shell would give.
    pub fn exit_code(self) -> u8 {
        sealed::ProgramOutcome::from(self).exit_code()
    }
}

impl From<ProgramOutcome> for sealed::ProgramOutcome {
    fn from(outcome: ProgramOutcome) -> Self {
        match outcome {
            ProgramOutcome::Exited(code) => Self::Exited(code),
            ProgramOutcome::Signaled(signal) => Self::Signaled(signal),
            ProgramOutcome::Killed | ProgramOutcome::Exceeded(_) => Self::Killed,
        }
    }
}

impl From<sealed::ProgramOutcome> for ProgramOutcome {
    fn from(outcome: sealed::ProgramOutcome) -> Self {
        match outcome {
            sealed::ProgramOutcome::Exited(code) => Self::Exited(code),
            sealed::ProgramOutcome::Signaled(signal) => Self::Signaled(signal),
            sealed::ProgramOutcome::Killed => Self::Killed,
            sealed::ProgramOutcome::OutOfMemory => Self::Exceeded(Limit::Memory),
        }
    }
}

// === impl ApprovedPathsMessage ===

impl ApprovedPathsMessage {
    pub(super) fn of(trust: &ApprovedPaths) -> Self {
        Self { is_all: trust.is_in_all(), paths: trust.paths().map(str::to_owned).collect() }
    }
}

impl From<ApprovedPathsMessage> for ApprovedPaths {
    fn from(ApprovedPathsMessage { is_all, paths }: ApprovedPathsMessage) -> Self {
        if is_all { Self::in_all() } else { Self::in_paths(paths) }
    }
}

// === impl PathApproval ===

impl PathApproval {
    /// Makes the entry of a finding.
    pub fn of(Finding { path, kind, reason }: &Finding) -> Self {
        Self { path: path.clone(), kind: kind.code().to_owned(), reason: reason.clone().into_owned() }
    }
}

// === impl Load ===

impl From<Stats> for Load {
    fn from(stats: Stats) -> Self {
        let cpu_time_ms = u64::try_from(stats.cpu.as_millis()).unwrap_or(u64::MAX);
        Self { processes: stats.processes, memory_bytes: stats.memory_bytes, cpu_time_ms }
    }
}
