//! The end of a session: uncommitted changes are kept, unless they are to be discarded.

use super::super::protocol::{KeeperResponse, Refusal, UncommittedChanges, send};
use super::checkpoint::{CheckpointError, answer_of, named_paths, read};
use super::keeper_workspace::{CommitBaseline, SessionWorkspace};
use super::sandboxes::Sandboxes;
use super::{Keeper, lock};
use crate::backend::BackendError;
use crate::kept::{self, CopyRecord, RunKind, RunLabel};
use crate::run::WorkspaceChoice;
use crate::session::Session;
use belljar_files::directory::Directory;
use rustix::fd::AsFd;
use rustix::fd::{AsRawFd, OwnedFd};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Writes the record that is needed to keep the changes of a session that works on a copy, whatever ends it.
pub(super) fn record(
    folder: &Path,
    session: &Session,
    sandboxes: &Sandboxes,
    ground: &SessionWorkspace,
    measure: &CommitBaseline,
) -> io::Result<()> {
    let WorkspaceChoice::Copy(source) = &ground.choice else { return Ok(()) };
    let standing = sandboxes.at_hand();
    let Ok((_, layers)) = ground.copy(&standing) else { return Ok(()) };
    let folder = folder.canonicalize()?;
    let label =
        RunLabel { kind: RunKind::Session, name: session.name.clone(), title: session.workspace.clone() };
    let layer = path_of(&layers.upper)?;
    let record = CopyRecord::begin(label, &folder, (source, &layer)).since(&measure.baseline);
    let record = match &measure.imprint {
        Some(imprint) => record.of_whole(imprint),
        None => record,
    };
    record.write(&folder)
}

/// The path of a directory that this process itself has made.
fn path_of(directory: &Directory) -> io::Result<PathBuf> {
    std::fs::read_link(Path::new("/proc/self/fd").join(directory.as_fd().as_raw_fd().to_string()))
}

// === impl Keeper ===

impl Keeper {
    /// Ends the session for a caller, which gets the answer when it is over.
    pub(super) fn end_for(&self, caller: &OwnedFd, uncommitted: UncommittedChanges) {
        if uncommitted == UncommittedChanges::Refused
            && let Err(error) = self.refuse_uncommitted()
        {
            let _ = send(caller.as_fd(), &answer_of(error), &[]);
            return;
        }
        if uncommitted == UncommittedChanges::Discarded {
            // Without a record what is in the folder goes with it. If the record can't be removed, the changes are kept.
            let _ = CopyRecord::remove(&self.state.run_folder(&self.id));
        }
        let kept = self.end();
        let _ = send(caller.as_fd(), &KeeperResponse::Over { kept }, &[]);
        self.is_ended.store(true, Ordering::Release);
    }

    /// Ends it, and returns whether it leaves changes. A change made after a caller was told that there is nothing to
    /// commit is kept, too.
    pub(super) fn end(&self) -> bool {
        self.sandboxes.end();
        self.ground.write().unwrap_or_else(PoisonError::into_inner).end();
        match kept::settle_by_id(&self.state, &self.id, false) {
            Ok(Some(_)) => true,
            // Another process may have been quicker. What can't be kept now is kept the next time.
            _ => {
                self.state.kept().join(self.id.as_str()).exists() || self.state.run_folder(&self.id).exists()
            }
        }
    }

    /// Fails if there is something to commit. For a session that has ended by itself this can't be determined, and ending
    /// it loses nothing.
    fn refuse_uncommitted(&self) -> Result<(), CheckpointError> {
        let measure = lock(&self.measure);
        let standing = match self.standing() {
            Err(BackendError::Gone) => return Ok(()),
            standing => standing?,
        };
        let ground = self.ground();
        let Ok((_, layers)) = ground.copy(&standing) else { return Ok(()) };
        let _still = match super::checkpoint::PausedSandboxes::bring_about(&standing) {
            Err(BackendError::Gone) => None,
            still => Some(still?),
        };
        let set = read(&measure, layers)?.carried(&layers.source)?;
        if set.is_empty() {
            return Ok(());
        }
        let (paths, further) = named_paths(set.iter().map(|(path, _)| path));
        Err(Refusal::Uncommitted { paths, further }.into())
    }

    /// Writes down what a commit has changed in how the copy is measured.
    pub(super) fn renew_record(&self, measure: &CommitBaseline) {
        let folder = self.state.run_folder(&self.id);
        if let Ok(Some(mut record)) = CopyRecord::read(&folder) {
            record.set_baseline(&measure.baseline);
            record.set_imprint(measure.imprint.as_ref());
            // With the older record, what this commit has written would be reported as a conflict later. Nothing is lost.
            let _ = record.write(&folder);
        }
    }
}
