//! Targets of a repository's references before a change. Commits that exist already are not looked at. So a reference may
//! lead to a new commit, to its previous commit, or to the one that the work tree is of.

use super::git_content::read;
use belljar_files::directory::Directory;
use std::collections::BTreeMap;
use std::path::Path;

/// The references of a repository.
#[derive(Debug)]
pub(super) struct References<'a> {
    tree: &'a Directory,
    /// Packed references by their names, such as `refs/heads/main`.
    packed: BTreeMap<String, String>,
}

/// Maximum size of `packed-refs`, and of a reference.
const LARGEST_BYTES: u64 = 64 << 20;
const LONGEST: u64 = 4096;

// === impl References ===

impl<'a> References<'a> {
    pub(super) fn of(tree: &'a Directory) -> Self {
        let packed = read(tree.open_file(Path::new(".git/packed-refs")), LARGEST_BYTES).unwrap_or_default();
        let packed = String::from_utf8_lossy(&packed);
        let pairs = packed.lines().filter_map(|line| line.split_once(' '));
        let packed = pairs.map(|(hash, name)| (name.to_owned(), hash.to_owned())).collect();
        Self { tree, packed }
    }

    /// Returns the value of a reference: a hash, or the name of another.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let loose = read(self.tree.open_file(&Path::new(".git").join(name)), LONGEST);
        let loose = loose.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        loose.or_else(|| self.packed.get(name).cloned())
    }

    /// Returns the value of a reference if only the packed ones are left.
    pub(super) fn get_packed(&self, name: &str) -> Option<&str> {
        self.packed.get(name).map(String::as_str)
    }

    /// Returns true if a reference led to this commit before, or `HEAD` did.
    pub(super) fn led_to(&self, name: &str, hash: &str) -> bool {
        [name, "HEAD"].iter().any(|name| {
            let says = self.get(name);
            let next = says.as_deref().and_then(|says| self.get(says.strip_prefix("ref: ")?));
            says.as_deref() == Some(hash) || next.as_deref() == Some(hash)
        })
    }
}
