//! The host's own clones of what is in the workspace of a session: in the folder of its run, and gone with it.

use super::base::{Base, BaseError, folders};
use std::path::{Path, PathBuf};

/// Where they are in that folder.
const OF_SESSION: &str = "clones";

/// So many are kept for one session.
const MOST_IN_SESSION: usize = 16;

// === impl Base ===

impl Base {
    /// A place for one in the folder of a session's run.
    pub fn folder_in_session(run: &Path) -> PathBuf {
        run.join(OF_SESSION).join(uuid::Uuid::now_v7().to_string())
    }

    /// Whether there is room for one of that directory of the session's workspace: so many of other directories are kept, whatever has
    /// become of those.
    ///
    /// # Errors
    /// [`BaseError::NoRoom`] when there is none.
    pub fn room_in_session(run: &Path, directory: &str) -> Result<(), BaseError> {
        let place = |folder: &PathBuf| Self::open(folder).ok()?.record().workspace_directory.clone();
        let places = folders(&run.join(OF_SESSION));
        let others = places.iter().map(place).filter(|place| place.as_deref() != Some(directory));
        // One that was cut off has no place, and counts.
        let kept: Vec<_> =
            others.map(|place| place.unwrap_or_else(|| "one that was cut off".to_owned())).collect();
        match kept.len() < MOST_IN_SESSION {
            true => Ok(()),
            false => Err(BaseError::NoRoom { kept }),
        }
    }

    /// Notes that it is at that place of the session's workspace now. What was there before isn't any more.
    ///
    /// # Errors
    /// [`BaseError`] when that can't be kept.
    pub fn settled_in_session(&mut self, run: &Path, directory: &str) -> Result<(), BaseError> {
        self.is_in_workspace_at(directory)?;
        for (folder, other) in all(run) {
            let is_former = other.record().workspace_directory.as_deref() == Some(directory);
            if is_former && folder != self.folder() {
                // One that stays is older than this one, and not asked for.
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
        Ok(())
    }

    /// The one of what is at that place of a session's workspace. What is there itself isn't asked.
    ///
    /// # Errors
    /// [`BaseError`] when there is none.
    pub fn of_session(run: &Path, directory: &str) -> Result<Self, BaseError> {
        let there = all(run).into_iter().map(|(_, base)| base);
        let there = there.filter(|base| base.record().workspace_directory.as_deref() == Some(directory));
        let newest = there.max_by_key(|base| base.record().fetched_at);
        newest.ok_or_else(|| BaseError::NotCloned { name: directory.into() })
    }
}

fn all(run: &Path) -> Vec<(PathBuf, Base)> {
    let folders = folders(&run.join(OF_SESSION)).into_iter();
    folders.filter_map(|folder| Some((folder.clone(), Base::open(&folder).ok()?))).collect()
}
