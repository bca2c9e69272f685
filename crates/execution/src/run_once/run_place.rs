//! The place of a run, made before its permission is decided: the host chooses the run's id.

use belljar_contract::id::RunId;
use belljar_sandbox::enclosure::EnclosureSite;
use belljar_sandbox::native::HostUser;
use belljar_sandbox::state::{RunFolder, StateError};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The folder and the user of a future run. The host makes the run's id with it.
#[derive(Debug)]
pub struct RunReservation {
    pub(super) user: HostUser,
    pub(super) folder: RunFolder,
}

// === impl RunReservation ===

impl RunReservation {
    /// Makes the place of a run.
    ///
    /// # Errors
    /// [`StateError`] when the folder can't be made.
    pub fn begin(site: &EnclosureSite<'_>) -> Result<Self, StateError> {
        let user = HostUser::choose();
        Ok(Self { user, folder: site.state.begin_run(site.maker.owner(user))? })
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        self.folder.id()
    }

    /// Makes an empty directory for a workspace; it is removed with the run.
    ///
    /// # Errors
    /// [`StateError`] when it can't be made.
    pub fn make_source(&self) -> Result<PathBuf, StateError> {
        let path = self.folder.path().join("source");
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|source| StateError::Make { path: path.clone(), source })?;
        Ok(path)
    }
}
