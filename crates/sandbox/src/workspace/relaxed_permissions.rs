//! Permissions that are in the host's way in a tree in which work goes on: changed for a while, and put back.
//!
//! An ordinary user's host has no more rights to a file than the sandbox, which may have taken them from itself.

use belljar_files::directory::Directory;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Permissions that were in the way, as they were. They are put back on drop.
#[derive(Debug)]
pub struct RelaxedPermissions<'a> {
    tree: &'a Directory,
    modes: ModesByPath,
}

/// Permission bits by path; the tree itself is the empty one.
pub(super) type ModesByPath = BTreeMap<PathBuf, u32>;

// === impl RelaxedPermissions ===

impl<'a> RelaxedPermissions<'a> {
    /// Makes an empty record for this tree.
    pub fn in_tree(tree: &'a Directory) -> Self {
        Self { tree, modes: ModesByPath::new() }
    }

    pub(super) fn modes(&mut self) -> &mut ModesByPath {
        &mut self.modes
    }

    /// Leaves a path as it is now.
    pub(super) fn forget(&mut self, path: &Path) {
        self.modes.remove(path);
    }
}

impl Drop for RelaxedPermissions<'_> {
    fn drop(&mut self) {
        // Deeper directories come first: they are out of reach once a parent is closed again.
        for (path, mode) in self.modes.iter().rev() {
            // Directories that are gone or have another owner by now need nothing.
            let _ = match path.as_os_str().is_empty() {
                true => self.tree.set_mode(*mode),
                false => self.tree.change_mode(path, *mode),
            };
        }
    }
}

/// Notes the permissions that will be in the way of reading this file.
pub(super) fn note(modes: &mut ModesByPath, path: &Path, stat: &rustix::fs::Stat) {
    let needed = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => 0o700,
        FileType::RegularFile => 0o400,
        _ => return,
    };
    if stat.st_mode & needed != needed {
        modes.insert(path.to_owned(), stat.st_mode & 0o1777);
    }
}
