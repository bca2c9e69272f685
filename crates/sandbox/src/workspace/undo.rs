//! Undoes changes to a copy, in the copy as its sandbox sees it.
//!
//! The layer of changes is never touched itself: the kernel doesn't look for changes that are made beneath a mount. An undo
//! is written like anything else in the sandbox, by its own user, and programs that work in it see it.

use super::apply::ApplyError;
use super::baseline::Baseline;
use super::changes::{ChangeSet, PathChange};
use super::live_workspace::{CopyLayers, HeldWorkspace};
use super::transfer::{TransferOwner, TransferRoute};
use belljar_files::directory::Directory;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// The changes at some paths and below them; all of them for no paths. A directory that is missing or has become
/// something else comes along with what was in it.
pub fn chosen<'s>(set: &'s ChangeSet, paths: &[PathBuf]) -> Vec<(&'s Path, &'s PathChange)> {
    let is_named = |path: &Path| paths.is_empty() || paths.iter().any(|named| path.starts_with(named));
    let is_directory =
        |changed: &PathChange| changed.before.is_some_and(|before| before.kind == FileType::Directory);
    let lost = |path: &Path| paths.iter().any(|named| named.starts_with(path) && named != path);
    set.iter()
        .filter(|(path, changed)| {
            is_named(path) || (lost(path) && is_directory(changed) && has_no_directory(changed))
        })
        .collect()
}

fn has_no_directory(changed: &PathChange) -> bool {
    changed.after.is_none_or(|after| after.kind != FileType::Directory)
}

/// Makes these paths what they are in the source.
///
/// # Errors
/// [`ApplyError::Write`] for the first path that can't be written; those before it were.
pub fn undo(
    changes: &[(&Path, &PathChange)],
    workspace: &HeldWorkspace,
    layers: &CopyLayers,
) -> Result<(), ApplyError> {
    let inverse: Vec<(&Path, PathChange)> = changes
        .iter()
        .map(|(path, changed)| {
            (*path, PathChange { before: changed.after, after: changed.before, ..**changed })
        })
        .collect();
    let baseline = Baseline::now();
    let route = TransferRoute {
        from: &layers.source,
        links: None,
        open: Directory::open_file,
        to: &workspace.shown,
        owner: TransferOwner::User(workspace.owner),
        temporary: baseline.temporary(),
        expected: None,
    };
    Ok(route.carry(&inverse, |_, _| {}).map(drop)?)
}
