//! Where the host keeps what it makes: a folder for each run while it lasts, and the artifacts for good.
//!
//! ```text
//! <state>/runs/<run id>/job/          what the sandbox has as /job
//!                      /upper, /work  the changes to a workspace that is a copy
//!         artifacts/ab/abcdef…        kept files, by SHA-256
//! ```

use crate::directory::{Directory, DirectoryError};
use belljar_confine::plan::{HostPath, HostPathError, Identity};
use belljar_contract::id::RunId;
use rustix::fs::{AtFlags, chownat};
use rustix::process::{Gid, Uid};
use std::path::{Path, PathBuf};

/// The state directory.
#[derive(Debug, Clone)]
pub struct State {
    path: PathBuf,
}

/// The folder of one run. It goes with the run unless it is kept.
#[derive(Debug)]
pub struct RunFolder {
    id: RunId,
    path: PathBuf,
    kept: bool,
}

/// Why there is no place for a run.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A directory can't be made.
    #[error("can't make {}", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A directory can't be given to the sandbox's user.
    #[error("can't give {} to the sandbox's user", path.display())]
    Give {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustix::io::Errno,
    },
    /// A directory that was made can't be found.
    #[error(transparent)]
    Lost(#[from] HostPathError),
    /// A directory that was made can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

// === impl State ===

impl State {
    /// Uses `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder of a new run, with `job` in it for the sandbox's user.
    ///
    /// # Errors
    /// [`StateError`] with the directory that can't be made.
    pub fn begin_run(&self, owner: Identity) -> Result<RunFolder, StateError> {
        let id = RunId::from_uuid(uuid::Uuid::now_v7());
        let path = self.path.join("runs").join(id.as_str());
        std::fs::create_dir_all(&path).map_err(|source| StateError::Make { path: path.clone(), source })?;
        // The sandbox's user must get through to what is its own; nobody gets to look around.
        for closed in [path.parent().unwrap_or(&path), &path] {
            Directory::open_host(closed)?.set_mode(0o711)?;
        }
        let folder = RunFolder { id, path, kept: false };
        folder.make("job", owner)?;
        folder.make("job/artifacts", owner)?;
        Ok(folder)
    }

    /// The directory of the artifact store, made if missing.
    ///
    /// # Errors
    /// [`StateError`] when it can't be made.
    pub fn artifacts(&self) -> Result<Directory, StateError> {
        let path = self.path.join("artifacts");
        std::fs::create_dir_all(&path).map_err(|source| StateError::Make { path: path.clone(), source })?;
        Ok(Directory::open_host(&path)?)
    }
}

// === impl RunFolder ===

impl RunFolder {
    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory in it for the sandbox's user.
    ///
    /// # Errors
    /// [`StateError`] when it can't be made or given away.
    pub fn make(&self, name: &str, owner: Identity) -> Result<HostPath, StateError> {
        let path = self.path.join(name);
        std::fs::create_dir(&path).map_err(|source| StateError::Make { path: path.clone(), source })?;
        Directory::open_host(&path)?.set_mode(0o700)?;
        let (uid, gid) = (Uid::from_raw(owner.host_uid), Gid::from_raw(owner.host_gid));
        if rustix::process::geteuid().is_root() {
            chownat(rustix::fs::CWD, &path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|source| StateError::Give { path: path.clone(), source })?;
        }
        Ok(HostPath::resolve(path)?)
    }

    /// Whether the folder stays when the run is over.
    pub fn is_kept(&self) -> bool {
        self.kept
    }

    /// Keeps the folder when the run is over.
    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Removes the folder and everything in it.
    ///
    /// # Errors
    /// [`DirectoryError`] for the first thing that can't be removed.
    pub fn remove(mut self) -> Result<(), DirectoryError> {
        self.kept = true;
        self.remove_now()
    }

    fn remove_now(&self) -> Result<(), DirectoryError> {
        Directory::open_host(&self.path)?.clear()?;
        std::fs::remove_dir(&self.path).map_err(|error| DirectoryError {
            path: self.path.clone(),
            source: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO),
        })
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if !self.kept {
            // A leftover is found by its name; there is nobody to tell here.
            let _ = self.remove_now();
        }
    }
}
