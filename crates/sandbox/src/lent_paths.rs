//! Paths that users and configurations give, of what a sandbox is lent.

use belljar_files::host_path::{HostPath, HostPathError};
use belljar_trusted::given_path::{self, CheckedPathError};
use std::path::Path;

/// Why a path can't be lent.
#[derive(Debug, thiserror::Error)]
pub enum LentPathError {
    /// The path leads nowhere, or through a link that a sandbox may have made.
    #[error(transparent)]
    Path(#[from] CheckedPathError),
    /// The target can't be looked at.
    #[error(transparent)]
    Look(#[from] HostPathError),
}

/// Resolves a path to its target, by a path without links.
///
/// # Errors
/// [`LentPathError`] if there is nothing, or if a link on the way may be a sandbox's.
pub fn resolve(path: &Path) -> Result<HostPath, LentPathError> {
    let found = given_path::resolve(path)?;
    Ok(HostPath::of_opened(found.real, &found.opened)?)
}
