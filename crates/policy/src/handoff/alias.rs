//! The further names of a path: links of its tree that lead to it. A change of `rules.txt` is one of `Makefile`, if `Makefile` is a
//! link to it, and a change in `hooks/` is one in `.git/hooks/`, if that is a link to it.

use super::{Finding, HandoffKind, Touched, review_one};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
        let aliases = links.aliases(touched.path);
        if aliases.is_none() {
            let (path, kind) = (touched.path.to_owned(), HandoffKind::Link);
            found.push(Finding { path, kind, reason: "too many links lead to it to tell what it is".into() });
        }
        for alias in aliases.unwrap_or_default() {
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

    /// The further names of a path: by links, by links to those, and so on; each link once, as more often says nothing new. The nearest
    /// come first. Returns `None` if there are too many.
    fn aliases(&self, path: &str) -> Option<BTreeSet<String>> {
        let mut aliases = BTreeSet::new();
        let mut pending = VecDeque::from([(path.to_owned(), Vec::new())]);
        while let Some((name, by)) = pending.pop_front() {
            for (above, rest) in with_ancestors(&name) {
                let links = self.by_path.get(above).into_iter().flatten();
                for link in links.filter(|link| !by.contains(link)) {
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
    use super::super::Entry;
    use super::*;

    fn aliases(links: &[(&str, &str)], path: &str) -> Vec<String> {
        let mut within = LinksWithin::default();
        links.iter().for_each(|(link, says)| within.add(link, says));
        within.aliases(path).unwrap().into_iter().collect()
    }

    #[test]
    fn links_to_a_path_and_to_what_is_above_it_are_its_further_names() {
        assert_eq!(aliases(&[("Makefile", "rules.txt")], "rules.txt"), ["Makefile"]);
        assert_eq!(aliases(&[("a/Makefile", "../b/./rules.txt")], "b/rules.txt"), ["a/Makefile"]);
        assert_eq!(aliases(&[(".git/hooks", "../hooks")], "hooks/pre-commit"), [".git/hooks/pre-commit"]);
        assert_eq!(aliases(&[("a/.git", "..")], "config"), ["a/.git/config"]);
        // By way of another link.
        let chain = [("Makefile", "other/x"), ("other", "real"), ("real/x", "y")];
        assert_eq!(aliases(&chain, "real/y"), ["Makefile", "other/x", "other/y", "real/x"]);
        // The controls.
        assert_eq!(aliases(&[("Makefile", "rules.txt")], "rules"), [""; 0]);
        assert_eq!(aliases(&[("Makefile", "rules")], "rules.txt"), [""; 0]);
        assert_eq!(aliases(&[("Makefile", "../../rules.txt"), ("x", "/etc/passwd")], "rules.txt"), [""; 0]);
    }

    #[test]
    fn links_in_circles_come_to_an_end() {
        assert_eq!(aliases(&[("a", "b"), ("b", "a")], "a"), ["b"]);
        assert_eq!(aliases(&[("c/loop", "../c")], "c/x"), ["c/loop/x"]);
    }

    #[test]
    fn a_path_to_which_too_many_links_lead_takes_a_yes() {
        let mut links = LinksWithin::default();
        (0..=MOST_ALIASES).for_each(|number| links.add(&format!("link{number}"), "file"));
        let file = Some(Entry::File { is_executable: false });
        let review = |path| review_with_links([Touched::new(path, None, file.clone())], &links);
        assert_eq!(review("file").iter().map(|found| found.kind).collect::<Vec<_>>(), [HandoffKind::Link]);
        // The control.
        assert_eq!(review("other"), []);
    }

    #[test]
    fn a_change_gains_the_trust_of_what_leads_to_it() {
        let file = Some(Entry::File { is_executable: false });
        let touched = Touched::new("rules.txt", file.clone(), file);
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
