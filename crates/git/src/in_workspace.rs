//! The host's own clones of repositories in the workspace of a run: they are in the run's folder, and are removed with it.

use super::base::{BaseError, HostClone, folders};
use belljar_contract::git::CLONES_OF_RUN;
use std::path::{Path, PathBuf};

/// Maximum number of clones of a run.
const MOST_IN_RUN: usize = 16;

// === impl HostClone ===

impl HostClone {
    /// Returns a new folder for a clone, in the folder of a run.
    pub fn folder_for_workspace(run: &Path) -> PathBuf {
        run.join(CLONES_OF_RUN).join(uuid::Uuid::now_v7().to_string())
    }

    /// Checks that a clone of that workspace directory may be added: at most 16 clones of other directories are kept, even if
    /// those directories are gone.
    ///
    /// # Errors
    /// [`BaseError::NoRoom`] when the limit is reached.
    pub fn room_in_workspace(run: &Path, directory: &str) -> Result<(), BaseError> {
        let place = |folder: &PathBuf| Self::open(folder).ok()?.record().workspace_directory.clone();
        let places = folders(&run.join(CLONES_OF_RUN));
        let others = places.iter().map(place).filter(|place| place.as_deref() != Some(directory));
        // An interrupted clone has no directory, and counts.
        let kept: Vec<_> =
            others.map(|place| place.unwrap_or_else(|| "one that was cut off".to_owned())).collect();
        match kept.len() < MOST_IN_RUN {
            true => Ok(()),
            false => Err(BaseError::NoRoom { kept }),
        }
    }

    /// Records that it belongs to that workspace directory now. Former clones of the directory are removed.
    ///
    /// # Errors
    /// [`BaseError`] when that can't be recorded.
    pub fn settled_in_workspace(&mut self, run: &Path, directory: &str) -> Result<(), BaseError> {
        self.is_in_workspace_at(directory)?;
        for (folder, other) in all(run) {
            let is_former = other.record().workspace_directory.as_deref() == Some(directory);
            if is_former && folder != self.folder() {
                // A former clone that can't be removed is older than this one, so it isn't chosen.
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
        Ok(())
    }

    /// Returns the newest clone of that workspace directory. The directory's content isn't consulted.
    ///
    /// # Errors
    /// [`BaseError`] when there is none.
    pub fn of_workspace(run: &Path, directory: &str) -> Result<Self, BaseError> {
        let there = all(run).into_iter().map(|(_, base)| base);
        let there = there.filter(|base| base.record().workspace_directory.as_deref() == Some(directory));
        let newest = there.max_by_key(|base| base.record().fetched_at);
        newest.ok_or_else(|| BaseError::NotCloned { name: directory.into() })
    }
}

fn all(run: &Path) -> Vec<(PathBuf, HostClone)> {
    let folders = folders(&run.join(CLONES_OF_RUN)).into_iter();
    folders.filter_map(|folder| Some((folder.clone(), HostClone::open(&folder).ok()?))).collect()
}
