//! The names that a source had when a copy of it was made, as far as they were looked at. They distinguish a file that is
//! gone from one that never existed.

use belljar_files::directory::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Names, by the directory that they are in.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "StoredNames", into = "StoredNames")]
pub(super) struct Names {
    /// Directories of which all names are known.
    listed: BTreeMap<PathBuf, BTreeSet<Vec<u8>>>,
    /// Further paths that were looked at and held nothing.
    free: BTreeSet<PathBuf>,
}

/// Serialised form: the names of a directory in one text, separated by slashes, each byte as the character of its number.
#[derive(Serialize, Deserialize)]
struct StoredNames {
    listed: Vec<(String, String)>,
    free: Vec<String>,
}

// === impl Names ===

impl Names {
    /// Notes all names of a directory.
    pub(super) fn list(&mut self, directory: &Path, names: &[Name]) {
        let names = names.iter().map(|name| name.name.as_bytes().to_owned()).collect();
        self.listed.insert(directory.to_owned(), names);
    }

    /// Notes paths that are all there was, directories among them.
    pub(super) fn list_all<'p>(&mut self, paths: impl Iterator<Item = (&'p Path, bool)>) {
        self.listed.entry(PathBuf::new()).or_default();
        for (path, is_directory) in paths.filter(|(path, _)| !path.as_os_str().is_empty()) {
            if is_directory {
                self.listed.entry(path.to_owned()).or_default();
            }
            let (parent, name) = split(path);
            self.listed.entry(parent.to_owned()).or_default().insert(name);
        }
    }

    /// Returns whether something was at a path; `None` if that isn't known.
    pub(super) fn had(&self, path: &Path) -> Option<bool> {
        if path.as_os_str().is_empty() {
            return Some(true);
        }
        if self.free.contains(path) {
            return Some(false);
        }
        let (parent, name) = split(path);
        match self.listed.get(parent) {
            Some(names) => Some(names.contains(&name)),
            // A path below a missing directory doesn't exist.
            None => (self.had(parent) == Some(false)).then_some(false),
        }
    }

    /// Notes that nothing is at a path, or was when it was looked at.
    pub(super) fn free(&mut self, path: &Path) {
        let (parent, name) = split(path);
        match self.listed.get_mut(parent) {
            Some(names) => drop(names.remove(&name)),
            None => drop(self.free.insert(path.to_owned())),
        }
        self.listed.remove(path);
    }
}

fn split(path: &Path) -> (&Path, Vec<u8>) {
    let name = path.file_name().unwrap_or_default().as_bytes().to_owned();
    (path.parent().unwrap_or(Path::new("")), name)
}

impl From<Names> for StoredNames {
    fn from(names: Names) -> Self {
        let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
        let path = |path: &Path| text(path.as_os_str().as_bytes());
        let listed = names.listed.iter();
        let listed = listed.map(|(directory, names)| {
            (path(directory), names.iter().map(|name| text(name)).collect::<Vec<_>>().join("/"))
        });
        Self { listed: listed.collect(), free: names.free.iter().map(|free| path(free)).collect() }
    }
}

impl From<StoredNames> for Names {
    fn from(StoredNames { listed, free }: StoredNames) -> Self {
        let bytes = |text: &str| text.chars().filter_map(|byte| u8::try_from(byte).ok()).collect::<Vec<u8>>();
        let path = |text: &str| PathBuf::from(OsString::from_vec(bytes(text)));
        let names = |text: &str| text.split('/').filter(|name| !name.is_empty()).map(bytes).collect();
        let listed = listed.iter().map(|(directory, text)| (path(directory), names(text)));
        Self { listed: listed.collect(), free: free.iter().map(|free| path(free)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn names_are_known_in_listed_directories_and_below_nothing() {
        let odd = Path::new(OsStr::from_bytes(b"odd \xff\"\n"));
        let mut names = Names::default();
        let known = [("a", true), ("a/b", false), ("c", false)].map(|(path, is)| (Path::new(path), is));
        names.list_all(known.into_iter().chain([(odd, false)]));
        let stored = serde_json::to_string(&names).unwrap();
        let names: Names = serde_json::from_str(&stored).unwrap();
        let had = |path: &str| names.had(Path::new(path));
        assert_eq!([had("a"), had("a/b"), had("c"), names.had(odd)], [Some(true); 4]);
        assert_eq!([had("d"), had("a/c"), had("d/e/f")], [Some(false); 3]);
        // Of a directory that was not looked at nothing is known.
        let mut names = Names::default();
        assert_eq!(names.had(Path::new("a/b")), None);
        names.free(Path::new("a"));
        assert_eq!(names.had(Path::new("a/b")), Some(false));
    }
}
