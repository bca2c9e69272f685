//! Commits a sandbox's files on top of the host's own clone: `git fast-import` makes the objects from its standard input. Git
//! reads no file of the sandbox, and there is no work tree.
//!
//! Equal files, message, author and time make an equal commit, so a repeated push makes the same one.

use super::base::{HostClone, REFERENCE, is_object_id, object_id};
use super::runner::{Git, GitError};
use super::tree::{GitTreeEntryKind, Tree};
use belljar_contract::id::RunId;
use belljar_files::directory::Directory;
use belljar_policy::handoff::{
    ChangeEntryKind as Touch, ChangedPath, Finding, TreeContext, TreeLinks, UnknownOutside, is_compiled,
    review_in_tree,
};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, Write};

/// The author of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    name: String,
    email: String,
}

/// A text that is not `NAME <EMAIL>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not an author: use `NAME <EMAIL>`, without `<`, `>` or line ends in either")]
pub struct InvalidAuthor {
    /// The text.
    pub found: String,
}

/// Origin of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Author and committer.
    pub author: Author,
    /// The run, if there was one.
    pub run_id: Option<RunId>,
    /// The agent, if known.
    pub agent: Option<String>,
    /// The model, if known.
    pub model: Option<String>,
}

/// Reasons why there is no commit.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Git has failed.
    #[error("can't make a commit")]
    Git(#[from] GitError),
    /// No file differs.
    #[error("there is nothing to push: the files are as they were cloned")]
    Unchanged,
}

/// A local commit that is not pushed yet.
#[derive(Debug)]
pub(super) struct LocalCommit {
    pub(super) commit: String,
    pub(super) tree: String,
    pub(super) files: Vec<DifferingPath>,
    pub(super) findings: Vec<Finding>,
}

/// A path that differs from the cloned commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DifferingPath {
    pub(super) path: String,
    old_mode: u32,
    new_mode: u32,
    /// True if the content differs, not only the mode.
    is_other_content: bool,
}

/// A submodule of the cloned commit.
#[derive(Debug)]
pub(super) struct Submodule {
    pub(super) path: String,
    commit: String,
}

/// Parts of a commit's message and metadata.
pub(super) struct CommitMetadata<'w> {
    pub(super) attribution: &'w Attribution,
    pub(super) message: &'w str,
    pub(super) at: Timestamp,
}

/// Temporary branch of the import; it is deleted at the end.
const MADE: &str = "refs/belljar/made";

/// The null object id.
const NONE: &str = "0000000000000000000000000000000000000000";

const EXECUTABLE: u32 = 0o100_755;
const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;

// === impl Author ===

impl Default for Author {
    /// The author of commits on a host where git knows no user.
    fn default() -> Self {
        Self { name: "belljar".to_owned(), email: "belljar@localhost.invalid".to_owned() }
    }
}

impl Author {
    /// Parses `NAME <EMAIL>`.
    ///
    /// # Errors
    /// [`InvalidAuthor`].
    pub fn parse(text: &str) -> Result<Self, InvalidAuthor> {
        let invalid = || InvalidAuthor { found: text.to_owned() };
        let inner = text.strip_suffix('>').ok_or_else(invalid)?;
        let (name, email) = inner.split_once('<').ok_or_else(invalid)?;
        let is_plain = |text: &str| {
            let text = text.trim();
            !text.is_empty() && !text.contains(['<', '>'])
        };
        match is_plain(name) && is_plain(email) && !text.chars().any(char::is_control) {
            true => Ok(Self { name: name.trim().to_owned(), email: email.trim().to_owned() }),
            false => Err(invalid()),
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

// === impl CommitMetadata ===

impl CommitMetadata<'_> {
    /// Returns the message, with a trailer for each known part of its origin.
    pub(super) fn text(&self) -> String {
        let plain = |char: char| if char.is_control() && char != '\n' { ' ' } else { char };
        let message: String = self.message.replace("\r\n", "\n").chars().map(plain).collect();
        let mut text = format!("{}\n", message.trim());
        let Attribution { run_id, agent, model, .. } = self.attribution;
        let run_id = run_id.as_ref().map(RunId::to_string);
        let known = [("Belljar-Run", &run_id), ("Belljar-Agent", agent), ("Belljar-Model", model)];
        let known: Vec<_> =
            known.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))).collect();
        if !known.is_empty() {
            text.push('\n');
        }
        for (name, value) in known {
            let value: String =
                value.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
            text.push_str(&format!("{name}: {}\n", value.trim()));
        }
        text
    }
}

/// Content of a commit on top of the cloned one.
#[derive(Clone, Copy)]
pub(super) struct CommitContent<'c> {
    /// The clone.
    pub(super) base: &'c HostClone,
    /// Directory with the files.
    pub(super) top: &'c Directory,
    /// Its tree.
    pub(super) tree: &'c Tree,
    /// Submodules of the cloned commit, which stay.
    pub(super) submodules: &'c [Submodule],
}

/// Makes a commit of a tree on top of the cloned commit.
pub(super) fn make(
    git: &Git<'_>,
    content: &CommitContent<'_>,
    words: &CommitMetadata<'_>,
) -> Result<LocalCommit, CommitError> {
    let tree = content.tree;
    // Collected from the bytes that are committed: the files may have changed since they were listed.
    let mut compiled = BTreeSet::new();
    let told = git.feed(&["fast-import", "--quiet", "--done", "--force", "--date-format=raw"], |to| {
        compiled = write(to, content, words)?;
        Ok(())
    })?;
    let commit = object_id(&told).ok_or_else(|| unreadable("fast-import"))?;
    let compare = [
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--no-ext-diff",
        "--no-abbrev",
        "--ignore-submodules=none",
    ];
    let compared = git.run(&[&compare[..], &[REFERENCE, &commit]].concat())?;
    let files = differing(&compared).ok_or_else(|| unreadable("diff-tree"))?;
    if files.is_empty() {
        return Err(CommitError::Unchanged);
    }
    let told = git.run(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")])?;
    let tree_id = object_id(&told).ok_or_else(|| unreadable("rev-parse"))?;
    let findings = review_in_tree(touched(&files, tree, &compiled), &context_of(tree, &files));
    Ok(LocalCommit { commit, tree: tree_id, files, findings })
}

/// Writes a commit for `git fast-import`. Returns the paths of compiled files.
fn write<'t>(
    to: &mut dyn Write,
    content: &CommitContent<'t>,
    words: &CommitMetadata<'_>,
) -> io::Result<BTreeSet<&'t str>> {
    let CommitContent { base, top, tree, submodules } = *content;
    let mut compiled = BTreeSet::new();
    let (author, at, text) = (&words.attribution.author, words.at.as_second(), words.text());
    writeln!(to, "commit {MADE}\nmark :1")?;
    writeln!(to, "author {author} {at} +0000\ncommitter {author} {at} +0000")?;
    writeln!(to, "data {}\n{text}", text.len())?;
    writeln!(to, "from {}\ndeleteall", base.record().commit)?;
    for entry in &tree.entries {
        writeln!(to, "M {} inline {}", entry.mode(), quoted(entry.path.as_str()))?;
        if is_compiled(&entry.write(top, to)?) {
            compiled.insert(entry.path.as_str());
        }
    }
    for Submodule { path, commit } in submodules {
        writeln!(to, "M 160000 {commit} {}", quoted(path))?;
    }
    writeln!(to, "get-mark :1\nreset {MADE}\nfrom {NONE}\n\ndone")?;
    Ok(compiled)
}

/// Returns the submodules of the cloned commit. They aren't laid out, so files in their place don't belong to them.
pub(super) fn submodules(git: &Git<'_>) -> Result<Vec<Submodule>, GitError> {
    let listed = git.run(&["ls-tree", "-r", "-z", "--full-tree", REFERENCE])?;
    let lines = listed.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
    lines
        .map(|line| {
            let (head, path) = str::from_utf8(line).ok()?.split_once('\t')?;
            let commit = head.rsplit(' ').next().filter(|commit| is_object_id(commit))?;
            Some(Submodule { path: path.to_owned(), commit: commit.to_owned() })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| unreadable("ls-tree"))
}

/// Parses `git diff-tree -z --raw`: `:MODE MODE OBJECT OBJECT STATUS`, and the path.
fn differing(said: &[u8]) -> Option<Vec<DifferingPath>> {
    let mut fields = said.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut all = Vec::new();
    while let Some(head) = fields.next() {
        let mut words = str::from_utf8(head).ok()?.strip_prefix(':')?.split(' ');
        let mut mode = || u32::from_str_radix(words.next()?, 8).ok();
        let (old_mode, new_mode) = (mode()?, mode()?);
        let is_other_content = words.next()? != words.next()?;
        let path = String::from_utf8_lossy(fields.next()?).into_owned();
        all.push(DifferingPath { path, old_mode, new_mode, is_other_content });
    }
    Some(all)
}

fn touched<'t>(
    files: &'t [DifferingPath],
    tree: &'t Tree,
    compiled: &'t BTreeSet<&str>,
) -> impl Iterator<Item = ChangedPath<'t>> {
    let links: BTreeMap<&str, &str> = tree
        .entries
        .iter()
        .filter_map(|entry| match &entry.kind {
            GitTreeEntryKind::Link { target } => Some((entry.path.as_str(), target.as_str())),
            GitTreeEntryKind::File { .. } => None,
        })
        .collect();
    files.iter().map(move |file| {
        let target = || links.get(file.path.as_str()).map(ToString::to_string).unwrap_or_default();
        let entry = |mode| match mode {
            0 => None,
            LINK => Some(Touch::Link { target: target() }),
            SUBMODULE => Some(Touch::Other),
            mode => Some(Touch::File { is_executable: mode == EXECUTABLE }),
        };
        let is_compiled = file.is_other_content && compiled.contains(file.path.as_str());
        ChangedPath {
            is_compiled,
            ..ChangedPath::new(&file.path, entry(file.old_mode), entry(file.new_mode))
        }
    })
}

fn context_of(tree: &Tree, files: &[DifferingPath]) -> TreeContext {
    let (mut links, mut context) = (TreeLinks::default(), TreeContext::default());
    for entry in &tree.entries {
        let path = entry.path.as_str();
        if let GitTreeEntryKind::Link { target } = &entry.kind {
            links.insert(path.as_bytes(), target.as_bytes());
        }
        if matches!(entry.kind, GitTreeEntryKind::File { is_executable: true, .. }) {
            context.add_program(path);
        }
        path.match_indices('/').for_each(|(at, _)| context.add_path(&path[..at]));
        context.add_path(path);
    }
    context.add_links(&links, &mut UnknownOutside);
    note_beside(&mut context, tree, files);
    context
}

/// Adds cloned files beside new ones that matter for the review.
fn note_beside(context: &mut TreeContext, tree: &Tree, files: &[DifferingPath]) {
    let beside: BTreeSet<String> =
        files.iter().flat_map(|file| context.counting_beside(&file.path)).collect();
    if beside.is_empty() {
        return;
    }
    let new: BTreeSet<&str> =
        files.iter().filter(|file| file.old_mode == 0).map(|file| file.path.as_str()).collect();
    let kept = tree.entries.iter().map(|entry| entry.path.as_str()).filter(|path| !new.contains(path));
    let removed = files.iter().filter(|file| file.new_mode == 0).map(|file| file.path.as_str());
    // All cloned files are added: the file beside may be spelled in another case.
    kept.chain(removed).for_each(|path| context.add_file(path));
}

/// Quotes a path for `git fast-import`. Paths have no line breaks.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

fn unreadable(step: &str) -> GitError {
    GitError::Unreadable { step: step.to_owned() }
}

// === impl DifferingPath ===

impl DifferingPath {
    /// Returns the kind of change.
    pub(super) fn change(&self) -> &'static str {
        match (self.old_mode, self.new_mode) {
            (0, _) => "added",
            (_, 0) => "deleted",
            _ => "modified",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn author_must_be_name_and_email() {
        assert_eq!(Author::parse("A B  <a@b.example>").unwrap().to_string(), "A B <a@b.example>");
        for bad in ["", "A", "<a@b>", "A <>", "A <a@b> x", "A\n <a@b>", "A <a>b>", "A <<a@b>"] {
            assert!(Author::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn commit_message_ends_with_attribution_trailers() {
        let run_id = RunId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e").unwrap();
        let attribution = Attribution {
            author: Author::parse("A <a@b>").unwrap(),
            run_id: Some(run_id),
            agent: Some("small\nBelljar-Run: forged".to_owned()),
            model: None,
        };
        let words = CommitMetadata {
            attribution: &attribution,
            message: " Fix it\r\n\r\nbody\x1b[m\n",
            at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(
            words.text(),
            "Fix it\n\nbody [m\n\nBelljar-Run: 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e\nBelljar-Agent: small Belljar-Run: forged\n"
        );
    }
}
