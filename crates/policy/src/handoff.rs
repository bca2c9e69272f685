//! Reviews a change for paths that gain trust at their destination: files that run something on the user's machine, or that
//! decide what is trusted there. Each requires an approval of its own.
//!
//! Pure: takes a list of touched paths and returns findings. Names are compared as the least strict file systems do
//! ([`crate::git::folded`]), and each row of the table has its reason.

mod alias;
mod companions;
mod content;
mod hidden;
mod link;
mod marked_directories;
mod mention;
mod python;
mod repository;
mod resolve;
mod rows;
mod setting;
mod surroundings;
mod trust;

pub use content::{TELLING_BYTES, is_compiled};
pub use resolve::{
    ExitTarget, Names, OutsideResolver, ResolvedLink, TreeExit, TreeLinks, UnknownOutside, prepend,
};
pub use setting::GitSetting;
pub use surroundings::{TreeContext, review_in_tree};
pub use trust::ApprovedPaths;

use crate::git::folded;
use alias::folded_path;
use repository::{EntryKinds, RepositoryRole};
use rows::ROWS;
use std::borrow::Cow;
use std::fmt;

/// Path that a change touches in a user's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath<'t> {
    /// Path relative to the tree, with `/` between its parts. Bytes that aren't UTF-8 are replaced.
    pub path: &'t str,
    /// Entry before the change.
    pub before: Option<ChangeEntryKind>,
    /// Entry after the change.
    pub after: Option<ChangeEntryKind>,
    /// True if there is no entry yet and the new one is a Git object whose name is the hash of its content. The caller has to
    /// check the content.
    pub is_new_git_object: bool,
    /// True if there will be a file with changed content that is [compiled](is_compiled).
    pub is_compiled: bool,
}

/// Kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeEntryKind {
    /// File.
    File {
        /// True if it is executable.
        is_executable: bool,
    },
    /// Symbolic link.
    Link {
        /// Target of the link.
        target: String,
    },
    /// Directory that is itself made or removed. If entries in it are touched, too, the directory is an [`ChangeEntryKind::Other`].
    Directory,
    /// Directory or another entry that has no meaning by itself.
    Other,
}

/// Path that gains trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path, as it was touched.
    pub path: String,
    /// Kind of trust.
    pub kind: TrustKind,
    /// Reason, for the user.
    pub reason: Cow<'static, str>,
}

/// Program or person that trusts a path. The codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrustKind {
    /// Git: its hooks, settings, filters and submodules.
    Git,
    /// CI servers that build and deploy, with their secrets.
    Ci,
    /// Code review: required reviewers, and the protection of a repository.
    Review,
    /// Editors, which run tasks when a folder is opened.
    Editor,
    /// Agents, which take instructions and tools from a folder.
    Agent,
    /// Shells, which run something when a folder is entered.
    Shell,
    /// Package managers: scripts, registries, downloads.
    Package,
    /// Build tools and test runners, which run the content of the file.
    Build,
    /// Belljar itself, on the host: its configuration, its policies, and the files that they name.
    Belljar,
    /// The file is executable and was not before.
    Executable,
    /// The link leads out of the tree, or its destination is unknown.
    Link,
    /// Some file system takes the name for another one.
    Alias,
}

// === impl Finding ===

impl Finding {
    /// Adds the finding to others, unless it is already there.
    pub fn add_to(self, findings: &mut Vec<Self>) {
        if !findings.contains(&self) {
            findings.push(self);
        }
    }
}

// === impl ChangedPath ===

impl<'t> ChangedPath<'t> {
    /// Creates a touched path of which only the entries are known.
    pub fn new(path: &'t str, before: Option<ChangeEntryKind>, after: Option<ChangeEntryKind>) -> Self {
        Self { path, before, after, is_new_git_object: false, is_compiled: false }
    }

    /// Returns the same change at another name of its path.
    fn at_alias<'a>(&self, alias: &'a str) -> ChangedPath<'a> {
        let (before, after) = (self.before.clone(), self.after.clone());
        let ChangedPath { is_new_git_object, is_compiled, .. } = *self;
        ChangedPath { path: alias, before, after, is_new_git_object, is_compiled }
    }

    /// Returns true if a file or a link is to be there where no file was.
    fn is_new_file(&self) -> bool {
        let is_there =
            matches!(self.after, Some(ChangeEntryKind::File { .. } | ChangeEntryKind::Link { .. }));
        is_there && !matches!(self.before, Some(ChangeEntryKind::File { .. }))
    }

    /// Returns true if a link is there, or is to be there.
    fn is_link(&self) -> bool {
        [&self.before, &self.after]
            .into_iter()
            .any(|entry| matches!(entry, Some(ChangeEntryKind::Link { .. })))
    }

    /// Returns false if there are only directories whose content is touched by itself.
    fn is_something(&self) -> bool {
        let is_something =
            |entry: &Option<ChangeEntryKind>| !matches!(entry, None | Some(ChangeEntryKind::Other));
        is_something(&self.before) || is_something(&self.after)
    }
}

// === impl TrustKind ===

impl TrustKind {
    /// Returns the stable code.
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

impl fmt::Display for TrustKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Reviews a change and returns its findings in order: one for each path and kind. All Git data in the tree's own repository
/// that runs nothing by itself gets a single finding, with the path of the repository.
pub fn review<'t>(touched: impl IntoIterator<Item = ChangedPath<'t>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for finding in touched.into_iter().flat_map(|touched| review_one(&touched, false)) {
        finding.add_to(&mut findings);
    }
    findings
}

/// `is_alias` is true if a link leads to the path.
fn review_one(touched: &ChangedPath<'_>, is_alias: bool) -> Vec<Finding> {
    let ChangedPath { path, before, after, is_new_git_object, is_compiled } = touched;
    if !touched.is_something() {
        return Vec::new();
    }
    let as_compared = folded_path(path);
    let parts: Vec<&str> = as_compared.split('/').collect();
    let mut found: Vec<(TrustKind, &'static str)> = Vec::new();
    let mut note = |kind, reason| {
        if !found.iter().any(|(known, _)| *known == kind) {
            found.push((kind, reason));
        }
    };
    let is_link = touched.is_link();
    // A file may replace a directory, or a directory a file.
    let is_directory =
        [before, after].into_iter().any(|entry| matches!(entry, Some(ChangeEntryKind::Directory)));
    let is_file = is_link
        || [before, after].into_iter().any(|entry| matches!(entry, Some(ChangeEntryKind::File { .. })));
    let kinds = EntryKinds { is_file, is_link, is_directory, is_new_object: *is_new_git_object };
    let place = repository::judge(&parts, kinds);
    if let RepositoryRole::Trusted(reason) = place {
        note(TrustKind::Git, reason);
    }
    // Branch names are arbitrary.
    let is_git_data = matches!(place, RepositoryRole::Data(_));
    let mut is_known = is_git_data;
    let rows = ROWS.into_iter().flatten().filter(|_| !is_git_data);
    // Rows that only count for the own path identify the name all the same.
    for row in rows.filter(|row| row.at.holds(&parts, (is_link, false))) {
        is_known = true;
        if row.at.holds(&parts, (is_link, is_alias)) {
            note(row.kind, row.why);
        }
    }
    if let Some(reason) = hidden::review(&parts).filter(|_| !is_known) {
        note(TrustKind::Build, reason);
    }
    if let Some(reason) = python::review(&parts, (before, after)) {
        note(TrustKind::Build, reason);
    }
    if let Some(reason) = companions::review(&as_compared).filter(|_| after.is_some() && !is_git_data) {
        note(TrustKind::Build, reason);
    }
    if parts.iter().any(|part| is_short_name(part)) {
        note(TrustKind::Alias, "on Windows it may be the short name of another file");
    }
    if let Some(ChangeEntryKind::Link { target }) = after
        && let Some(reason) = link::review(path, target)
    {
        note(TrustKind::Link, reason);
    }
    let could_run = matches!(before, Some(ChangeEntryKind::File { is_executable: true }));
    if matches!(after, Some(ChangeEntryKind::File { is_executable: true })) && !could_run {
        note(TrustKind::Executable, "it can be run, and couldn't before");
    }
    if let Some((kind, reason)) = compiled(after.as_ref()).filter(|_| *is_compiled) {
        note(kind, reason);
    }
    let of_data = match place {
        // A single finding for all data of the repository.
        RepositoryRole::Data(Some(reason)) => {
            Some((path.split('/').next().unwrap_or_default(), TrustKind::Git, reason))
        }
        _ => None,
    };
    let found = found.into_iter().map(|(kind, reason)| (*path, kind, reason)).chain(of_data);
    found.map(|(path, kind, reason)| Finding { path: path.to_owned(), kind, reason: reason.into() }).collect()
}

/// Returns who trusts a file with compiled content, and why.
fn compiled(after: Option<&ChangeEntryKind>) -> Option<(TrustKind, &'static str)> {
    match after? {
        ChangeEntryKind::File { is_executable: true } => Some((
            TrustKind::Executable,
            "it is a compiled program that can be run, and no review shows what it does",
        )),
        ChangeEntryKind::File { is_executable: false } => {
            Some((TrustKind::Build, "it is compiled code, and no review shows what it does"))
        }
        _ => None,
    }
}

/// Returns who trusts a path because of the directories above the tree. Their names are folded.
fn review_at(place: &[String], touched: &ChangedPath<'_>) -> Vec<(TrustKind, &'static str)> {
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
    found.into_iter().chain(of_hidden.map(|reason| (TrustKind::Build, reason))).collect()
}

/// Short name such as `GITMOD~1`: up to eight characters, a tilde and a number, and at most a short extension.
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
