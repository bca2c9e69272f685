//! A small file tree in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use belljar_runner::patch::plan::{Content, FileTreeEntry, FileTreeEntryKind, Plan};
use belljar_runner::patch::{FileMode, FileTree, RelativeName};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct File {
    pub(super) executable: bool,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct World {
    pub(super) files: BTreeMap<String, File>,
    /// Directories that need not hold anything.
    pub(super) directories: BTreeSet<String>,
}

impl World {
    pub(super) fn is_directory(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        let is_prefix = |name: &String| name.starts_with(&prefix);
        self.directories.contains(path)
            || self.directories.iter().any(is_prefix)
            || self.files.keys().any(is_prefix)
    }

    /// Returns every directory, empty ones included.
    pub(super) fn all_directories(&self) -> BTreeSet<String> {
        let above = |name: &String| -> Vec<String> {
            name.match_indices('/').map(|(end, _)| name[..end].to_owned()).collect()
        };
        let holding = self.files.keys().chain(&self.directories).flat_map(above);
        holding.chain(self.directories.iter().cloned()).collect()
    }

    /// Returns true if a file could be put at `path`.
    pub(super) fn has_room_for(&self, path: &str) -> bool {
        let has_file_above = path.match_indices('/').any(|(end, _)| self.files.contains_key(&path[..end]));
        !self.files.contains_key(path) && !self.is_directory(path) && !has_file_above
    }

    /// Carries a plan out, the way its documentation says.
    pub(super) fn carry_out(&self, plan: &Plan) -> Self {
        let mut after = self.clone();
        for path in &plan.removed {
            assert!(after.files.remove(path.as_str()).is_some(), "{path} is removed but isn't there");
        }
        for change in &plan.changes {
            let path = change.path.as_str();
            let Some(new) = &change.after else {
                assert!(!after.files.contains_key(path), "{path} is deleted but isn't removed");
                continue;
            };
            let bytes = match &new.content {
                Content::Bytes(bytes) => bytes.clone(),
                Content::Before(name) => self.files[name.as_str()].bytes.clone(),
            };
            after.files.insert(path.to_owned(), File { executable: new.mode.is_executable(), bytes });
        }
        let names: Vec<&String> = after.files.keys().collect();
        for name in names {
            assert!(after.clone().without(name).has_room_for(name), "{name} is both a file and a directory");
        }
        after
    }

    fn without(mut self, file: &str) -> Self {
        self.files.remove(file);
        self.directories.retain(|directory| directory != file);
        self
    }
}

impl FileTree for &World {
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
        Ok(match self.files.get(path.as_str()) {
            Some(file) => {
                Some(FileTreeEntry::File { mode: mode(file.executable), bytes: file.bytes.clone() })
            }
            None => self.is_directory(path.as_str()).then_some(FileTreeEntry::Directory),
        })
    }

    fn kind(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntryKind>> {
        Ok(self.read(path)?.map(|entry| entry.kind()))
    }

    fn children(&mut self, directory: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
        let prefix = format!("{directory}/");
        let below = self.files.keys().chain(&self.directories).filter_map(|name| name.strip_prefix(&prefix));
        let children: BTreeSet<&str> = below.filter_map(|name| name.split('/').next()).collect();
        Ok(children.into_iter().map(|child| child.as_bytes().to_vec()).collect())
    }
}

fn mode(executable: bool) -> FileMode {
    if executable { FileMode::Executable } else { FileMode::Plain }
}
