//! The further names of a path: links of its tree that lead to it. A change of `rules.txt` is one of `Makefile`, if `Makefile` is a
//! link to it, and a change in `hooks/` is one in `.git/hooks/`, if that is a link to it.

use super::{Finding, Touched, review_one};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The links of a tree that lead to something in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinksWithin {
    /// By the paths that they say, relative to the tree like the links themselves.
    by_path: BTreeMap<String, Vec<String>>,
}

/// Maximum number of further names of one path.
const MOST_ALIASES: usize = 256;

/// What of a change gains trust by its own names and by the links of its tree that lead there: one finding for each path and kind.
pub fn review_with_links<'t>(
    touched: impl IntoIterator<Item = Touched<'t>>,
    links: &LinksWithin,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for touched in touched {
        let mut found = review_one(&touched);
        for alias in links.aliases(touched.path) {
            let by_alias = review_one(&Touched { path: &alias, ..touched.clone() });
            for Finding { kind, reason, .. } in by_alias {
                if !found.iter().any(|known| known.kind == kind) {
                    let reason = format!("the link {alias} leads to it: {reason}").into();
                    found.push(Finding { path: touched.path.to_owned(), kind, reason });
                }
            }
        }
        findings.append(&mut found);
    }
    findings
}

// === impl LinksWithin ===

impl LinksWithin {
    /// Adds a link with what it says. One that leads out of the tree is passed over.
    pub fn add(&mut self, link: &str, says: &str) {
        if says.starts_with('/') {
            return;
        }
        let above = link.rsplit_once('/').map_or("", |(above, _)| above);
        if let Some(path) = plain(&format!("{above}/{says}")) {
            self.by_path.entry(path).or_default().push(link.to_owned());
        }
    }

    /// Adds a link that leads to a path of the tree.
    pub fn add_to(&mut self, link: &str, path: &str) {
        if let Some(path) = plain(path) {
            self.by_path.entry(path).or_default().push(link.to_owned());
        }
    }

    /// The further names of a path: by links, by links to those, and so on.
    fn aliases(&self, path: &str) -> BTreeSet<String> {
        let mut aliases = BTreeSet::new();
        let mut pending = vec![path.to_owned()];
        while let Some(name) = pending.pop() {
            let aliases_of_it = with_ancestors(&name).flat_map(|(above, rest)| {
                let links = self.by_path.get(above).into_iter().flatten();
                links.map(move |link| format!("{link}{rest}"))
            });
            for alias in aliases_of_it {
                if alias != path && aliases.len() < MOST_ALIASES && aliases.insert(alias.clone()) {
                    pending.push(alias);
                }
            }
        }
        aliases
    }
}

/// A path, each directory above it, and the tree itself, with what follows.
fn with_ancestors(path: &str) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
    let above = path.rmatch_indices('/').map(|(at, _)| (&path[..at], Cow::Borrowed(&path[at..])));
    [(path, Cow::Borrowed(""))].into_iter().chain(above).chain([("", Cow::Owned(format!("/{path}")))])
}

/// A path without `.` and `..`; `None` if it leads out of the tree.
fn plain(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, HandoffKind};
    use super::*;

    fn aliases(links: &[(&str, &str)], path: &str) -> Vec<String> {
        let mut within = LinksWithin::default();
        links.iter().for_each(|(link, says)| within.add(link, says));
        within.aliases(path).into_iter().collect()
    }

    #[test]
    fn links_to_a_path_and_to_what_is_above_it_are_its_further_names() {
        assert_eq!(aliases(&[("Makefile", "rules.txt")], "rules.txt"), ["Makefile"]);
        assert_eq!(aliases(&[("a/Makefile", "../b/./rules.txt")], "b/rules.txt"), ["a/Makefile"]);
        assert_eq!(aliases(&[(".git/hooks", "../hooks")], "hooks/pre-commit"), [".git/hooks/pre-commit"]);
        assert_eq!(aliases(&[("a/.git", "..")], "config"), ["a/.git/config"]);
        // By way of another link.
        let chain = [("Makefile", "other/x"), ("other", "real"), ("real/x", "y")];
        assert_eq!(aliases(&chain, "real/y"), ["Makefile", "other/x", "real/x"]);
        // The controls.
        assert_eq!(aliases(&[("Makefile", "rules.txt")], "rules"), [""; 0]);
        assert_eq!(aliases(&[("Makefile", "rules")], "rules.txt"), [""; 0]);
        assert_eq!(aliases(&[("Makefile", "../../rules.txt"), ("x", "/etc/passwd")], "rules.txt"), [""; 0]);
    }

    #[test]
    fn links_in_circles_come_to_an_end() {
        assert_eq!(aliases(&[("a", "b"), ("b", "a")], "a"), ["b"]);
        assert_eq!(aliases(&[("c/loop", "../c")], "c/x").len(), MOST_ALIASES);
    }

    #[test]
    fn a_change_gains_the_trust_of_what_leads_to_it() {
        let file = Some(Entry::File { is_executable: false });
        let touched = Touched { path: "rules.txt", before: file.clone(), after: file };
        let mut links = LinksWithin::default();
        assert_eq!(review_with_links([touched.clone()], &links), []);
        links.add("Makefile", "./rules.txt");
        let found = review_with_links([touched], &links);
        assert_eq!(
            (found.len(), found[0].path.as_str(), found[0].kind),
            (1, "rules.txt", HandoffKind::Build)
        );
        assert!(found[0].reason.starts_with("the link Makefile leads to it: "), "{}", found[0].reason);
    }
}
