//! Ignored files, such as build outputs. The rules are those of the cloned commit, which no sandbox has written. A sandbox's
//! changes to rule files have no effect here, and are reported.
//!
//! Git decides which paths are ignored. It sees the rules in a folder of the host's own, and the paths, but no file of the
//! sandbox.

use super::base::{HostClone, REFERENCE};
use super::push::PushError;
use super::runner::{Git, GitError};
use super::tree::Tree;
use belljar_policy::git::TreePath;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Files that were left out.
#[derive(Debug, Default)]
pub struct IgnoredFiles {
    /// Ignored files; a directory that is ignored as a whole ends in a slash.
    pub paths: Vec<String>,
    /// Number of ignored files.
    pub files: usize,
}

/// The cloned commit's files.
#[derive(Default)]
struct ClonedFiles {
    /// All paths.
    paths: BTreeSet<String>,
    /// Files with ignore rules, and their objects.
    rules: Vec<(TreePath, String)>,
}

/// Folder of the rules, in the clone's folder.
const RULES: &str = "ignore-rules";

/// Name of a file with ignore rules.
pub(super) const RULES_FILE: &str = ".gitignore";

/// Removes from a tree the paths that the cloned commit ignores and doesn't contain.
pub(super) fn without(
    mut tree: Tree,
    (git, base): (&Git<'_>, &HostClone),
) -> Result<(Tree, IgnoredFiles), PushError> {
    let cloned = ClonedFiles::list(git)?;
    if cloned.rules.is_empty() {
        return Ok((tree, IgnoredFiles::default()));
    }
    let folder = base.folder().join(RULES);
    lay_out(&folder, cloned.rules(git)?).map_err(|source| PushError::Note { source })?;
    let new: Vec<&str> = tree.entries.iter().map(|entry| entry.path.as_str()).collect();
    let new: Vec<&str> = new.into_iter().filter(|path| !cloned.paths.contains(*path)).collect();
    let ignored = ask(&git.beside(&base.repository(), &folder), &new)?;
    tree.entries.retain(|entry| !ignored.contains(entry.path.as_str()));
    let kept = tree.entries.iter().map(|entry| entry.path.as_str());
    let paths = gathered(&ignored, kept);
    Ok((tree, IgnoredFiles { paths, files: ignored.len() }))
}

/// Returns the paths that git ignores. They are prefixed by `./`, as git would read a name such as `:!x` as a pattern.
fn ask(git: &Git<'_>, paths: &[&str]) -> Result<BTreeSet<String>, GitError> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let said = git.filter(&["check-ignore", "--no-index", "--stdin", "-z"], |to| {
        paths.iter().try_for_each(|path| write!(to, "./{path}\0"))
    })?;
    let names = said.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let names =
        names.map(|name| String::from_utf8_lossy(name.strip_prefix(b"./").unwrap_or(name)).into_owned());
    Ok(names.collect())
}

/// Returns the ignored paths, with a directory in place of its content where nothing of it is kept.
fn gathered<'k>(ignored: &BTreeSet<String>, kept: impl Iterator<Item = &'k str>) -> Vec<String> {
    let directories = |path: &str| -> Vec<usize> { path.match_indices('/').map(|(at, _)| at).collect() };
    let mut holding = BTreeSet::new();
    for path in kept {
        holding.extend(directories(path).into_iter().map(|end| &path[..end]));
    }
    let gather = |path: &String| {
        let first = directories(path).into_iter().find(|end| !holding.contains(&path[..*end]));
        first.map_or_else(|| path.clone(), |end| path[..=end].to_owned())
    };
    ignored.iter().map(gather).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Writes the rule files, after removing earlier ones.
fn lay_out(folder: &Path, rules: Vec<(&TreePath, Vec<u8>)>) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    for (path, content) in rules {
        let path = folder.join(path.as_str());
        builder.create(path.parent().unwrap_or(folder))?;
        File::create_new(path)?.write_all(&content)?;
    }
    Ok(())
}

// === impl ClonedFiles ===

impl ClonedFiles {
    fn list(git: &Git<'_>) -> Result<Self, GitError> {
        let listed = git.run(&["ls-tree", "-r", "-z", "--full-tree", REFERENCE])?;
        let unreadable = || GitError::Unreadable { step: "ls-tree".to_owned() };
        let mut cloned = Self::default();
        for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let line = String::from_utf8_lossy(line);
            let (head, path) = line.split_once('\t').ok_or_else(unreadable)?;
            // Git doesn't follow a link with this name. An invalid name can't be in the tree either.
            let is_rules = head.starts_with("100") && path.rsplit('/').next() == Some(RULES_FILE);
            if let Ok(path) = TreePath::parse(path.as_bytes())
                && is_rules
            {
                let object = head.rsplit(' ').next().unwrap_or_default();
                cloned.rules.push((path, object.to_owned()));
            }
            cloned.paths.insert(path.to_owned());
        }
        Ok(cloned)
    }

    /// Returns the rule files with their content.
    fn rules(&self, git: &Git<'_>) -> Result<Vec<(&TreePath, Vec<u8>)>, GitError> {
        let said = git.feed(&["cat-file", "--batch"], |to| {
            self.rules.iter().try_for_each(|(_, object)| writeln!(to, "{object}"))
        })?;
        let mut rest = said.as_slice();
        let mut read = || {
            let (head, after) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'\n')? + 1)?;
            let length = str::from_utf8(head).ok()?.trim_end().rsplit(' ').next()?.parse().ok()?;
            let (content, after) = after.split_at_checked(length)?;
            rest = after.strip_prefix(b"\n")?;
            Some(content.to_vec())
        };
        let unreadable = || GitError::Unreadable { step: "cat-file".to_owned() };
        self.rules
            .iter()
            .map(|(path, _)| read().map(|content| (path, content)).ok_or_else(unreadable))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_summed_up_by_directory() {
        let ignored = ["a.o", "src/b.o", "src/gen/x/c", "target/debug/d", "target/e"].map(str::to_owned);
        let kept = ["src/b.c", "src/gen/main.c", "targets"];
        let all = gathered(&BTreeSet::from(ignored), kept.into_iter());
        assert_eq!(all, ["a.o", "src/b.o", "src/gen/x/", "target/"]);
    }
}
