//! The place of a run, made before anything is decided about it: its id is the host's.

use belljar_contract::id::RunId;
use belljar_sandbox::enclosure::Site;
use belljar_sandbox::native::HostUser;
use belljar_sandbox::state::{RunFolder, StateError};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The place of a run that is to be. The run's id is made with it, by the host.
#[derive(Debug)]
pub struct Place {
    pub(super) user: HostUser,
    pub(super) folder: RunFolder,
}

// === impl Place ===

impl Place {
    /// Makes one, for a sandbox that will be made there.
    ///
    /// # Errors
    /// [`StateError`] when there can be none.
    pub fn begin(site: &Site<'_>) -> Result<Self, StateError> {
        let user = HostUser::choose();
        Ok(Self { user, folder: site.state.begin_run(site.maker.owner(user))? })
    }

    /// The run's id.
    pub fn run_id(&self) -> &RunId {
        self.folder.id()
    }

    /// An empty directory for a workspace, which goes with the run.
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
