//! Directories that a tool has marked as its own by a file in them: caches for its next run, and installed packages.

use super::TrustKind::{self, Build, Package};
use super::alias::folded_path;
use std::collections::BTreeMap;

/// Marker names, with who trusts the directory's content and why.
const MARKS: [(&str, TrustKind, &str); 3] = [
    // Marks every cache that backups should leave out: cargo's is called `target` only by default.
    ("cachedir.tag", Build, "a tool keeps it for itself, and may run or evaluate it the next time"),
    ("pyvenv.cfg", Package, "Python runs what is in it in the place of what was installed"),
    ("conda-meta", Package, "it runs in the place of what was installed"),
];

/// Caches whose content no tool runs.
const HARMLESS: [&str; 4] = [".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis"];

/// Marked directories of a tree, by folded paths. The tree itself is never one: users work in it, whatever has marked it.
#[derive(Debug, Clone, Default)]
pub(super) struct MarkedDirectories(BTreeMap<String, (TrustKind, &'static str)>);

// === impl MarkedDirectories ===

impl MarkedDirectories {
    /// Adds a name in a directory. The name is folded.
    pub(super) fn add(&mut self, directory: &str, name: &str) {
        let Some((_, kind, reason)) = MARKS.into_iter().find(|(mark, ..)| *mark == name) else { return };
        let directory = folded_path(directory);
        let last = directory.rsplit('/').next().unwrap_or_default();
        if !directory.is_empty() && !HARMLESS.contains(&last) {
            self.0.insert(directory, (kind, reason));
        }
    }

    /// Returns who trusts a path because of a marked directory above it, and why.
    pub(super) fn review(&self, path: &str) -> Option<(TrustKind, &'static str)> {
        if self.0.is_empty() {
            return None;
        }
        let path = folded_path(path);
        path.match_indices('/').find_map(|(at, _)| self.0.get(&path[..at]).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChangeEntryKind, ChangedPath, TreeContext, review_in_tree};

    #[test]
    fn everything_below_a_marked_directory_requires_approval() {
        let mut context = TreeContext::default();
        for path in [
            "out/CACHEDIR.TAG",
            "e/pyvenv.cfg",
            "sub/c/conda-meta",
            ".pytest_cache/CACHEDIR.TAG",
            "pyvenv.cfg",
        ] {
            context.add_path(path);
        }
        let kinds = |path: &str| {
            let touched = ChangedPath::new(path, None, Some(ChangeEntryKind::File { is_executable: false }));
            review_in_tree([touched], &context).into_iter().map(|found| found.kind.code()).collect::<Vec<_>>()
        };
        for (path, kind) in [
            ("out/debug/build/x/output", "build"),
            ("Out/debug/x.json", "build"),
            ("e/bin/black", "package"),
            ("sub/c/lib/x.txt", "package"),
        ] {
            assert_eq!(kinds(path), [kind], "{path}");
        }
        // Controls: beside the directories, in a cache that no tool runs, and in a tree that is itself marked.
        for path in ["out2/x", "sub/x", ".pytest_cache/v/x", "src/x.txt"] {
            assert_eq!(kinds(path), [""; 0], "{path}");
        }
    }
}
