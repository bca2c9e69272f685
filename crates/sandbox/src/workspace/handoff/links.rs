//! Walks a tree for what its changes are reviewed beside: its links, the identities of its directories, and its names that make
//! repositories.

use super::outside::HostResolver;
use crate::workspace::changes::ChangeSet;
use belljar_files::directory::{Directory, DirectoryError, Name};
use belljar_policy::git::is_dot_git;
use belljar_policy::handoff::{ExitTarget, ResolvedLink, TreeContext, TreeLinks};
use belljar_trusted::in_use::FileIdentity;
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::LinkTargets;

/// Maximum number of names that are looked at.
const MOST_NAMES: usize = 2_000_000;

/// Git's object store, which is left out: it has many files, and no links.
const LEFT_OUT: &str = ".git/objects";

/// State of a tree before a change.
#[derive(Debug, Default)]
struct TreeSurvey {
    links: TreeLinks,
    /// Directories by identity, because paths from outside may lead to them by other names.
    directories: BTreeMap<FileIdentity, PathBuf>,
    context: TreeContext,
    repositories: Vec<PathBuf>,
}

/// Surroundings that a change is reviewed with.
#[derive(Debug, Default)]
pub(super) struct ReviewContext {
    pub(super) context: TreeContext,
    /// The directories below the tree that have a `.git`.
    pub(super) repositories: Vec<PathBuf>,
    pub(super) ways: HostPathLinks,
}

/// Ways by which paths of the host lead into a tree.
#[derive(Debug, Default)]
pub(super) struct HostPathLinks {
    /// The links of the tree as they will be, and as they are if they are changed.
    links: Vec<TreeLinks>,
    directories: BTreeMap<FileIdentity, PathBuf>,
}

/// Places that a path of the host leads to.
#[derive(Debug, Default)]
pub(super) struct ResolvedHostPath {
    /// The paths in the tree to which it leads, whether there is something or not; empty for the tree itself.
    pub(super) ends: BTreeSet<PathBuf>,
    /// The links of the tree on the way.
    pub(super) passed: BTreeSet<PathBuf>,
    /// True if that can't be determined.
    pub(super) is_unknown: bool,
}

/// Walks the tree, and adds to it what a change brings; `new_links` are the links of the change with what they say. What can't be read
/// is passed over, but not the links that lead through it. Returns `None` if the tree has more names than are looked at.
pub(super) fn find(
    tree: &Directory,
    set: &ChangeSet,
    new_links: &LinkTargets,
) -> Result<Option<ReviewContext>, DirectoryError> {
    let Some(survey) = TreeSurvey::of(tree)? else { return Ok(None) };
    let TreeSurvey { mut links, directories, mut context, repositories } = survey;
    let mut host = HostResolver::new(tree, &directories);
    let changes_links = set.iter().any(|(_, changed)| {
        let is_link = |state: super::PathState| state.kind == FileType::Symlink;
        changed.before.is_some_and(is_link) || changed.after.is_some_and(is_link)
    });
    let mut ways = Vec::new();
    // Where the links lead now counts as where they will lead: what is removed counts as what is written.
    if changes_links {
        ways.push(links.clone());
        let mut before = TreeContext::default();
        before.add_links(&links, &mut host);
        context.add_aliases_of(before);
    }
    for (path, changed) in set.iter() {
        links.remove(path.as_os_str().as_bytes());
        if changed.after.is_some() {
            path.ancestors().for_each(|path| context.add_path(&path.to_string_lossy()));
        }
    }
    for (path, says) in new_links {
        links.insert(path.as_os_str().as_bytes(), says.to_bytes());
    }
    context.add_links(&links, &mut host);
    ways.push(links);
    Ok(Some(ReviewContext { context, repositories, ways: HostPathLinks { links: ways, directories } }))
}

/// Adds the programs that new links lead to, and those below the links' targets, in their state after the change. A
/// directory that can't be looked through counts as one.
pub(super) fn note_programs(
    context: &mut TreeContext,
    (set, new_links): (&ChangeSet, &LinkTargets),
    tree: &Directory,
) -> Result<(), DirectoryError> {
    let end = |link: &PathBuf| context.end_of(&link.to_string_lossy()).map(PathBuf::from);
    let ends: BTreeSet<PathBuf> = new_links.keys().filter_map(end).collect();
    let is_at_end = |path: &Path| path.ancestors().any(|above| ends.contains(above));
    for (path, changed) in set.iter().filter(|(path, _)| is_at_end(path)) {
        let is_program =
            |after: super::PathState| after.kind == FileType::RegularFile && after.mode & 0o111 != 0;
        if changed.after.is_some_and(is_program) {
            context.add_program(&path.to_string_lossy());
        }
    }
    let mut names_left = MOST_NAMES;
    let mut pending: Vec<PathBuf> = ends.iter().cloned().collect();
    while let Some(path) = pending.pop() {
        let stat = match path.as_os_str().is_empty() {
            true => Some(tree.stat_itself()?),
            false => tree.stat(&path)?,
        };
        let Some(stat) = stat else { continue };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_mode & 0o111 != 0 && set.get(&path).is_none() => {
                context.add_program(&path.to_string_lossy());
            }
            FileType::Directory if path != Path::new(LEFT_OUT) => {
                let opened = if path.as_os_str().is_empty() { tree.try_clone() } else { tree.open(&path) };
                match opened.and_then(|directory| directory.names(names_left)) {
                    Ok(names) => {
                        names_left -= names.len();
                        let names = names.iter().map(|Name { name, .. }| OsStr::from_bytes(name.as_bytes()));
                        pending.extend(names.map(|name| path.join(name)));
                    }
                    Err(_) => context.add_program(&path.to_string_lossy()),
                }
            }
            _ => {}
        }
    }
    Ok(())
}

// === impl HostPathLinks ===

impl HostPathLinks {
    /// Follows an absolute path as the kernel does: through links outside of the tree and in it, also where its last names aren't there.
    pub(super) fn follow(&self, tree: &Directory, path: &Path) -> ResolvedHostPath {
        let mut host = HostResolver::new(tree, &self.directories);
        let mut way = ResolvedHostPath::default();
        for links in &self.links {
            let ResolvedLink { passed, end, .. } =
                links.resolve_absolute(path.as_os_str().as_bytes(), &mut host);
            way.passed.extend(passed.iter().map(|path| PathBuf::from(OsStr::from_bytes(path))));
            match end {
                ExitTarget::Within(path) => drop(way.ends.insert(PathBuf::from(OsStr::from_bytes(&path)))),
                ExitTarget::Unknown => way.is_unknown = true,
                ExitTarget::Outside | ExitTarget::Nowhere => {}
            }
        }
        way
    }
}

// === impl TreeSurvey ===

impl TreeSurvey {
    fn of(tree: &Directory) -> Result<Option<Self>, DirectoryError> {
        let mut survey = Self::default();
        let mut names_left = MOST_NAMES;
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            let opened = match below.as_os_str().is_empty() {
                true => Ok(tree.try_clone()?),
                false => tree.open(&below),
            };
            let Ok(directory) = opened else {
                survey.links.note_closed(below.as_os_str().as_bytes());
                continue;
            };
            survey.note_directory(&directory, &below)?;
            let Ok(names) = directory.names(names_left) else { return Ok(None) };
            names_left -= names.len();
            for Name { name, kind } in &names {
                let path = below.join(OsStr::from_bytes(name.as_bytes()));
                survey.context.add_path(&path.to_string_lossy());
                if is_dot_git(&name.to_string_lossy()) && !below.as_os_str().is_empty() {
                    survey.repositories.push(below.clone());
                }
                match kind {
                    FileType::Directory if path != Path::new(LEFT_OUT) => pending.push(path),
                    FileType::Symlink => {
                        if let Ok(says) = tree.read_link(&path) {
                            survey.links.insert(path.as_os_str().as_bytes(), says.to_bytes());
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(Some(survey))
    }

    /// A directory that is there by two paths is mounted at one of them.
    fn note_directory(&mut self, directory: &Directory, path: &Path) -> Result<(), DirectoryError> {
        let identity = FileIdentity::of(&directory.stat_itself()?);
        match self.directories.get(&identity) {
            Some(known) => self.context.add_same(&known.to_string_lossy(), &path.to_string_lossy()),
            None => drop(self.directories.insert(identity, path.to_owned())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_policy::handoff::ExitTarget;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    const DIRECTORIES: [&str; 4] = ["a", "a/b", "a/b/c", "d"];

    fn target() -> impl Strategy<Value = String> {
        let name =
            prop::sample::select(vec!["a", "b", "c", "d", "l0", "l1", "l2", "l3", "..", ".", "tree", "file"]);
        (prop::collection::vec(name, 1..6), any::<bool>()).prop_map(|(names, absolute)| {
            if absolute { format!("PLACE/{}", names.join("/")) } else { names.join("/") }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn links_lead_where_the_kernel_follows_them(
            links in prop::collection::vec((prop::sample::select(DIRECTORIES.to_vec()), target()), 4)
        ) {
            let place = tempfile::tempdir().unwrap();
            let place = place.path().canonicalize().unwrap();
            let root = place.join("tree");
            for directory in DIRECTORIES {
                std::fs::create_dir_all(root.join(directory)).unwrap();
                std::fs::write(root.join(directory).join("file"), "").unwrap();
            }
            symlink("tree", place.join("l0")).unwrap();
            symlink("tree/a/b", place.join("d")).unwrap();
            let links: Vec<String> = (0..).zip(links).map(|(number, (directory, target))| {
                let path = format!("{directory}/l{number}");
                symlink(target.replace("PLACE", place.to_str().unwrap()), root.join(&path)).unwrap();
                path
            }).collect();
            let tree = Directory::open_host(&root).unwrap();
            let survey = TreeSurvey::of(&tree).unwrap().unwrap();
            for link in links {
                let end = survey.links.resolve(link.as_bytes(), &mut HostResolver::new(&tree, &survey.directories)).end;
                // Where the kernel finds nothing, nothing is hidden.
                let Ok(found) = root.join(&link).canonicalize() else { continue };
                match found.strip_prefix(&root) {
                    Ok(within) => prop_assert_eq!(end, ExitTarget::Within(within.as_os_str().as_bytes().to_owned())),
                    Err(_) => prop_assert_eq!(end, ExitTarget::Outside),
                }
            }
        }
    }
}
