//! Finds the links of a tree that lead to something in it.

use crate::directory::{Directory, DirectoryError, Name};
use belljar_policy::handoff::LinksWithin;
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of names that are looked at.
const MOST_NAMES: usize = 2_000_000;

/// What Git keeps of the past: there are many of them, and no links.
const LEFT_OUT: &str = ".git/objects";

/// Finds them; what can't be read is passed over. Returns `None` if the tree has more names than are looked at.
pub(super) fn find(tree: &Directory) -> Result<Option<LinksWithin>, DirectoryError> {
    let place = std::fs::read_link(format!("/proc/self/fd/{}", tree.as_fd().as_raw_fd())).ok();
    let mut found = LinksWithin::default();
    let mut names_left = MOST_NAMES;
    let mut pending = vec![PathBuf::new()];
    while let Some(below) = pending.pop() {
        let opened = match below.as_os_str().is_empty() {
            true => Ok(tree.try_clone()?),
            false => tree.open(&below),
        };
        let Ok(directory) = opened else { continue };
        let Ok(names) = directory.names(names_left) else { return Ok(None) };
        names_left -= names.len();
        for Name { name, kind } in &names {
            let path = below.join(OsStr::from_bytes(name.as_bytes()));
            match kind {
                FileType::Directory if path != Path::new(LEFT_OUT) => pending.push(path),
                FileType::Symlink => note(&mut found, (tree, place.as_deref()), &path),
                _ => {}
            }
        }
    }
    Ok(Some(found))
}

fn note(found: &mut LinksWithin, (tree, place): (&Directory, Option<&Path>), path: &Path) {
    let Ok(says) = tree.read_link(path) else { return };
    let says = Path::new(OsStr::from_bytes(says.to_bytes()));
    let link = path.to_string_lossy();
    match place.and_then(|place| says.strip_prefix(place).ok()) {
        Some(within) => found.add_to(&link, &within.to_string_lossy()),
        None => found.add(&link, &says.to_string_lossy()),
    }
}
