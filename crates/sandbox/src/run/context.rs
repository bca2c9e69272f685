//! Context files beside a job, which are announced to its agent: `/job/context`.

use super::RunError;
use crate::state::{JOB, RunFolder};
use belljar_confine::plan::Identity;
use std::collections::{BTreeMap, BTreeSet};

/// Puts files below `/job/context`, by their paths there. Nothing of the sandbox runs yet, so no path leads elsewhere.
pub(super) fn write(
    folder: &RunFolder,
    owner: Identity,
    files: &BTreeMap<String, String>,
) -> Result<(), RunError> {
    if files.is_empty() {
        return Ok(());
    }
    let root = format!("{JOB}/context");
    folder.make(&root, owner)?;
    let directories: BTreeSet<&str> =
        files.keys().flat_map(|path| path.match_indices('/').map(|(end, _)| &path[..end])).collect();
    for directory in directories {
        folder.make(&format!("{root}/{directory}"), owner)?;
    }
    let place = folder.private().join(&root);
    for (path, text) in files {
        std::fs::write(place.join(path), text).map_err(|source| RunError::WriteJob { source })?;
    }
    Ok(())
}
