//! Changed paths that are longer than the kernel takes. One of them must not keep all other changes from being shown and applied.

use super::PathChange;
use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Paths that are left out of a change set.
#[derive(Debug, Default)]
pub(super) struct OmittedPaths {
    /// The first of them.
    pub(super) paths: Vec<PathBuf>,
    /// Paths on the way to which directories were removed.
    removed: Vec<PathBuf>,
}

/// The kernel takes no longer path. A program makes one by changing its working directory.
const LONGEST_PATH_BYTES: usize = 4_095;

/// Maximum number of paths that are named.
const MOST_NAMED: usize = 100;

// === impl OmittedPaths ===

impl OmittedPaths {
    pub(super) fn is_too_long(path: &Path) -> bool {
        path.as_os_str().len() > LONGEST_PATH_BYTES
    }

    /// Notes a path of the layer.
    pub(super) fn note(&mut self, path: PathBuf) {
        if self.paths.len() < MOST_NAMED {
            self.paths.push(path);
        }
    }

    /// Notes a path of the source that was removed, which can't be done there.
    pub(super) fn note_removed(&mut self, path: PathBuf) {
        // Its directory stays, so one path for each is enough.
        if self.removed.last().and_then(|last| last.parent()) != path.parent() {
            self.removed.push(path.clone());
        }
        self.note(path);
    }

    /// Leaves out the removal of directories in which something stays.
    pub(super) fn keep_directories(&self, changes: &mut BTreeMap<PathBuf, PathChange>) {
        for above in self.removed.iter().flat_map(|path| path.ancestors().skip(1)) {
            let is_removal = changes.get(above).is_some_and(|changed| {
                changed.before.is_some_and(|before| before.kind == FileType::Directory)
                    && changed.after.is_none_or(|after| after.kind != FileType::Directory)
            });
            if is_removal {
                changes.remove(above);
            }
        }
    }
}
