//! Reaching a session's keeper.

use super::keeper::address;
use super::protocol::{
    ApprovedPathsMessage, CommitOutcome, KeeperRequestMessage, KeeperResponse, Load, ProgramOutcome,
    ProgramStreams, Refusal, Review, UncommittedChanges, read_document, receive, send,
};
use super::{DESCRIPTION, Session};
use crate::backend::TerminalSize;
use crate::config::BackendName;
use crate::limits::Limit;
use crate::state::StateDirectory;
use crate::workspace::digest::ReviewDigest;
use belljar_contract::category::Category;
use belljar_contract::result::WorkspaceChanges;
use belljar_policy::handoff::ApprovedPaths;
use belljar_policy::untrusted::Untrusted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A session, as it can be reached.
#[derive(Debug, Clone)]
pub struct SessionClient {
    session: Session,
    folder: PathBuf,
    /// Category of tools that commands are for, if any.
    category: Option<Category>,
}

/// A program in a session. Dropping it has the program killed.
#[derive(Debug)]
pub struct SessionExecution {
    socket: OwnedFd,
    /// The host's end of its terminal, if it has one.
    pub terminal: Option<OwnedFd>,
    /// Once it is known.
    outcome: Cell<Option<ProgramOutcome>>,
}

/// A commit that waits for a person's answer. Dropping it writes nothing.
#[derive(Debug)]
pub struct PendingCommit {
    socket: OwnedFd,
    review: Review,
}

/// Activity of a session.
#[derive(Debug, Clone, Serialize)]
pub struct SessionDescription {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Number of running commands.
    pub running: u64,
    /// Time since the last command ended.
    pub idle_for: Duration,
    /// Resource usage; `None` if its sandbox doesn't answer.
    pub load: Option<Load>,
}

/// Why a session can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No session has that name or id.
    #[error("there is no session {name}")]
    NoSuch {
        /// The name or id.
        name: String,
    },
    /// Several sessions have that name.
    #[error("{name} names several sessions: {}", ids.join(", "))]
    Ambiguous {
        /// The name, or the beginning of an id.
        name: String,
        /// Their ids, with their names.
        ids: Vec<String>,
    },
    /// The session doesn't answer.
    #[error("the session does not answer")]
    Unreachable {
        /// Why.
        #[source]
        source: Errno,
    },
    /// A program can't be run.
    #[error("can't run {program}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: Errno,
    },
    /// A program was not started in time.
    #[error("the program has not started in time")]
    OutOfTime,
    /// The session refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The session has no sandbox for the request at present.
    #[error("{message}")]
    Unavailable {
        /// Description of what is missing.
        message: String,
    },
    /// The session could not carry out the request.
    #[error("{message}")]
    Failed {
        /// Why.
        message: String,
    },
}

/// The sessions that live.
pub fn list(state: &StateDirectory) -> Vec<SessionClient> {
    let folders = std::fs::read_dir(state.path().join("runs")).into_iter().flatten().flatten();
    let mut sessions: Vec<SessionClient> = folders
        .filter_map(|folder| {
            let folder = folder.path();
            let session = serde_json::from_slice(&std::fs::read(folder.join(DESCRIPTION)).ok()?).ok()?;
            let client = SessionClient { session, folder, category: None };
            client.call().is_ok().then_some(client)
        })
        .collect();
    sessions.sort_by_key(|client| client.session.created_at);
    sessions
}

/// The session with that id, or of that name, or whose id begins so. A whole id prevails over a name.
///
/// # Errors
/// [`SessionError`] when there is none, or more than one.
pub fn find(state: &StateDirectory, name: &str) -> Result<SessionClient, SessionError> {
    let sessions = list(state);
    if let Some(client) = sessions.iter().find(|client| client.session.id == name) {
        return Ok(client.clone());
    }
    let is_meant = |client: &SessionClient| {
        let begins_so = !name.is_empty() && client.session.id.starts_with(name);
        begins_so || client.session.name.as_deref() == Some(name)
    };
    let mut meant = sessions.into_iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(client), None) => Ok(client),
        (Some(one), Some(other)) => {
            let shown = [&one, &other].map(|client| match &client.session.name {
                Some(label) => format!("{} (named {})", client.session.id, Untrusted(label)),
                None => client.session.id.clone(),
            });
            let ids = shown.into_iter().chain(meant.map(|client| client.session.id)).collect();
            Err(SessionError::Ambiguous { name: name.to_owned(), ids })
        }
        (None, _) => Err(SessionError::NoSuch { name: name.to_owned() }),
    }
}

/// Returns the descriptions of these sessions, in their order. All are asked at once, so that a session that doesn't answer
/// holds up no other. A session that has ended meanwhile is left out.
pub fn describe_all(sessions: &[SessionClient]) -> Vec<SessionDescription> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = sessions.iter().map(|client| scope.spawn(|| client.describe())).collect();
        asked.into_iter().filter_map(|description| description.join().ok()?.ok()).collect()
    })
}

// === impl SessionClient ===

impl SessionClient {
    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns this client for tools of that category: their commands run in the sandbox for them.
    #[must_use]
    pub fn for_tools_of(self, category: Category) -> Self {
        Self { category: Some(category), ..self }
    }

    /// Which backend makes the sandbox that this runs programs in.
    pub fn backend(&self) -> BackendName {
        self.session.backend_for(self.category)
    }

    /// Runs a program in it, which has to be started by `deadline`.
    ///
    /// # Errors
    /// [`SessionError`]; nothing of the program is left then.
    pub fn exec(
        &self,
        argv: &[OsString],
        directory: &str,
        streams: ProgramStreams,
        deadline: Option<Instant>,
    ) -> Result<SessionExecution, SessionError> {
        let socket = self.call().map_err(unreachable)?;
        let argv = argv.iter().map(|argument| argument.clone().into_vec()).collect();
        let terminal = matches!(streams, ProgramStreams::Terminal);
        let ask = KeeperRequestMessage::Exec {
            argv,
            directory: directory.to_owned(),
            terminal,
            category: self.category,
        };
        match streams {
            ProgramStreams::Descriptors(descriptors) => send(socket.as_fd(), &ask, &descriptors),
            ProgramStreams::Terminal => send(socket.as_fd(), &ask, &[]),
        }
        .map_err(unreachable)?;
        if !is_readable_by(&socket, deadline)? {
            return Err(SessionError::OutOfTime);
        }
        match receive(&socket).map_err(unreachable)? {
            Some((KeeperResponse::Started, descriptors)) => {
                let terminal = descriptors.into_iter().next();
                Ok(SessionExecution { socket, terminal, outcome: Cell::default() })
            }
            Some((KeeperResponse::NotStarted { program, errno }, _)) => {
                Err(SessionError::NotStarted { program, source: Errno::from_raw_os_error(errno) })
            }
            other => Err(unexpected(other.map(|(answer, _)| answer))),
        }
    }

    /// Returns the session's activity.
    ///
    /// # Errors
    /// [`SessionError`] when it doesn't answer.
    pub fn describe(&self) -> Result<SessionDescription, SessionError> {
        match self.ask(&KeeperRequestMessage::Describe)? {
            Some(KeeperResponse::Description { session, running, idle_for, load }) => {
                Ok(SessionDescription { session: *session, running, idle_for, load })
            }
            other => Err(unexpected(other)),
        }
    }

    /// Returns the changes in its copy so far, as one frozen state.
    ///
    /// # Errors
    /// [`SessionError`], also when its workspace is no copy.
    pub fn changes(&self) -> Result<Review, SessionError> {
        self.ask_for_document(&KeeperRequestMessage::Changes)
    }

    /// Writes the changes into the directory that was copied, as one frozen state, and returns them. With the digest of a
    /// review, it writes only if that state is the reviewed one. With `unshown` it writes also if the review lists files
    /// that it doesn't show. The session goes on as before.
    ///
    /// # Errors
    /// [`SessionError`], also when the state is another than the reviewed one, when one of the files was changed in the directory
    /// meanwhile, or when a path gains trust that isn't trusted; nothing was written then.
    pub fn commit(
        &self,
        trust: &ApprovedPaths,
        reviewed: Option<ReviewDigest>,
        unshown: bool,
    ) -> Result<CommitOutcome, SessionError> {
        self.ask_for_document(&KeeperRequestMessage::Commit {
            trusted: ApprovedPathsMessage::of(trust),
            reviewed,
            unshown,
        })
    }

    /// Begins a commit by a person: returns the changes that would be written, which stay as they are until they are
    /// written or dropped.
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn review(&self) -> Result<PendingCommit, SessionError> {
        let socket = self.call().map_err(unreachable)?;
        let review = ask_on(&socket, &KeeperRequestMessage::Review)?;
        Ok(PendingCommit { socket, review })
    }

    /// Undoes the changes at these paths and below, or everywhere if there are none, and returns what was undone.
    ///
    /// # Errors
    /// [`SessionError`], also when programs run in it and this is not `forced`.
    pub fn discard(&self, paths: &[PathBuf], forced: bool) -> Result<WorkspaceChanges, SessionError> {
        let paths = paths.iter().map(|path| path.as_os_str().as_bytes().to_owned()).collect();
        self.ask_for_document(&KeeperRequestMessage::Discard { paths, forced })
    }

    fn ask_for_document<T: DeserializeOwned>(&self, ask: &KeeperRequestMessage) -> Result<T, SessionError> {
        ask_on(&self.call().map_err(unreachable)?, ask)
    }

    /// Ends it, with everything in it. Returns, when nothing of it is left, whether changes are kept under its id.
    ///
    /// # Errors
    /// [`SessionError`] when it doesn't answer, and [`Refusal::Uncommitted`] if that is wanted.
    pub fn end(&self, uncommitted: UncommittedChanges) -> Result<bool, SessionError> {
        match self.ask(&KeeperRequestMessage::End { uncommitted })? {
            Some(KeeperResponse::Over { kept }) => Ok(kept),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&self, ask: &KeeperRequestMessage) -> Result<Option<KeeperResponse>, SessionError> {
        let socket = self.call().map_err(unreachable)?;
        send(socket.as_fd(), ask, &[]).map_err(unreachable)?;
        Ok(receive(&socket).map_err(unreachable)?.map(|(answer, _)| answer))
    }

    pub(super) fn call(&self) -> Result<OwnedFd, Errno> {
        let folder = File::open(&self.folder).map_err(|_| Errno::NOENT)?;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &address(folder.as_fd())?)?;
        Ok(socket)
    }
}

/// Asks a keeper for a document.
fn ask_on<T: DeserializeOwned>(socket: &OwnedFd, ask: &KeeperRequestMessage) -> Result<T, SessionError> {
    send(socket.as_fd(), ask, &[]).map_err(unreachable)?;
    match receive(socket).map_err(unreachable)? {
        Some((KeeperResponse::Document, descriptors)) => read_document(descriptors).map_err(unreachable),
        other => Err(unexpected(other.map(|(answer, _)| answer))),
    }
}

// === impl PendingCommit ===

impl PendingCommit {
    /// Returns the review of the changes that would be written.
    pub fn review(&self) -> &Review {
        &self.review
    }

    /// Writes exactly that, whatever has changed in the sandbox since.
    ///
    /// # Errors
    /// [`SessionError`], as from [`SessionClient::commit`]; nothing was written then.
    pub fn write(self, trust: &ApprovedPaths) -> Result<CommitOutcome, SessionError> {
        ask_on(&self.socket, &KeeperRequestMessage::Write { trusted: ApprovedPathsMessage::of(trust) })
    }
}

// === impl SessionExecution ===

impl SessionExecution {
    /// Becomes readable when the program has ended.
    pub fn ending(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sets the size of the program's terminal.
    pub fn resize(&self, TerminalSize { rows, columns }: TerminalSize) {
        let _ = send(self.socket.as_fd(), &KeeperRequestMessage::Resize { rows, columns }, &[]);
    }

    /// Kills the program.
    pub fn kill(&self) {
        let _ = send(self.socket.as_fd(), &KeeperRequestMessage::Kill, &[]);
    }

    /// Waits until the program has ended, or until `deadline`: then `None`.
    ///
    /// # Errors
    /// [`SessionError`] when the session is gone.
    pub fn wait_until(&self, deadline: Option<Instant>) -> Result<Option<ProgramOutcome>, SessionError> {
        if !is_readable_by(&self.socket, deadline)? {
            return Ok(None);
        }
        let outcome = match receive(&self.socket).map_err(unreachable)? {
            Some((KeeperResponse::Ended(outcome), _)) => outcome,
            None | Some((KeeperResponse::Over { .. }, _)) => ProgramOutcome::Killed,
            Some((other, _)) => return Err(unexpected(Some(other))),
        };
        self.outcome.set(Some(outcome));
        Ok(Some(outcome))
    }

    /// Returns the limit that has ended the session, if one has and the program is known to have ended with it.
    pub fn ended_by(&self) -> Option<Limit> {
        match self.outcome.get() {
            Some(ProgramOutcome::Exceeded(limit)) => Some(limit),
            _ => None,
        }
    }
}

/// Waits until there is something to receive, or until `deadline`; false then.
fn is_readable_by(socket: &OwnedFd, deadline: Option<Instant>) -> Result<bool, SessionError> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], wait.as_ref()) {
            Ok(0) if left.is_some_and(|left| left.is_zero()) => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(unreachable(errno)),
        }
    }
}

pub(super) fn unreachable(source: Errno) -> SessionError {
    SessionError::Unreachable { source }
}

pub(super) fn unexpected(answer: Option<KeeperResponse>) -> SessionError {
    match answer {
        Some(KeeperResponse::Unavailable { message }) => SessionError::Unavailable { message },
        Some(KeeperResponse::Failed { message }) => SessionError::Failed { message },
        Some(KeeperResponse::Refused(refusal)) => refusal.into(),
        Some(_) => unreachable(Errno::PROTO),
        None => unreachable(Errno::CONNRESET),
    }
}
