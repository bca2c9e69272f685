//! What of a change gains trust where it goes: files that run something on the machine of whoever takes it, or that say what is
//! trusted there. They need a yes of their own.
//!
//! Pure: a list of what is touched comes in, findings go out. Names are compared as the least particular of file systems would
//! ([`crate::git::folded`]), and each row of the table has its reason.

mod alias;
mod beside;
mod content;
mod hidden;
mod link;
mod marked;
mod mention;
mod python;
mod repository;
mod resolve;
mod rows;
mod setting;
mod surroundings;
mod trust;

pub use content::{TELLING_BYTES, is_compiled};
pub use resolve::{Exit, Landing, Names, NoOutside, Outside, Resolved, TreeLinks, prepend};
pub use setting::GitSetting;
pub use surroundings::{TreeContext, review_in_tree};
pub use trust::Trust;

use crate::git::folded;
use alias::folded_path;
use repository::{Kinds, Place};
use rows::ROWS;
use std::borrow::Cow;
use std::fmt;

/// One path that is to become another in somebody's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched<'t> {
    /// Where, relative to the tree, with `/` between its parts. What isn't UTF-8 in it is replaced.
    pub path: &'t str,
    /// What is there.
    pub before: Option<Entry>,
    /// What is to be there.
    pub after: Option<Entry>,
    /// Whether nothing is there yet, and what is to be there is an object of Git whose name is the hash of its content. The caller has
    /// to look at the content.
    pub is_new_git_object: bool,
    /// Whether a file is to be there whose content is another one than before, and [compiled](is_compiled).
    pub is_compiled: bool,
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// Whether it can be run.
        is_executable: bool,
    },
    /// A symbolic link.
    Link {
        /// What it says.
        target: String,
    },
    /// A directory that is made or removed by itself. What is made or removed with it, and is touched by itself, is an [`Entry::Other`].
    Directory,
    /// A directory, or something else that says nothing by itself.
    Other,
}

/// A path that gains trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The path, as it was touched.
    pub path: String,
    /// What kind of trust.
    pub kind: HandoffKind,
    /// Why, for a person.
    pub reason: Cow<'static, str>,
}

/// Who trusts it. The codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandoffKind {
    /// Git: its hooks, settings, filters and submodules.
    Git,
    /// Servers that build and deploy, with their secrets.
    Ci,
    /// Who must look at a change, and what watches over a repository.
    Review,
    /// Editors, which run tasks when a folder is opened.
    Editor,
    /// Agents, which take instructions and tools from a folder.
    Agent,
    /// Shells, which run something when a folder is entered.
    Shell,
    /// Package managers: scripts, registries, what is downloaded.
    Package,
    /// Build tools and test runners, which run what is in the file.
    Build,
    /// Belljar itself, on the host: its configuration, its policies, and the files that they name.
    Belljar,
    /// It can be run, and couldn't before.
    Executable,
    /// It leads out of the tree, or to where that can't be told.
    Link,
    /// Some file system takes its name for another.
    Alias,
}

// === impl Finding ===

impl Finding {
    /// Adds it to others, unless it is there.
    pub fn add_to(self, findings: &mut Vec<Self>) {
        if !findings.contains(&self) {
            findings.push(self);
        }
    }
}

// === impl Touched ===

impl<'t> Touched<'t> {
    /// A path of which no more is known than what is there and what is to be there.
    pub fn new(path: &'t str, before: Option<Entry>, after: Option<Entry>) -> Self {
        Self { path, before, after, is_new_git_object: false, is_compiled: false }
    }

    /// That change under another name of its path.
    fn at_alias<'a>(&self, alias: &'a str) -> Touched<'a> {
        let (before, after) = (self.before.clone(), self.after.clone());
        let Touched { is_new_git_object, is_compiled, .. } = *self;
        Touched { path: alias, before, after, is_new_git_object, is_compiled }
    }

    /// Returns true if a file or a link is to be there where no file was.
    fn is_new_file(&self) -> bool {
        let is_there = matches!(self.after, Some(Entry::File { .. } | Entry::Link { .. }));
        is_there && !matches!(self.before, Some(Entry::File { .. }))
    }

    /// Returns true if a link is there, or is to be there.
    fn is_link(&self) -> bool {
        [&self.before, &self.after].into_iter().any(|entry| matches!(entry, Some(Entry::Link { .. })))
    }

    /// Returns true unless there are only directories that are what is in them, and that is touched by itself.
    fn is_something(&self) -> bool {
        let is_something = |entry: &Option<Entry>| !matches!(entry, None | Some(Entry::Other));
        is_something(&self.before) || is_something(&self.after)
    }
}

// === impl HandoffKind ===

impl HandoffKind {
    /// The stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Ci => "ci",
            Self::Review => "review",
            Self::Editor => "editor",
            Self::Agent => "agent",
            Self::Shell => "shell",
            Self::Package => "package",
            Self::Build => "build",
            Self::Belljar => "belljar",
            Self::Executable => "executable",
            Self::Link => "link",
            Self::Alias => "alias",
        }
    }
}

impl fmt::Display for HandoffKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// What of a change gains trust, in the order in which it comes: one finding for each path and kind. All that Git goes by in the tree's
/// own repository, and that runs nothing by itself, has one finding together, with the path of the repository.
pub fn review<'t>(touched: impl IntoIterator<Item = Touched<'t>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for finding in touched.into_iter().flat_map(|touched| review_one(&touched, false)) {
        finding.add_to(&mut findings);
    }
    findings
}

/// `is_alias` says that the path leads there through a link.
fn review_one(touched: &Touched<'_>, is_alias: bool) -> Vec<Finding> {
    let Touched { path, before, after, is_new_git_object, is_compiled } = touched;
    if !touched.is_something() {
        return Vec::new();
    }
    let as_compared = folded_path(path);
    let parts: Vec<&str> = as_compared.split('/').collect();
    let mut found: Vec<(HandoffKind, &'static str)> = Vec::new();
    let mut note = |kind, reason| {
        if !found.iter().any(|(known, _)| *known == kind) {
            found.push((kind, reason));
        }
    };
    let is_link = touched.is_link();
    // One may take the place of the other.
    let is_directory = [before, after].into_iter().any(|entry| matches!(entry, Some(Entry::Directory)));
    let is_file =
        is_link || [before, after].into_iter().any(|entry| matches!(entry, Some(Entry::File { .. })));
    let kinds = Kinds { is_file, is_link, is_directory, is_new_object: *is_new_git_object };
    let place = repository::judge(&parts, kinds);
    if let Place::Trusted(reason) = place {
        note(HandoffKind::Git, reason);
    }
    // Branches have names of their own.
    let is_git_data = matches!(place, Place::Data(_));
    let mut is_known = is_git_data;
    let rows = ROWS.into_iter().flatten().filter(|_| !is_git_data);
    // Also those that count by the own path only say what the name is.
    for row in rows.filter(|row| row.at.holds(&parts, (is_link, false))) {
        is_known = true;
        if row.at.holds(&parts, (is_link, is_alias)) {
            note(row.kind, row.why);
        }
    }
    if let Some(reason) = hidden::review(&parts).filter(|_| !is_known) {
        note(HandoffKind::Build, reason);
    }
    if let Some(reason) = python::review(&parts, (before, after)) {
        note(HandoffKind::Build, reason);
    }
    if let Some(reason) = beside::review(&as_compared).filter(|_| after.is_some() && !is_git_data) {
        note(HandoffKind::Build, reason);
    }
    if parts.iter().any(|part| is_short_name(part)) {
        note(HandoffKind::Alias, "on Windows it may be the short name of another file");
    }
    if let Some(Entry::Link { target }) = after
        && let Some(reason) = link::review(path, target)
    {
        note(HandoffKind::Link, reason);
    }
    let could_run = matches!(before, Some(Entry::File { is_executable: true }));
    if matches!(after, Some(Entry::File { is_executable: true })) && !could_run {
        note(HandoffKind::Executable, "it can be run, and couldn't before");
    }
    if let Some((kind, reason)) = compiled(after.as_ref()).filter(|_| *is_compiled) {
        note(kind, reason);
    }
    let of_data = match place {
        // One for all data of the repository.
        Place::Data(Some(reason)) => {
            Some((path.split('/').next().unwrap_or_default(), HandoffKind::Git, reason))
        }
        _ => None,
    };
    let found = found.into_iter().map(|(kind, reason)| (*path, kind, reason)).chain(of_data);
    found.map(|(path, kind, reason)| Finding { path: path.to_owned(), kind, reason: reason.into() }).collect()
}

/// Who trusts a file whose content is compiled, and why.
fn compiled(after: Option<&Entry>) -> Option<(HandoffKind, &'static str)> {
    match after? {
        Entry::File { is_executable: true } => Some((
            HandoffKind::Executable,
            "it is a compiled program that can be run, and no review shows what it does",
        )),
        Entry::File { is_executable: false } => {
            Some((HandoffKind::Build, "it is compiled code, and no review shows what it does"))
        }
        _ => None,
    }
}

/// What gains trust by the names of directories above the tree, which are folded.
fn review_at(place: &[String], touched: &Touched<'_>) -> Vec<(HandoffKind, &'static str)> {
    if place.is_empty() || !touched.is_something() {
        return Vec::new();
    }
    let parts: Vec<String> = touched.path.split('/').map(folded).collect();
    let own: Vec<&str> = parts.iter().map(String::as_str).collect();
    let parts: Vec<&str> = place.iter().chain(&parts).map(String::as_str).collect();
    let is_link = touched.is_link();
    let holds = |row: &&rows::Row, parts: &[&str]| row.at.holds(parts, (is_link, false));
    let rows = ROWS.into_iter().flatten().filter(|row| holds(row, &parts) && !holds(row, &own));
    let found: Vec<_> = rows.map(|row| (row.kind, row.why)).collect();
    let of_hidden = hidden::review_at(place, &own).filter(|_| found.is_empty());
    found.into_iter().chain(of_hidden.map(|reason| (HandoffKind::Build, reason))).collect()
}

/// `GITMOD~1`: up to eight characters, a tilde and a number, with a short ending at most.
fn is_short_name(part: &str) -> bool {
    let (stem, ending) = part.split_once('.').unwrap_or((part, ""));
    let Some((name, number)) = stem.rsplit_once('~') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !name.is_empty() && stem.chars().count() <= 8 && ending.chars().count() <= 3
}

#[cfg(test)]
mod names_tests;
#[cfg(test)]
mod tests;
