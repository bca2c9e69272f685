//! Request for a sandbox, whichever backend builds it.

use crate::lent_paths::{self, LentPathError};
use crate::native::HostUser;
use crate::provision::Provision;
use crate::run::WorkspaceChoice;
use crate::state::{RunFolder, StateError};
use crate::workspace::snapshot::{self, SnapshotLimits};
use belljar_contract::id::RunId;
pub use belljar_files::host_path::HostPath;
use belljar_files::host_path::HostPathError;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// A sandbox, before any backend has looked at it.
#[derive(Debug)]
pub struct SandboxSpec {
    /// Run that owns the sandbox.
    pub id: RunId,
    /// User of its processes on the host.
    pub user: HostUser,
    /// Workspace, at `/workspace`.
    pub workspace: Workspace,
    /// True if a workspace that is changed in place was made for this run and belongs to its user.
    pub has_own_workspace: bool,
    /// The directory that is `/job`, if a job runs.
    pub job: Option<HostPath>,
    /// True if the program is the runner, which is allowed one call more than any other.
    pub is_runner: bool,
    /// An empty directory in memory that every layer but Landlock lets be written; for checking that Landlock doesn't.
    pub unlisted_scratch: Option<String>,
    /// Everything else that it is given.
    pub provision: Provision,
}

/// Workspace, at `/workspace`.
#[derive(Debug)]
pub enum Workspace {
    /// An empty directory in memory.
    Empty,
    /// A directory of the host, changed in place.
    Direct(HostPath),
    /// A directory of the host that can't be changed.
    Seen(HostPath),
    /// A directory of the host that is never changed; the changes go to layers of their own.
    Copy {
        /// The directory.
        source: HostPath,
        /// Takes the changes; empty at first.
        upper: HostPath,
        /// The kernel's scratch directory, beside `upper`.
        work: HostPath,
    },
}

/// A file or directory lent read-only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lent {
    /// Path on the host.
    pub path: HostPath,
    /// Path inside, relative to the sandbox's root.
    pub inside: String,
}

/// Something can't be lent.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// The path can't be looked at, or a sandbox may have made a link on the way.
    #[error(transparent)]
    Path(#[from] LentPathError),
    /// A file that Belljar itself lends can't be looked at.
    #[error(transparent)]
    Own(#[from] HostPathError),
    /// The path is one at which a sandbox has something of its own.
    #[error("cannot bind-mount {}: the sandbox uses this path itself", path.display())]
    Covered {
        /// The path.
        path: PathBuf,
    },
}

/// Places that a sandbox puts up itself.
const OWN_PLACES: [&str; 6] = ["proc", "dev", "job", "workspace", "llm-sock", "etc"];

/// A program to run in a sandbox.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub argv: Vec<OsString>,
    /// Working directory at the start, absolute, as seen inside.
    pub directory: String,
}

// === impl SandboxSpec ===

impl SandboxSpec {
    /// An empty one.
    pub fn new(id: RunId, user: HostUser) -> Self {
        Self {
            id,
            user,
            workspace: Workspace::Empty,
            job: None,
            has_own_workspace: false,
            is_runner: false,
            unlisted_scratch: None,
            provision: Provision::default(),
        }
    }
}

// === impl Lent ===

impl Lent {
    /// Lends a path of the host, seen at the same path inside.
    ///
    /// # Errors
    /// [`LendError`].
    pub fn at_its_place(path: &Path) -> Result<Self, LendError> {
        let covered = || LendError::Covered { path: path.to_owned() };
        let mut inside = path.components().filter(|part| *part != Component::RootDir);
        let is_own = |part: &Component<'_>| OWN_PLACES.iter().any(|place| part.as_os_str() == *place);
        let first = inside.clone().next().ok_or_else(covered)?;
        if is_own(&first) || !inside.all(|part| matches!(part, Component::Normal(_))) {
            return Err(covered());
        }
        let inside = path.to_str().and_then(|path| path.strip_prefix('/')).ok_or_else(covered)?;
        Ok(Self { path: lent_paths::resolve(path)?, inside: inside.to_owned() })
    }
}

// === impl Workspace ===

impl Workspace {
    /// Makes a workspace like [`Self::of_run`]; a copy is an overlay on a snapshot of its source, where that is cheap.
    /// Returns the snapshot, too.
    ///
    /// # Errors
    /// [`StateError`] when the layers can't be made.
    pub fn of_run_on_snapshot(
        (choice, cheap): (&WorkspaceChoice, SnapshotLimits),
        folder: Option<&RunFolder>,
        user: HostUser,
    ) -> Result<(Self, Option<HostPath>), StateError> {
        let snapshot = match (choice, folder) {
            (WorkspaceChoice::Copy(source), Some(folder)) => snapshot::take(source, folder, cheap),
            _ => None,
        };
        let made = match &snapshot {
            Some(snapshot) => Self::of_run(&WorkspaceChoice::Copy(snapshot.clone()), folder, user)?,
            None => Self::of_run(choice, folder, user)?,
        };
        Ok((made, snapshot))
    }

    /// Makes the workspace of a run, with layers for its changes in the run's folder if it is a copy.
    ///
    /// # Errors
    /// [`StateError`] when the layers can't be made, also for lack of a folder.
    pub fn of_run(
        choice: &WorkspaceChoice,
        folder: Option<&RunFolder>,
        user: HostUser,
    ) -> Result<Self, StateError> {
        let layer = |name: &str| match folder {
            Some(folder) => folder.make(name, user.identity()),
            None => Err(StateError::NoFolder),
        };
        Ok(match choice {
            WorkspaceChoice::Empty => Self::Empty,
            WorkspaceChoice::Direct(path) => Self::Direct(path.clone()),
            WorkspaceChoice::Seen(path) => Self::Seen(path.clone()),
            WorkspaceChoice::Copy(source) => {
                Self::Copy { source: source.clone(), upper: layer("upper")?, work: layer("work")? }
            }
        })
    }
}
