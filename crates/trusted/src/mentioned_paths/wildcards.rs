//! Files that a path with wildcards matches: those of a shell, and tokens of ssh that may have any value.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of paths that one pattern is followed to.
const MOST_MATCHES: usize = 10_000;

/// A name with wildcards. It matches more than a shell has it match: everything with its beginning and its end.
struct WildcardName<'n> {
    begin: &'n [u8],
    end: &'n [u8],
    /// True if the pattern matches names that begin with a dot, which wildcards don't.
    has_hidden: bool,
}

/// The paths that there are for a pattern, and those that would be in each directory that it is looked up in. None for what is no
/// pattern.
pub(super) fn matches(pattern: &Path) -> Vec<PathBuf> {
    let names: Vec<&OsStr> = pattern.components().filter_map(name).collect();
    let is_pattern = pattern.is_absolute() && names.iter().any(|name| WildcardName::of(name).is_some());
    if !is_pattern {
        return Vec::new();
    }
    let (mut found, mut directories) = (Vec::new(), vec![PathBuf::from("/")]);
    for (depth, name) in names.iter().enumerate() {
        directories = match WildcardName::of(name) {
            None => directories.iter().map(|directory| directory.join(name)).collect(),
            Some(pattern) => {
                let rest: PathBuf = names.iter().skip(depth).collect();
                found.extend(directories.iter().map(|directory| directory.join(&rest)));
                directories
                    .iter()
                    .flat_map(|directory| pattern.within(directory))
                    .take(MOST_MATCHES)
                    .collect()
            }
        };
    }
    found.extend(directories);
    found
}

fn name(component: Component<'_>) -> Option<&OsStr> {
    match component {
        Component::Normal(_) | Component::ParentDir => Some(component.as_os_str()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    }
}

// === impl WildcardName ===

impl<'n> WildcardName<'n> {
    fn of(name: &'n OsStr) -> Option<Self> {
        let name = name.as_bytes();
        let is_wild = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'%');
        let (first, last) = (name.iter().position(is_wild)?, name.iter().rposition(is_wild)?);
        // The letter belongs to its `%`.
        let behind = if name.get(last) == Some(&b'%') { last + 2 } else { last + 1 };
        let begin = name.get(..first).unwrap_or_default();
        let has_hidden = begin.starts_with(b".") || name.contains(&b'{');
        Some(Self { begin, end: name.get(behind..).unwrap_or_default(), has_hidden })
    }

    fn matches(&self, name: &[u8]) -> bool {
        let is_long_enough = name.len() >= self.begin.len() + self.end.len();
        let is_shown = self.has_hidden || !name.starts_with(b".");
        is_long_enough && is_shown && name.starts_with(self.begin) && name.ends_with(self.end)
    }

    fn within(&self, directory: &Path) -> impl Iterator<Item = PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter(|entry| self.matches(entry.file_name().as_bytes())).map(|entry| entry.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_matches_everything_a_shell_could_match() {
        let place = tempfile::tempdir().unwrap();
        for name in ["ws/proxy.sh", "other/proxy.sh", ".hidden/proxy.sh", "ws/x"] {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let is_found = |pattern: &str, path: &str| {
            matches(&place.path().join(pattern)).contains(&place.path().join(path))
        };
        for pattern in ["*/proxy.sh", "w?/proxy.sh", "w[s]/*.sh", "%n/proxy.sh", "w%C/p*"] {
            assert!(is_found(pattern, "ws/proxy.sh"), "{pattern}");
            assert!(!is_found(pattern, ".hidden/proxy.sh"), "{pattern}");
        }
        assert!(is_found("{ws,x}/proxy.sh", "ws/proxy.sh"));
        // A missing path could be created.
        assert!(is_found("*/missing.sh", "ws/missing.sh"));
        assert!(is_found("ws/*.d/x", "ws/*.d/x"));
        assert!(is_found(".h*/proxy.sh", ".hidden/proxy.sh"));
        // The controls.
        for pattern in ["ws/proxy.sh", "o*/proxy.sh", "*/y.sh"] {
            assert!(!is_found(pattern, "ws/proxy.sh"), "{pattern}");
        }
    }
}
