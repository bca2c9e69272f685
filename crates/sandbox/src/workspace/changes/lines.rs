//! The lines of a list of changes. A directory comes and goes with what is in it, as in git. One of which nothing else is listed has a
//! line of its own, since what a list does not show is not applied.

use super::{PathChange, PathState};
use belljar_contract::result::{Change, ChangedFile, OmittedContent};
use belljar_policy::untrusted;
use rustix::fs::FileType;
use std::path::Path;

/// A line of a list of changes.
#[derive(Debug, Clone, Copy)]
pub struct ChangeLine<'c> {
    /// The path that changed.
    pub path: &'c Path,
    /// The change.
    pub changed: &'c PathChange,
    /// True if the line is about the directory at the path, and not about the file or link there.
    pub is_directory: bool,
}

/// The lines for changes that are sorted by their paths. A file that became a directory, or the reverse, may have two.
pub fn lines<'c>(changes: impl Iterator<Item = (&'c Path, &'c PathChange)>) -> Vec<ChangeLine<'c>> {
    let mut lines = Vec::new();
    let mut changes = changes.peekable();
    while let Some((path, changed)) = changes.next() {
        if !changed.as_shown().is_empty() {
            lines.push(ChangeLine { path, changed, is_directory: false });
        }
        // Entries below a directory follow it.
        let has_more = changes.peek().is_some_and(|(next, _)| next.starts_with(path));
        if !has_more && changed.makes_or_removes_directory() {
            lines.push(ChangeLine { path, changed, is_directory: true });
        }
    }
    lines
}

// === impl ChangeLine ===

impl ChangeLine<'_> {
    /// The line as results have it. The path of a directory ends with a slash.
    pub fn as_contract(&self, unshown: Option<OmittedContent>) -> ChangedFile {
        let path = untrusted::name(self.path);
        match self.is_directory {
            false => ChangedFile { path, change: self.changed.change(), unshown },
            true => {
                let change = if is_directory(self.changed.after) { Change::Created } else { Change::Deleted };
                ChangedFile { path: format!("{path}/"), change, unshown: None }
            }
        }
    }
}

// === impl PathChange ===

impl PathChange {
    /// Returns true if a directory is made or removed, also if it replaces something else or is replaced.
    pub fn makes_or_removes_directory(&self) -> bool {
        is_directory(self.before) != is_directory(self.after)
    }
}

fn is_directory(state: Option<PathState>) -> bool {
    state.is_some_and(|state| state.kind == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use crate::workspace::changes::ChangeSet;
    use crate::workspace::diff;
    use belljar_files::directory::Directory;
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn directory_has_a_line_of_its_own_where_nothing_below_it_is_listed() {
        let (source, copy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        for directory in ["gone/deep", "became_file", "kept"] {
            fs::create_dir_all(source.path().join(directory)).unwrap();
        }
        for file in ["became_directory", "became_full", "removed/file"] {
            let path = source.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "old").unwrap();
        }
        for directory in ["new/deep", "became_directory", "became_full", "full", "kept"] {
            fs::create_dir_all(copy.path().join(directory)).unwrap();
        }
        for file in ["became_file", "became_full/file", "full/file"] {
            fs::write(copy.path().join(file), "new").unwrap();
        }
        let open = |place: &TempDir| Directory::open_host(place.path()).unwrap();
        let set = ChangeSet::compare(&open(&source), &open(&copy), true, &mut Default::default()).unwrap();
        let expected = [
            "Deleted became_directory",
            "Created became_directory/",
            "Created became_file",
            "Deleted became_file/",
            "Deleted became_full",
            "Created became_full/file",
            "Created full/file",
            "Deleted gone/deep/",
            "Created new/deep/",
            "Deleted removed/file",
        ];
        for changes in [diff::listed(set.iter()), diff::render(&set, &open(&source), &open(&copy)).unwrap()] {
            let lines = changes.files.iter().map(|file| format!("{:?} {}", file.change, file.path));
            assert_eq!(lines.collect::<Vec<_>>(), expected);
        }
    }
}
