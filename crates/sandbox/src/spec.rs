//! What a sandbox is asked to be, whichever backend builds it.

use crate::given::{self, GivenError};
use crate::hatch::Hatch;
use crate::limits::Limits;
use crate::native::HostUser;
use crate::run::WorkspaceChoice;
use crate::state::{RunFolder, StateError};
use crate::workspace::snapshot::{self, Cheap};
pub use belljar_confine::plan::HostPath;
use belljar_confine::plan::HostPathError;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Required;
use belljar_contract::programs::ProgramList;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// A sandbox, before any backend has looked at it.
#[derive(Debug)]
pub struct SandboxSpec {
    /// Whose sandbox it is.
    pub id: RunId,
    /// Who its processes are on the host.
    pub user: HostUser,
    /// What is at `/workspace`.
    pub workspace: Workspace,
    /// Whether a workspace that is changed in place was made for this run and belongs to its user.
    pub has_own_workspace: bool,
    /// The directory that is `/job`, if a job runs.
    pub job: Option<HostPath>,
    /// Whether the program is the runner, which is allowed one call more than any other.
    pub is_runner: bool,
    /// What the host lends besides, read-only.
    pub lent: Vec<Lent>,
    /// An empty directory in memory that every layer but Landlock lets be written; for checking that Landlock doesn't.
    pub unlisted_scratch: Option<String>,
    /// Ways out of it, of which the host gets the sockets.
    pub hatches: Vec<Hatch>,
    /// Variables added to the sandbox's environment, which is otherwise made from nothing.
    pub env: BTreeMap<String, String>,
    /// Files in its home that are there before anything runs, by their path below it.
    pub home: BTreeMap<String, String>,
    /// The only programs that can be started in it, if not all can.
    pub programs: Option<ProgramList>,
    /// What it may use.
    pub limits: Limits,
    /// The layers without which there shall be no sandbox.
    pub required: Required,
}

/// What is at `/workspace`.
#[derive(Debug)]
pub enum Workspace {
    /// Nothing: an empty directory in memory.
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
    /// What.
    pub path: HostPath,
    /// Where it is seen, relative to the sandbox's root.
    pub inside: String,
}

/// Something can't be lent.
#[derive(Debug, thiserror::Error)]
pub enum LendError {
    /// It can't be looked at, or a sandbox may have made it lead where it does.
    #[error(transparent)]
    Path(#[from] GivenError),
    /// What Belljar itself lends can't be looked at.
    #[error(transparent)]
    Own(#[from] HostPathError),
    /// It is where a sandbox has something of its own.
    #[error("{} can't be lent: a sandbox has something else there", path.display())]
    Covered {
        /// The path.
        path: PathBuf,
    },
}

/// What a sandbox puts up itself.
const OWN_PLACES: [&str; 6] = ["proc", "dev", "job", "workspace", "llm-sock", "etc"];

/// A program to run in a sandbox.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub argv: Vec<OsString>,
    /// Where it starts, absolute, as seen inside.
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
            lent: Vec::new(),
            unlisted_scratch: None,
            hatches: Vec::new(),
            env: BTreeMap::new(),
            home: BTreeMap::new(),
            programs: None,
            limits: Limits::default(),
            required: Required::default(),
        }
    }
}

// === impl Lent ===

impl Lent {
    /// What is there on the host, seen at the same place inside.
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
        Ok(Self { path: given::resolve(path)?, inside: inside.to_owned() })
    }
}

// === impl Workspace ===

impl Workspace {
    /// As [`Self::of_run`]; a copy lies on a snapshot of its source, where that is cheap. Returns the snapshot, too.
    ///
    /// # Errors
    /// [`StateError`] when the layers can't be made.
    pub fn of_run_on_snapshot(
        (choice, cheap): (&WorkspaceChoice, Cheap),
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

    /// The workspace of a run, with layers for its changes in the run's folder if it is a copy.
    ///
    /// # Errors
    /// [`StateError`] when the layers can't be made, for want of a folder, too.
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
