//! Paths that users and configurations give, of what a sandbox is lent.

use belljar_confine::plan::{HostPath, HostPathError};
use belljar_trusted::given_path::{self, GivenPathError};
use std::path::Path;

/// Why nothing is lent from a path.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// It leads nowhere, or where a sandbox may have made it lead.
    #[error(transparent)]
    Path(#[from] GivenPathError),
    /// What it leads to can't be looked at.
    #[error(transparent)]
    Look(#[from] HostPathError),
}

/// What a path leads to, by a path without links.
///
/// # Errors
/// [`GivenError`] if there is nothing, or if a link on the way may be a sandbox's.
pub fn resolve(path: &Path) -> Result<HostPath, GivenError> {
    let found = given_path::resolve(path)?;
    Ok(HostPath::of_opened(found.real, &found.opened)?)
}
