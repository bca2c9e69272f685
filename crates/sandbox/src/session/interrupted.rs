//! Commits whose keeper died on the way. The session is over; what it changed is still there to be written.

use super::protocol::{ApprovedPathsMessage, CommitOutcome};
use super::{COMMIT, Session};
use crate::kept::{self, CopyRecord, KeptError, SettledRun};
use crate::run::WorkspaceChoice;
use crate::state::{RunFolder, StateDirectory};
use crate::workspace::apply::{self, ApplyError};
use crate::workspace::baseline::Baseline;
use crate::workspace::changes::{ChangeSet, ChangesError};
use crate::workspace::diff;
use crate::workspace::digest::ReviewDigest;
use crate::workspace::frozen::FrozenChanges;
use belljar_contract::id::RunId;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_policy::handoff::ApprovedPaths;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A commit that was interrupted. While it lives, no other process can finish the commit.
#[derive(Debug)]
pub struct InterruptedCommit {
    folder: RunFolder,
    note: CommitRecord,
    state: StateDirectory,
}

/// Record of a commit that is under way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommitRecord {
    pub(super) session: Session,
    pub(super) workspace: WorkspaceChoice,
    pub(super) baseline: Baseline,
    /// The sandboxes that stood then.
    #[serde(default)]
    pub(super) sandboxes: Vec<RunId>,
    pub(super) agreed: ApprovedState,
}

/// The state that a commit was to write. It is frozen, and nothing else is written when the commit is finished.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ApprovedState {
    set: ChangeSet,
    digest: ReviewDigest,
    /// The folder with the content, in the run's folder.
    tree: PathBuf,
    /// The paths that may gain trust.
    trusted: ApprovedPathsMessage,
}

/// Why a commit can't be finished. It can be tried again.
#[derive(Debug, thiserror::Error)]
pub enum FinishCommitError {
    /// A directory can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The changes can't be determined.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// The changes made since then can't be kept.
    #[error(transparent)]
    Keep(#[from] KeptError),
    /// The changes can't be written.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Maximum time for sandboxes to end after their keeper has.
const PATIENCE: Duration = Duration::from_secs(10);

/// Notes what it takes to finish a commit.
pub(super) fn note(path: &Path, note: &CommitRecord) -> std::io::Result<()> {
    // It names what is in the workspace.
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&serde_json::to_vec(&note)?)
}

/// The interrupted commit of a session of that name, or whose id begins so; of any session for no name.
pub fn interrupted(state: &StateDirectory, name: Option<&str>) -> Option<InterruptedCommit> {
    let folders = std::fs::read_dir(state.path().join("runs")).ok()?.flatten();
    let mut found = folders.filter_map(|folder| {
        let note = CommitRecord::read(&folder.path())?;
        let is_meant = name.is_none_or(|name| {
            note.session.name.as_deref() == Some(name)
                || (!name.is_empty() && note.session.id.starts_with(name))
        });
        let id = RunId::parse(folder.file_name().to_str()?).ok()?;
        is_meant.then(|| state.adopt(&id)).flatten().map(|folder| InterruptedCommit {
            folder,
            note,
            state: state.clone(),
        })
    });
    let first = found.next();
    // Two that are meant are none.
    if name.is_some() && found.next().is_some() { None } else { first }
}

/// Returns true for the folder of a run whose commit is under way or was interrupted.
pub fn has_commit(folder: &Path) -> bool {
    CommitRecord::read(folder).is_some()
}

// === impl CommitRecord ===

impl CommitRecord {
    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(COMMIT)).ok()?).ok()
    }
}

// === impl ApprovedState ===

impl ApprovedState {
    /// A frozen state whose content is in the folder `tree` of a run.
    pub(super) fn new(frozen: &FrozenChanges, tree: &Path, trust: &ApprovedPaths) -> Self {
        let parts = tree.components().rev().take(2).collect::<Vec<_>>();
        let tree = parts.into_iter().rev().collect();
        Self {
            set: frozen.set().clone(),
            digest: frozen.digest(),
            tree,
            trusted: ApprovedPathsMessage::of(trust),
        }
    }
}

// === impl InterruptedCommit ===

impl InterruptedCommit {
    /// The session that it was of.
    pub fn session(&self) -> &Session {
        &self.note.session
    }

    /// Writes the part of the agreed state that is not written yet, and returns it. Changes made after that state are kept.
    /// Paths that were trusted then are still trusted, in addition to `trust`.
    ///
    /// # Errors
    /// [`FinishCommitError`]; nothing is lost then.
    pub fn finish(mut self, trust: &ApprovedPaths) -> Result<CommitOutcome, FinishCommitError> {
        let WorkspaceChoice::Copy(source) = &self.note.workspace else {
            let source = rustix::io::Errno::INVAL;
            return Err(DirectoryError { path: PathBuf::from(COMMIT), source }.into());
        };
        self.wait_for_sandboxes();
        let source = Directory::open_meant(source)?;
        let ApprovedState { set, digest, tree, trusted } = &self.note.agreed;
        let tree = Directory::open_host(self.folder.path())?.open(tree)?;
        let frozen = FrozenChanges::restore(set.clone(), tree, *digest).without_applied(&source)?;
        let before: ApprovedPaths = trusted.clone().into();
        let trust = match trust.is_in_all() {
            true => ApprovedPaths::in_all(),
            false => before.and_in(trust.paths().map(str::to_owned)),
        };
        apply::commit(frozen.set(), frozen.tree(), &source, &mut self.note.baseline, &trust)?;
        let digest = frozen.digest().to_string();
        let written = CommitOutcome { changes: diff::listed(frozen.set().iter()), digest };
        self.keep_rest()?;
        Ok(written)
    }

    /// Keeps what a program changed after the state that was agreed on was frozen, and removes everything else.
    fn keep_rest(self) -> Result<(), KeptError> {
        let Self { folder, note, state } = self;
        let path = folder.path().to_owned();
        let written = match CopyRecord::read(&path) {
            Ok(Some(mut record)) => {
                record.set_baseline(&note.baseline);
                record.write(&path)
            }
            read => read.map(drop),
        };
        written.map_err(|source| KeptError::Io { path, source })?;
        match kept::settle(&state, folder, true)? {
            SettledRun::Unchanged(folder) => Ok(folder.remove()?),
            SettledRun::Kept(kept, _) => {
                // The commit is finished. What can't be removed of its note is read by nothing there.
                let _ = std::fs::remove_file(kept.path().join(COMMIT));
                Ok(())
            }
        }
    }

    /// Waits for the sandboxes, which end with their keeper and take a moment for it. Their files are looked at once they
    /// are gone, if they go.
    fn wait_for_sandboxes(&self) {
        let begun = Instant::now();
        let is_there = |id: &RunId| *id != *self.folder.id() && self.state.is_owned(id);
        while begun.elapsed() < PATIENCE && self.note.sandboxes.iter().any(is_there) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Throws away what is not written yet.
    ///
    /// # Errors
    /// [`FinishCommitError`] for what can't be cleared away.
    pub fn abandon(self) -> Result<(), FinishCommitError> {
        Ok(self.folder.remove()?)
    }
}
