//! Further names of a path: links of its tree that lead to it. If `Makefile` is a link to `rules.txt`, a change of `rules.txt`
//! changes `Makefile`. If `.git/hooks/` is a link to `hooks/`, a change in `hooks/` changes hooks.

use crate::git::folded;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Further names of a tree's paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Aliases {
    /// By folded paths: on some file systems a link to `RULES.TXT` leads to `rules.txt`.
    by_path: BTreeMap<String, Vec<String>>,
}

/// Maximum number of further names of one path.
const MOST_ALIASES: usize = 256;

// === impl Aliases ===

impl Aliases {
    /// Adds a link that leads to a path.
    pub(super) fn add(&mut self, link: &str, path: &str) {
        let links = self.by_path.entry(folded_path(path)).or_default();
        if !links.iter().any(|known| known == link) {
            links.push(link.to_owned());
        }
    }

    pub(super) fn add_all(&mut self, other: Self) {
        for (path, links) in other.by_path {
            links.iter().for_each(|link| self.add(link, &path));
        }
    }

    /// Returns the further names of a path: by links, by links to those, and so on. Each link is followed once. The nearest
    /// come first. Returns `None` if there are too many.
    pub(super) fn of(&self, path: &str) -> Option<BTreeSet<String>> {
        let mut aliases = BTreeSet::new();
        if self.by_path.is_empty() {
            return Some(aliases);
        }
        let mut pending = VecDeque::from([(path.to_owned(), Vec::new())]);
        while let Some((name, by)) = pending.pop_front() {
            for (links, rest) in self.leading_to(&name) {
                for link in links.iter().filter(|link| !by.contains(link)) {
                    let alias = format!("{link}{rest}");
                    if alias == path || !aliases.insert(alias.clone()) {
                        continue;
                    }
                    if aliases.len() > MOST_ALIASES {
                        return None;
                    }
                    pending.push_back((alias, [&by[..], &[link]].concat()));
                }
            }
        }
        Some(aliases)
    }

    /// Returns the links to a path, to each directory above it and to the tree itself, each with the rest of the path.
    fn leading_to(&self, path: &str) -> Vec<(&[String], String)> {
        let names: Vec<&str> = path.split('/').collect();
        let folded: Vec<String> = names.iter().map(|name| folded(name)).collect();
        let leading = (0..=names.len()).rev().filter_map(|depth| {
            let links = self.by_path.get(&folded[..depth].join("/"))?;
            let rest: String = names[depth..].iter().flat_map(|name| ["/", name]).collect();
            Some((links.as_slice(), rest))
        });
        leading.collect()
    }
}

/// Folds a path as the least strict file systems do.
pub(super) fn folded_path(path: &str) -> String {
    path.split('/').map(folded).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::super::{
        ChangeEntryKind, ChangedPath, Finding, TreeContext, TreeLinks, TrustKind, UnknownOutside,
        review_in_tree,
    };
    use super::*;

    fn aliases(links: &[(&str, &str)], path: &str) -> Vec<String> {
        let mut aliases = Aliases::default();
        links.iter().for_each(|(link, path)| aliases.add(link, path));
        aliases.of(path).unwrap().into_iter().collect()
    }

    #[test]
    fn links_to_a_path_or_its_parents_are_aliases() {
        assert_eq!(aliases(&[("Makefile", "rules.txt")], "rules.txt"), ["Makefile"]);
        assert_eq!(aliases(&[(".git/hooks", "hooks")], "hooks/pre-commit"), [".git/hooks/pre-commit"]);
        assert_eq!(aliases(&[("a/.git", "")], "config"), ["a/.git/config"]);
        assert_eq!(aliases(&[("Makefile", "Rules.TXT")], "rules.txt"), ["Makefile"]);
        // Through another link.
        let chain = [("Makefile", "real/y"), ("other", "real"), ("real/x", "real/y")];
        assert_eq!(aliases(&chain, "real/y"), ["Makefile", "other/x", "other/y", "real/x"]);
        // Controls.
        assert_eq!(aliases(&[("Makefile", "rules.txt")], "rules"), [""; 0]);
        assert_eq!(aliases(&[("Makefile", "rules")], "rules.txt"), [""; 0]);
    }

    #[test]
    fn changed_link_target_needs_the_approval_of_its_links() {
        let file = Some(ChangeEntryKind::File { is_executable: false });
        let touched = ChangedPath::new("rules.txt", file.clone(), file);
        let (mut links, mut context) = (TreeLinks::default(), TreeContext::default());
        assert_eq!(review_in_tree([touched.clone()], &context), []);
        links.insert(b"Makefile", b"./rules.txt");
        context.add_links(&links, &mut UnknownOutside);
        let found = review_in_tree([touched], &context);
        let [Finding { path, kind, reason }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((path.as_str(), *kind), ("rules.txt", TrustKind::Build));
        assert!(reason.starts_with("the link Makefile leads to it: "), "{reason}");
    }

    #[test]
    fn circular_links_are_resolved_in_finite_time() {
        assert_eq!(aliases(&[("a", "b"), ("b", "a")], "a"), ["b"]);
        assert_eq!(aliases(&[("c/loop", "c")], "c/x"), ["c/loop/x"]);
    }
}
