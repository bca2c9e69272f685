//! Location of a tree on the host: the names above it may be trusted like those in it.

use belljar_files::directory::Directory;
use rustix::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The absolute path of a tree, and whether a directory above it is a repository. `None` if the tree has no path any more.
pub(super) fn of(tree: &Directory) -> Option<(PathBuf, bool)> {
    let itself = format!("/proc/self/fd/{}", rustix::fd::AsFd::as_fd(tree).as_raw_fd());
    let path = std::fs::read_link(itself).ok()?;
    let is_in_repository = path.ancestors().skip(1).any(is_repository);
    Some((path, is_in_repository))
}

/// Returns true for a directory that git takes for a repository, whatever its name is.
fn is_repository(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}
