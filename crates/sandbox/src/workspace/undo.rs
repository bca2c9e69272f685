//! Undoes changes to a copy, in the copy as its sandbox sees it.
//!
//! The layer of changes is never touched itself: the kernel doesn't look for changes that are made beneath a mount.
//! What is undone is written like anything else in the sandbox, by its own user, and whoever works in it sees it.

use super::apply::ApplyError;
use super::baseline::Baseline;
use super::changes::{ChangeSet, Changed};
use super::held::{HeldWorkspace, Layers};
use super::opened::{self, Opened};
use super::transfer::{Owner, Route};
use crate::directory::{Directory, DirectoryError};
use belljar_confine::as_user::AsUser;
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The changes at some paths and below them; all of them for no paths. A directory that is missing or has become
/// something else comes along with what was in it.
pub fn chosen<'s>(set: &'s ChangeSet, paths: &[PathBuf]) -> Vec<(&'s Path, &'s Changed)> {
    let is_named = |path: &Path| paths.is_empty() || paths.iter().any(|named| path.starts_with(named));
    let is_directory =
        |changed: &Changed| changed.before.is_some_and(|before| before.kind == FileType::Directory);
    let lost = |path: &Path| paths.iter().any(|named| named.starts_with(path) && named != path);
    set.iter()
        .filter(|(path, changed)| {
            is_named(path) || (lost(path) && is_directory(changed) && has_no_directory(changed))
        })
        .collect()
}

fn has_no_directory(changed: &Changed) -> bool {
    changed.after.is_none_or(|after| after.kind != FileType::Directory)
}

/// Makes these paths what they are in the source.
///
/// # Errors
/// [`ApplyError::Write`] for the first path that can't be written; those before it were.
pub fn undo(
    changes: &[(&Path, &Changed)],
    workspace: &HeldWorkspace,
    layers: &Layers,
) -> Result<(), ApplyError> {
    let mut opened = Opened::in_tree(&workspace.shown);
    open_up(changes, workspace, &mut opened)?;
    let inverse: Vec<(&Path, Changed)> = changes
        .iter()
        .map(|(path, changed)| (*path, Changed { before: changed.after, after: changed.before, ..**changed }))
        .collect();
    for (path, _) in &inverse {
        opened.forget(path);
    }
    let baseline = Baseline::now();
    let route = Route {
        from: &layers.source,
        open: Directory::open_file,
        to: &workspace.shown,
        owner: Owner::User(workspace.owner),
        temporary: baseline.temporary(),
    };
    Ok(route.carry(&inverse, |_, _| {})?)
}

/// Lets the owner work in every directory on the way, outermost first.
fn open_up(
    changes: &[(&Path, &Changed)],
    workspace: &HeldWorkspace,
    opened: &mut Opened<'_>,
) -> Result<(), DirectoryError> {
    let on_the_way: BTreeSet<&Path> = changes.iter().flat_map(|(path, _)| path.ancestors().skip(1)).collect();
    let user = AsUser::become_user(workspace.owner.host_uid, workspace.owner.host_gid);
    let _user = user.map_err(|source| DirectoryError { path: PathBuf::new(), source })?;
    for path in on_the_way {
        let place = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let Some(stat) = workspace.shown.stat(place)? else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_mode & 0o700 != 0o700 {
            opened::note(opened.modes(), path, &stat);
            workspace.shown.change_mode(place, (stat.st_mode & 0o1777) | 0o700)?;
        }
    }
    Ok(())
}
