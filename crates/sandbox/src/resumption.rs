//! State that an attempt at a job leaves to the next one when its host died: the steps that were done, the todo list, the
//! artifacts, the workspace, which lies in the run's folder for that, and the host's own clones of repositories in it.
//!
//! ```text
//! begin ─► the folder is marked: whose it is, and not to be cleared away ─► the job ended: the folder is removed
//!                                   │ the host died
//!                                   ├─► the next attempt, on this machine since the same boot ─► moved into its folder
//!                                   └─► the job is over, or another machine's ─► removed
//! ```
//! The moved files were written by the job's own programs. Only names are moved, and no link is followed; the sandbox of
//! the next attempt has the same user.

use crate::native::HostUser;
use crate::state::{JOB, RunFolder, StateDirectory, StateError};
use belljar_confine::plan::Identity;
use belljar_contract::git::CLONES_OF_RUN;
use belljar_contract::id::{JobId, RunId};
use belljar_files::host_path::HostPath;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// An attempt at a job that may be made again.
#[derive(Debug, Clone)]
pub struct Resumption {
    /// The job.
    pub job_id: JobId,
    /// The attempt, from 1 on.
    pub attempt: u32,
}

/// The folder of the attempt before, whose host died.
#[derive(Debug)]
pub(crate) struct AbandonedFolder {
    folder: RunFolder,
    user: HostUser,
}

/// Owner of a folder.
#[derive(Debug, Serialize, Deserialize)]
struct OwnerMark {
    job_key: String,
    attempt: u32,
    host_uid: u32,
    host_gid: u32,
    /// Boot of the machine: files written before the machine went down may be there in part.
    boot_id: String,
}

const MARK: &str = "resumption.json";
const WORKSPACE: &str = "workspace";

/// Entries of `/job` that are moved: the state that the runner resumes from, and the files to be kept.
const MOVED: [&str; 3] = ["steps.jsonl", "todo.json", "artifacts"];

// === impl Resumption ===

impl Resumption {
    /// Returns the leftovers of the previous attempt, if it was made on this machine and its host died.
    pub(crate) fn left(&self, state: &StateDirectory) -> Option<AbandonedFolder> {
        let boot_id = boot_id().ok()?;
        marked(state).into_iter().find_map(|(id, mark)| {
            let is_before = mark.job_key == self.job_id.key() && mark.attempt + 1 == self.attempt;
            let user = HostUser::again(mark.host_uid, mark.host_gid)?;
            let folder = state.adopt(&id).filter(|_| is_before && mark.boot_id == boot_id)?;
            Some(AbandonedFolder { folder, user })
        })
    }

    /// Makes the workspace of this attempt in its folder, with what the attempt before has left, and marks the folder.
    pub(crate) fn prepare(
        &self,
        state: &StateDirectory,
        (folder, owner): (&RunFolder, Identity),
        left: Option<AbandonedFolder>,
    ) -> Result<HostPath, StateError> {
        let (own, workspace) = (folder.private(), folder.private().join(WORKSPACE));
        if let Some(AbandonedFolder { folder: before, .. }) = left {
            for name in MOVED {
                // Steps whose files are missing are done again.
                let _ = fs::rename(before.private().join(JOB).join(name), own.join(JOB).join(name));
            }
            let moved = fs::rename(before.private().join(WORKSPACE), &workspace);
            match moved {
                // Without the clones, nothing could be pushed from those that an agent has in the workspace.
                Ok(()) => {
                    let _ = fs::rename(before.path().join(CLONES_OF_RUN), folder.path().join(CLONES_OF_RUN));
                }
                // Steps that were done without what they have done are not done.
                Err(_) => {
                    let _ = fs::remove_file(own.join(JOB).join("steps.jsonl"));
                }
            }
            // Reconciliation finds leftovers of the folder by its mark.
            let _ = before.remove();
        }
        let workspace = match workspace.exists() {
            true => HostPath::resolve(workspace)?,
            false => folder.make(WORKSPACE, owner)?,
        };
        self.mark(folder, owner)?;
        // It stays until the folder is removed as a whole.
        std::mem::forget(state.retain(folder.id())?);
        Ok(workspace)
    }

    fn mark(&self, folder: &RunFolder, owner: Identity) -> Result<(), StateError> {
        let path = folder.path().join(MARK);
        let make = |source| StateError::Make { path: path.clone(), source };
        let mark = OwnerMark {
            job_key: self.job_id.key(),
            attempt: self.attempt,
            host_uid: owner.host_uid,
            host_gid: owner.host_gid,
            boot_id: boot_id().map_err(make)?,
        };
        let text = serde_json::to_vec(&mark).map_err(|error| make(error.into()))?;
        fs::write(&path, text).map_err(make)
    }
}

// === impl AbandonedFolder ===

impl AbandonedFolder {
    /// The user that the sandbox of the attempt before was, and that of the next one is.
    pub(crate) fn user(&self) -> HostUser {
        self.user
    }
}

/// The runs that have left something to a next attempt and whose host died: each with the key of its job.
pub fn waiting(state: &StateDirectory) -> Vec<(RunId, String)> {
    let marked = marked(state).into_iter().filter(|(id, _)| !state.is_owned(id));
    marked.map(|(id, mark)| (id, mark.job_key)).collect()
}

/// Removes what a run has left to a next attempt, where there is none.
pub fn remove(state: &StateDirectory, id: &RunId) {
    // A folder that can't be removed is found by its mark again.
    let _ = state.adopt(id).map(RunFolder::remove);
}

fn marked(state: &StateDirectory) -> Vec<(RunId, OwnerMark)> {
    let runs = fs::read_dir(state.path().join("runs")).into_iter().flatten().flatten();
    let marked = runs.filter_map(|run| {
        let id = RunId::parse(run.file_name().to_str()?).ok()?;
        Some((id, read(&run.path().join(MARK))?))
    });
    marked.collect()
}

fn read(path: &Path) -> Option<OwnerMark> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn boot_id() -> std::io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}
