//! Resolves the symbolic links of a tree as the kernel does: name by name, through further links, and with `..` from where they
//! have led.
//!
//! Pure: the tree's links are known beforehand. Paths outside of the tree are looked up by an [`OutsideResolver`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Symbolic links of a tree, by their paths. Paths are bytes, as in the kernel.
#[derive(Debug, Clone, Default)]
pub struct TreeLinks {
    /// By folded paths; several links only on a case-sensitive file system.
    by_name: BTreeMap<String, Vec<TreeLink>>,
    /// Directories whose entries can't be read: any name in them may be a link.
    closed: BTreeSet<Vec<u8>>,
}

#[derive(Debug, Clone)]
struct TreeLink {
    path: Vec<u8>,
    target: Vec<u8>,
}

/// Names that are still to be followed, in order.
pub type Names = VecDeque<Vec<u8>>;

/// Way in which a path leaves the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeExit {
    /// To the directory above the tree.
    Above,
    /// To the root of the file system.
    Root,
}

/// Place that a path leads to after it has left the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitTarget {
    /// Back in the tree, in this directory; the remaining names continue from there.
    Within(Vec<u8>),
    /// An entry outside of the tree.
    Outside,
    /// No entry.
    Nowhere,
    /// Unknown.
    Unknown,
}

/// Follows paths outside of a tree.
pub trait OutsideResolver {
    /// Follows the names until they lead back into the tree or end. At most `links_left` links may be followed.
    fn follow(&mut self, exit: TreeExit, names: &mut Names, links_left: &mut u32) -> ExitTarget;
}

/// Outside of a tree whose place is unknown, such as that of a commit.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownOutside;

/// Destination of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedLink {
    /// Links of the tree that were followed, each once, beginning with the link itself.
    pub passed: Vec<Vec<u8>>,
    /// True if the path leads out of the tree, even if it comes back.
    pub has_left: bool,
    /// Destination. Within the tree it need not exist.
    pub end: ExitTarget,
}

/// Maximum number of links that the kernel follows.
const MOST_LINKS: u32 = 40;

// === impl TreeLinks ===

impl TreeLinks {
    /// Adds a link or changes its target.
    pub fn insert(&mut self, path: &[u8], target: &[u8]) {
        self.remove(path);
        let links = self.by_name.entry(folded_path(path)).or_default();
        links.push(TreeLink { path: path.to_owned(), target: target.to_owned() });
    }

    /// Removes a link, if there is one.
    pub fn remove(&mut self, path: &[u8]) {
        if let Some(links) = self.by_name.get_mut(&folded_path(path)) {
            links.retain(|link| link.path != path);
        }
    }

    /// Adds a directory whose entries can't be read.
    pub fn note_closed(&mut self, directory: &[u8]) {
        self.closed.insert(directory.to_owned());
    }

    /// Returns the paths of all links.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.by_name.values().flatten().map(|link| link.path.as_slice())
    }

    /// Returns the link of that name, or one that the least strict file systems take for it.
    fn find(&self, path: &[u8]) -> Option<&TreeLink> {
        let links = self.by_name.get(&folded_path(path))?;
        links.iter().find(|link| link.path == path).or(links.first())
    }

    /// Follows a path of the tree to its end, including a link as its last name.
    pub fn resolve(&self, path: &[u8], outside: &mut dyn OutsideResolver) -> ResolvedLink {
        self.follow(None, path, outside)
    }

    /// Follows an absolute path of the host, which may lead into the tree.
    pub fn resolve_absolute(&self, path: &[u8], outside: &mut dyn OutsideResolver) -> ResolvedLink {
        self.follow(Some(TreeExit::Root), path, outside)
    }

    fn follow(
        &self,
        begin: Option<TreeExit>,
        path: &[u8],
        outside: &mut dyn OutsideResolver,
    ) -> ResolvedLink {
        let mut resolved = ResolvedLink { passed: Vec::new(), has_left: false, end: ExitTarget::Nowhere };
        let (mut at, mut names, mut links_left) = (Vec::new(), names_of(path), MOST_LINKS);
        let mut exit = begin;
        loop {
            if let Some(exit) = exit.take() {
                resolved.has_left = true;
                match outside.follow(exit, &mut names, &mut links_left) {
                    ExitTarget::Within(directory) => at = directory,
                    end => {
                        resolved.end = end;
                        return resolved;
                    }
                }
            }
            let Some(name) = names.pop_front() else { break };
            exit = match name.as_slice() {
                b"." => None,
                b".." if at.is_empty() => Some(TreeExit::Above),
                b".." => {
                    at.truncate(at.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
                    None
                }
                _ if self.closed.contains(&at) => {
                    resolved.end = ExitTarget::Unknown;
                    return resolved;
                }
                name => {
                    let parent = at.len();
                    join(&mut at, name);
                    let Some(link) = self.find(&at) else { continue };
                    if !resolved.passed.contains(&link.path) {
                        resolved.passed.push(link.path.clone());
                    }
                    let Some(left) = links_left.checked_sub(1) else { return resolved };
                    links_left = left;
                    at.truncate(parent);
                    prepend(&mut names, &link.target);
                    link.target.starts_with(b"/").then_some(TreeExit::Root)
                }
            };
        }
        resolved.end = ExitTarget::Within(at);
        resolved
    }
}

// === impl UnknownOutside ===

impl OutsideResolver for UnknownOutside {
    fn follow(&mut self, _: TreeExit, _: &mut Names, _: &mut u32) -> ExitTarget {
        ExitTarget::Outside
    }
}

/// Puts the names of a link's target before the remaining ones.
pub fn prepend(names: &mut Names, target: &[u8]) {
    for name in names_of(target).into_iter().rev() {
        names.push_front(name);
    }
}

fn names_of(path: &[u8]) -> Names {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_owned).collect()
}

fn join(at: &mut Vec<u8>, name: &[u8]) {
    if !at.is_empty() {
        at.push(b'/');
    }
    at.extend_from_slice(name);
}

/// Folds a path as the least strict file systems do.
fn folded_path(path: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'.' | b' ' | b':');
    match path.iter().all(is_plain) {
        true => String::from_utf8_lossy(path).to_ascii_lowercase(),
        false => super::alias::folded_path(&String::from_utf8_lossy(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(all: &[(&str, &str)]) -> TreeLinks {
        let mut links = TreeLinks::default();
        all.iter().for_each(|(path, target)| links.insert(path.as_bytes(), target.as_bytes()));
        links
    }

    fn within(path: &str) -> ExitTarget {
        ExitTarget::Within(path.as_bytes().to_owned())
    }

    /// Host whose root leads to a directory of the tree by one name.
    struct BindMountedHost;

    impl OutsideResolver for BindMountedHost {
        fn follow(&mut self, exit: TreeExit, names: &mut Names, _: &mut u32) -> ExitTarget {
            match (exit, names.pop_front().as_deref()) {
                (TreeExit::Root, Some(b"mnt")) => ExitTarget::Within(b"sub".to_vec()),
                (TreeExit::Above, Some(b"tree")) => ExitTarget::Within(Vec::new()),
                (_, Some(b"none")) => ExitTarget::Nowhere,
                (_, Some(b"proc")) => ExitTarget::Unknown,
                _ => ExitTarget::Outside,
            }
        }
    }

    #[test]
    fn link_resolution_agrees_with_the_kernel() {
        for (all, end) in [
            (vec![("l", "rules.txt")], within("rules.txt")),
            (vec![("a/l", "../b/./rules.txt")], within("b/rules.txt")),
            (vec![("a", "sub/dir"), ("l", "a/../rules.txt")], within("sub/rules.txt")),
            (vec![("a", "b"), ("b", "c/d"), ("l", "a/x")], within("c/d/x")),
            (vec![("l", "../tree/rules.txt")], within("rules.txt")),
            (vec![("a", "b"), ("b/l", "../../tree/a/x")], within("b/x")),
            (vec![("l", "/mnt/rules.txt")], within("sub/rules.txt")),
            (vec![("l", "/mnt/../rules.txt")], within("rules.txt")),
            (vec![("out", "/etc"), ("l", "out/passwd")], ExitTarget::Outside),
            (vec![("b", "."), ("l", "b/../x")], ExitTarget::Outside),
            (vec![("l", "../none")], ExitTarget::Nowhere),
            (vec![("l", "l")], ExitTarget::Nowhere),
            (vec![("l", "m"), ("m", "l")], ExitTarget::Nowhere),
            (vec![("l", "/proc/self/cwd")], ExitTarget::Unknown),
            (vec![("A", "b"), ("l", "a/x")], within("b/x")),
            (vec![("A", "b"), ("a", "c"), ("l", "a/x")], within("c/x")),
        ] {
            let path = if all.iter().any(|(path, _)| *path == "l") { "l" } else { all.last().unwrap().0 };
            assert_eq!(links(&all).resolve(path.as_bytes(), &mut BindMountedHost).end, end, "{all:?}");
        }
    }

    #[test]
    fn resolved_link_lists_followed_links_and_whether_it_leaves() {
        let all = links(&[("a", "sub/dir"), ("l", "a/../rules.txt"), ("o", "../tree/a"), ("m", "/mnt")]);
        let told = |path: &str| {
            let ResolvedLink { passed, has_left, .. } = all.resolve(path.as_bytes(), &mut BindMountedHost);
            let passed: Vec<String> =
                passed.into_iter().map(|path| String::from_utf8(path).unwrap()).collect();
            (passed.join(" "), has_left)
        };
        assert_eq!(told("l"), ("l a".to_owned(), false));
        assert_eq!(told("o"), ("o a".to_owned(), true));
        assert_eq!(told("m"), ("m".to_owned(), true));
        assert_eq!(told("rules.txt"), (String::new(), false));
    }

    #[test]
    fn link_through_an_unreadable_directory_is_unresolved() {
        let mut all = links(&[("l", "shut/x"), ("m", "open/x")]);
        all.note_closed(b"shut");
        assert_eq!(all.resolve(b"l", &mut UnknownOutside).end, ExitTarget::Unknown);
        assert_eq!(all.resolve(b"m", &mut UnknownOutside).end, within("open/x"));
    }
}
