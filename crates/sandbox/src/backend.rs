//! Common interface of all backends: one set of traits, one conformance suite (`tests/conformance.rs`).
//!
//! ```text
//! Backend ── create ──► Sandbox ── exec ──► Execution
//!   health                copy in, copy out    signal, kill
//!   reconcile             stats                its terminal
//!                         pause, resume        wait
//!                         destroy
//! ```
//! Everything is blocking and may be called from any thread; a program that wants to wait for many things at once
//! waits on their descriptors.

use crate::limits::Limit;
use crate::provision::Provision;
use crate::run::WorkspaceChoice;
use crate::spec::Program;
use crate::workspace::imprint::Imprint;
use crate::workspace::live_workspace::HeldWorkspace;
use belljar_confine::plan::{Identity, Stdio};
use belljar_confine::sealed::SandboxEnding;
use belljar_contract::id::RunId;
use belljar_contract::isolation::{Isolation, Layer};
pub use belljar_contract::text::with_causes;
use belljar_files::directory::Directory;
use rustix::fd::{BorrowedFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::Debug;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Makes sandboxes of one kind.
pub trait Backend: Debug + Send + Sync {
    /// The name that configurations and reports use.
    fn name(&self) -> &'static str;

    /// Returns true if its sandboxes have a root of their own, in which lent paths can be seen anywhere. Otherwise they are
    /// seen where they are on the host.
    fn has_own_root(&self) -> bool {
        true
    }

    /// Checks that sandboxes can be made here, by using everything that making one needs.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] with what is missing.
    fn health(&self) -> Result<(), BackendError>;

    /// Makes a sandbox in which nothing runs yet.
    ///
    /// # Errors
    /// [`BackendError`]; nothing of the sandbox is left after an error.
    fn create(&self, wanted: SandboxRequest) -> Result<Box<dyn Sandbox>, BackendError>;

    /// Makes a sandbox like [`Self::create`]. `fill` first puts files into its layer of changes, or into the workspace
    /// itself if that is empty at first. Nothing runs in it yet.
    ///
    /// # Errors
    /// [`BackendError`], also that of `fill`; nothing of the sandbox is left then.
    fn create_filled(
        &self,
        _wanted: SandboxRequest,
        _fill: DirectoryFiller<'_>,
    ) -> Result<Box<dyn Sandbox>, BackendError> {
        let why = "the workspace of a sandbox can't be filled beforehand".to_owned();
        Err(BackendError::Unavailable { backend: self.name(), why })
    }

    /// Clears away what sandboxes of this deployment left whose owner is gone, and returns the ids of their runs. Leftovers
    /// of another deployment, or of a live owner, are not touched.
    ///
    /// # Errors
    /// [`BackendError`] for the first leftover that can't be cleared away.
    fn reconcile(&self) -> Result<Vec<RunId>, BackendError>;
}

/// A sandbox. Dropping it destroys it.
pub trait Sandbox: Debug + Send + Sync {
    /// The id that its host gave it.
    fn id(&self) -> &RunId;

    /// Returns the state of every layer, in force or not.
    fn isolation(&self) -> &Isolation;

    /// Returns its workspace, if the host reaches it by descriptor.
    fn workspace(&self) -> Option<&HeldWorkspace> {
        None
    }

    /// State of its workspace before anything ran, if that is a copy which shares nothing with its source.
    fn imprint(&self) -> Option<&Imprint> {
        None
    }

    /// The listening sockets of its hatches, in the order of [`crate::hatch::Hatch::sockets`], for the host to serve. They are given out
    /// once.
    fn take_hatches(&mut self) -> Vec<OwnedFd> {
        Vec::new()
    }

    /// Starts a program. Several may run at once; what they leave in the background runs on.
    ///
    /// # Errors
    /// [`BackendError::NotStarted`] when the program can't be run, others when the sandbox can't be reached.
    fn exec(&self, program: &Program, stdio: Stdio) -> Result<Box<dyn Execution>, BackendError>;

    /// Unpacks a tar archive below a directory of the sandbox: files, directories and links. Nothing in the archive and
    /// nothing in the sandbox leads elsewhere.
    ///
    /// # Errors
    /// [`BackendError::Copy`] with the path; what came before it stays.
    fn copy_in(&self, inside: &str, archive: &mut dyn Read) -> Result<(), BackendError>;

    /// Packs what is at a path of the sandbox into a tar archive: files, directories and links, under the path's last
    /// name.
    ///
    /// # Errors
    /// [`BackendError::Copy`] with the path.
    fn copy_out(&self, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError>;

    /// Returns what runs in it, and its resource usage.
    ///
    /// # Errors
    /// [`BackendError`] when it can't be asked.
    fn stats(&self) -> Result<Stats, BackendError>;

    /// Returns true if it has ended by itself, as far as the host knows without asking a process in it.
    fn has_ended(&self) -> bool;

    /// Returns the limit that has ended it, if one has. Can be called when everything in it is gone, too.
    fn ended_by(&self) -> Option<Limit>;

    /// Stops everything in it where it is. Back when it stands still, as far as it can be brought to.
    ///
    /// # Errors
    /// [`BackendError`] when it can't be reached.
    fn pause(&self) -> Result<(), BackendError>;

    /// Lets everything in it go on.
    ///
    /// # Errors
    /// [`BackendError`] when it can't be reached.
    fn resume(&self) -> Result<(), BackendError>;

    /// Kills everything in it, without asking anything in it and without waiting, if the host can do that. It still has to be
    /// destroyed.
    fn kill(&self) {}

    /// Ends everything in it and clears it away; back when nothing of it is left.
    ///
    /// # Errors
    /// [`BackendError`] for what can't be cleared away. Nothing of it runs, even then.
    fn destroy(self: Box<Self>) -> Result<(), BackendError>;
}

/// A program in a sandbox. Dropping it kills the program.
pub trait Execution: Debug + Send {
    /// Takes the host's end of its terminal, if it has one: what is written there is typed, what it prints is read.
    fn take_terminal(&mut self) -> Option<OwnedFd>;

    /// Sets the size of the program's terminal.
    ///
    /// # Errors
    /// [`BackendError`] when it has none.
    fn resize(&self, size: TerminalSize) -> Result<(), BackendError>;

    /// Sends a signal to the program's process group. Harmless when it has ended.
    ///
    /// # Errors
    /// [`BackendError`] when the sandbox can't be reached.
    fn signal(&self, signal: i32) -> Result<(), BackendError>;

    /// Kills the program and what it has started.
    ///
    /// # Errors
    /// [`BackendError`] when the sandbox can't be reached.
    fn kill(&self) -> Result<(), BackendError>;

    /// Becomes readable when the program has ended.
    fn ending(&self) -> BorrowedFd<'_>;

    /// Waits until the program has ended, or until `deadline`: then `None`.
    ///
    /// # Errors
    /// [`BackendError`] when it can't be waited for; the program may live on.
    fn wait_until(&mut self, deadline: Option<Instant>) -> Result<Option<SandboxEnding>, BackendError>;
}

/// Fills a directory for this user.
pub type DirectoryFiller<'a> =
    &'a mut dyn FnMut(&Directory, Identity) -> Result<(), Box<dyn Error + Send + Sync>>;

/// Request for a sandbox.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SandboxRequest {
    /// Workspace, at `/workspace`.
    pub workspace: WorkspaceChoice,
    /// Everything else that it is given.
    pub provision: Provision,
}

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// Current resource usage of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Processes that run.
    pub processes: u64,
    /// Memory that they hold, in bytes.
    pub memory_bytes: u64,
    /// Processor time used since it was made.
    pub cpu: Duration,
}

/// Why a backend could not do something.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Sandboxes of this kind can't be made here.
    #[error("the {backend} backend is not available: {why}")]
    Unavailable {
        /// The backend's name.
        backend: &'static str,
        /// Description of what is missing, and how to get it if that is known.
        why: String,
    },
    /// A sandbox can't be made.
    #[error("can't make a sandbox")]
    Create(#[source] Box<dyn Error + Send + Sync>),
    /// A required layer is not available. The sandbox is not made.
    #[error("the {backend} backend can't give {}", in_words(.missing))]
    Weaker {
        /// The backend's name.
        backend: &'static str,
        /// The layers that are missing, each with the reason.
        missing: Vec<Layer>,
    },
    /// A list of programs can't be held. There is no sandbox then.
    #[error("the {backend} backend cannot enforce a list of programs: {why}")]
    Programs {
        /// The backend's name.
        backend: &'static str,
        /// Description of what is missing.
        why: &'static str,
    },
    /// A program can't be run.
    #[error("can't run {program}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: rustix::io::Errno,
    },
    /// The sandbox is over.
    #[error("the sandbox has ended")]
    Gone,
    /// The sandbox can't be reached, or doesn't do what is requested.
    #[error("can't reach the sandbox")]
    Reach(#[source] Box<dyn Error + Send + Sync>),
    /// Something can't be copied.
    #[error("can't copy {path}")]
    Copy {
        /// The path inside.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The leftovers of a sandbox can't be cleared away.
    #[error("cannot remove the leftovers of a sandbox")]
    Clear(#[source] Box<dyn Error + Send + Sync>),
}

pub(crate) fn in_words(missing: &[Layer]) -> String {
    let words: Vec<_> = missing.iter().map(|layer| format!("{} ({})", layer.name, layer.detail)).collect();
    words.join(", ")
}
