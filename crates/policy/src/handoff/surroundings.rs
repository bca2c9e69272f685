//! Context in which a change is reviewed: the links of its tree, and directories of the tree that may be repositories.

use super::alias::{Aliases, folded_path};
use super::companions;
use super::marked_directories::MarkedDirectories;
use super::mention::Mentions;
use super::resolve::{ExitTarget, OutsideResolver, ResolvedLink, TreeLinks};
use super::{ChangeEntryKind, ChangedPath, Finding, GitSetting, TrustKind, hidden, review_at, review_one};
use crate::git::{folded, is_dot_git};
use crate::untrusted::Untrusted;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Facts about the tree that a change is for.
#[derive(Debug, Clone, Default)]
pub struct TreeContext {
    aliases: Aliases,
    /// Reasons why links require an approval because of where they lead through other links, by the paths of all links on the
    /// way.
    leading: BTreeMap<String, &'static str>,
    unresolved: BTreeSet<String>,
    /// Destinations of links in the tree, by the paths of the links.
    ends: BTreeMap<String, String>,
    /// Programs that links may lead to, by folded paths.
    programs: BTreeSet<String>,
    /// Repository files in each directory, by folded paths.
    repositories: BTreeMap<String, RepositoryNames>,
    place: TreeLocation,
    /// Paths that Git settings name: by folded path, with the path for display.
    named: BTreeMap<String, String>,
    /// Links on the way to those, by folded paths.
    ways_to_named: BTreeSet<String>,
    /// Command lines of Git settings, which name files by words.
    mentions: Mentions,
    /// Directories that tools have marked as their own.
    marked: MarkedDirectories,
    /// Existing files which make new ones beside them count, by folded paths.
    beside: BTreeSet<String>,
}

/// Place of a tree.
#[derive(Debug, Clone, Default)]
struct TreeLocation {
    /// Names of the directories above the tree and of its own, folded.
    parts: Vec<String>,
    /// True if a directory above is a repository.
    is_in_repository: bool,
}

/// Names that make a directory a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RepositoryNames {
    head: bool,
    objects: bool,
    refs: bool,
    commondir: bool,
}

/// Reviews a change by the names of its paths, by links of its tree that lead to them, and by the repositories that contain
/// them. Returns one finding for each path and kind.
pub fn review_in_tree<'t>(
    touched: impl IntoIterator<Item = ChangedPath<'t>>,
    context: &TreeContext,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for finding in touched.into_iter().flat_map(|touched| context.review(&touched)) {
        finding.add_to(&mut findings);
    }
    findings
}

// === impl TreeContext ===

impl TreeContext {
    /// Adds links with their destinations.
    pub fn add_links(&mut self, links: &TreeLinks, outside: &mut dyn OutsideResolver) {
        for path in links.paths() {
            let link = text(path);
            let ResolvedLink { passed, has_left, end } = links.resolve(path, outside);
            let passed: Vec<String> = passed.iter().map(|path| text(path)).collect();
            // A link on the way decides where this one leads, too.
            for other in passed.iter().filter(|other| **other != link) {
                self.aliases.add(&link, other);
            }
            let reason = match &end {
                ExitTarget::Unknown => Some("its target can't be determined"),
                _ if has_left => Some("it leads out of the tree, or other links do by it"),
                ExitTarget::Within(path) if text(path).split('/').any(is_dot_git) => {
                    Some("it leads into a repository")
                }
                _ => None,
            };
            match end {
                ExitTarget::Within(path) => {
                    self.aliases.add(&link, &text(&path));
                    self.ends.insert(link, text(&path));
                }
                ExitTarget::Unknown => drop(self.unresolved.insert(link)),
                ExitTarget::Outside | ExitTarget::Nowhere => {}
            }
            for (path, reason) in passed.into_iter().filter_map(|path| Some((path, reason?))) {
                self.leading.entry(path).or_insert(reason);
            }
        }
    }

    /// Sets the absolute path of the tree, and whether a directory above it is a repository. Paths that are trusted below a
    /// directory of some name are also trusted if the tree itself is below it.
    pub fn set_place(&mut self, path: &str, is_in_repository: bool) {
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(folded).collect();
        let is_in_repository = is_in_repository || parts.iter().any(|part| is_dot_git(part));
        self.place = TreeLocation { parts: hidden::above(&parts).to_vec(), is_in_repository };
    }

    /// Adds a path of the tree that Git settings name: hooks, an included file, a program. An empty path is the whole tree.
    pub fn add_named(&mut self, path: &str) {
        self.named.insert(folded_path(path), path.to_owned());
    }

    /// Adds a link of the tree on the way to a path that Git settings name. It counts only for itself, not for other content
    /// there.
    pub fn add_way_to_named(&mut self, link: &str) {
        self.ways_to_named.insert(folded_path(link));
    }

    /// Adds a Git setting, if it is a command line. It applies to paths below a directory of the tree; empty for all.
    pub fn add_setting(&mut self, setting: &GitSetting, below: &str) {
        for command in setting.commands() {
            self.mentions.add(&command, &setting.name(), &folded_path(below));
        }
    }

    /// Adds only the further names of paths that another context knows.
    pub fn add_aliases_of(&mut self, other: Self) {
        self.aliases.add_all(other.aliases);
        self.unresolved.extend(other.unresolved);
    }

    /// Adds that two paths are the same directory, as by a bind mount.
    pub fn add_same(&mut self, one: &str, other: &str) {
        self.aliases.add(one, other);
        self.aliases.add(other, one);
    }

    /// Adds a path that is or will be in the tree. Only few names are kept.
    pub fn add_path(&mut self, path: &str) {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        // Most names need no further check.
        let is_ascii = name.is_ascii();
        if is_ascii && !name.starts_with(['h', 'H', 'o', 'O', 'r', 'R', 'c', 'C', 'p', 'P']) {
            return;
        }
        let name = folded(name);
        self.marked.add(above, &name);
        if !matches!(name.as_str(), "head" | "objects" | "refs" | "commondir") {
            return;
        }
        let names = self.repositories.entry(folded_path(above)).or_default();
        match name.as_str() {
            "head" => names.head = true,
            "objects" => names.objects = true,
            "refs" => names.refs = true,
            _ => names.commondir = true,
        }
    }

    /// Returns the paths which make a new file beside them require an approval if they exist; the caller adds existing ones by
    /// [`add_file`](Self::add_file).
    pub fn counting_beside(&self, path: &str) -> Vec<String> {
        let aliases = self.aliases.of(path).unwrap_or_default();
        let names = [path].into_iter().chain(aliases.iter().map(String::as_str));
        names.flat_map(companions::of).map(|(other, _)| other).collect()
    }

    /// Adds a file that existed before the change.
    pub fn add_file(&mut self, path: &str) {
        self.beside.insert(folded_path(path));
    }

    /// Returns the reason why a new file requires an approval because of one beside it.
    fn beside(&self, touched: &ChangedPath<'_>) -> Option<&'static str> {
        if self.beside.is_empty() || !touched.is_new_file() {
            return None;
        }
        let mut others = companions::of(touched.path).into_iter();
        others.find(|(other, _)| self.beside.contains(&folded_path(other))).map(|(_, reason)| reason)
    }

    /// Returns the destination of a link, if it is in the tree.
    pub fn end_of(&self, link: &str) -> Option<&str> {
        self.ends.get(link).map(String::as_str)
    }

    /// Adds a file that is executable when the change is made. Only those that links of the change lead to are needed.
    pub fn add_program(&mut self, path: &str) {
        self.programs.insert(folded_path(path));
    }

    /// Returns true if a link leads to a program, or to a directory with one.
    fn leads_to_program(&self, link: &str) -> bool {
        let Some(end) = self.ends.get(link).map(|end| folded_path(end)) else { return false };
        let below = if end.is_empty() { end.clone() } else { format!("{end}/") };
        let is_below = |program: &String| program.starts_with(&below);
        self.programs.contains(&end) || self.programs.range(below.clone()..).next().is_some_and(is_below)
    }

    /// Returns the links with an unknown destination.
    pub fn unresolved(&self) -> impl Iterator<Item = &str> {
        self.unresolved.iter().map(String::as_str)
    }

    fn review(&self, touched: &ChangedPath<'_>) -> Vec<Finding> {
        let mut found = review_one(touched, false);
        let mut note = |kind, reason: Cow<'static, str>| {
            if !found.iter().any(|known: &Finding| known.kind == kind && known.path == touched.path) {
                found.push(Finding { path: touched.path.to_owned(), kind, reason });
            }
        };
        if let (Some(ChangeEntryKind::Link { .. }), Some(reason)) =
            (&touched.after, self.leading.get(touched.path))
        {
            note(TrustKind::Link, (*reason).into());
        }
        if matches!(touched.after, Some(ChangeEntryKind::Link { .. })) && self.leads_to_program(touched.path)
        {
            note(
                TrustKind::Executable,
                "it leads to a program, which can be run by this name from now on".into(),
            );
        }
        if touched.is_something() && self.is_in_repository(touched.path) {
            note(
                TrustKind::Git,
                "it is in a directory that may be a repository, and git would use its settings".into(),
            );
        }
        if touched.is_something() && self.place.is_in_repository {
            note(TrustKind::Git, "the tree is in a repository, and git uses its settings".into());
        }
        if let Some(reason) = self.named_by_settings(touched) {
            note(TrustKind::Git, reason.into());
        }
        if let Some((kind, reason)) = self.marked.review(touched.path).filter(|_| touched.is_something()) {
            note(kind, reason.into());
        }
        if let Some(reason) = self.beside(touched) {
            note(TrustKind::Build, reason.into());
        }
        for (kind, reason) in review_at(&self.place.parts, touched) {
            note(kind, reason.into());
        }
        let aliases = self.aliases.of(touched.path);
        if aliases.is_none() {
            note(TrustKind::Link, "too many links lead to it to review it".into());
        }
        for alias in aliases.unwrap_or_default() {
            let touched = touched.at_alias(&alias);
            for Finding { kind, reason, .. } in review_one(&touched, true) {
                note(kind, format!("the link {alias} leads to it: {reason}").into());
            }
            if let Some(reason) = self.named_by_settings(&touched) {
                note(TrustKind::Git, format!("the link {alias} leads to it: {reason}").into());
            }
            if let Some(reason) = self.beside(&touched) {
                note(TrustKind::Build, format!("the link {alias} leads to it: {reason}").into());
            }
        }
        found
    }

    /// Returns the reason why a path requires an approval because Git settings name it, a directory above it, or an entry below
    /// it as a link.
    fn named_by_settings(&self, touched: &ChangedPath<'_>) -> Option<String> {
        if !touched.is_something() {
            return None;
        }
        let path = folded_path(touched.path);
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        let mut above = [""].into_iter().chain(above).chain([path.as_str()]);
        let named = above.find_map(|path| self.named.get(path)).or_else(|| {
            let below = format!("{path}/");
            let (named, says) = self.named.range(below.clone()..).next()?;
            (touched.is_link() && named.starts_with(&below)).then_some(says)
        });
        if let Some(named) = named {
            return Some(match named.as_str() {
                "" => "git settings name the whole directory".to_owned(),
                named => format!("git settings name {}", Untrusted(named)),
            });
        }
        if touched.is_link() && self.ways_to_named.contains(&path) {
            return Some("it leads to a path that git settings name".to_owned());
        }
        let (setting, name) = self.mentions.of(&path, &self.place.parts, touched.is_link())?;
        Some(format!("the setting {} of git names {}", Untrusted(setting), Untrusted(&name)))
    }

    /// Returns true for paths in a directory that Git takes for a repository. The tree's own `.git` has rules of its own.
    fn is_in_repository(&self, path: &str) -> bool {
        if self.repositories.is_empty() || path.split('/').next().is_some_and(is_dot_git) {
            return false;
        }
        let path = folded_path(path);
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        [""].into_iter()
            .chain(above)
            .any(|directory| self.repositories.get(directory).is_some_and(|names| names.are_those_of_one()))
    }
}

// === impl RepositoryNames ===

impl RepositoryNames {
    fn are_those_of_one(self) -> bool {
        self.head && (self.commondir || (self.objects && self.refs))
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests;
