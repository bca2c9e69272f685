//! Contents that Git would write to the paths of a tree from its own data: an index and commits name contents, and
//! `git checkout .`, `git stash` or `git reset --hard` write them. A content that no review of the files shows needs an approval
//! where its path does.
//!
//! ```text
//! index  ─► each entry ┐                    ┌► as the index had it before, or as the file is ─► no finding
//! commit ─► its tree ──┴► path and content ─┼► of a path that gains trust                    ─► needs approval
//!           (new objects)                   └► anything else                                 ─► no finding
//! ```

use super::index::{Index, IndexEntry, ObjectFormat, can_be};
use super::objects::NewObjects;
use super::references::References;
use super::{ChangeSet, Directory, DirectoryError, PathState, entry};
use belljar_policy::git::{folded, is_dot_git};
use belljar_policy::handoff::{
    self as policy, ChangeEntryKind, ChangedPath, Finding, TreeContext, TrustKind,
};
use belljar_policy::untrusted;
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of an index, and of all files together whose content is compared with what Git has of them.
const LARGEST_INDEX_BYTES: u64 = 64 << 20;
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of entries of new trees that are looked at. Few trees can name as many.
const MOST_ENTRIES: usize = 1_000_000;

/// Maximum size of a reference.
const LONGEST_REFERENCE: u64 = 4096;

const UNKNOWN_COMMIT: &str =
    "it leads to a commit that was there already and that isn't looked at, or to no commit";

/// The changes, and the trees that they are in.
pub(super) struct GitReviewInput<'a> {
    pub(super) set: &'a ChangeSet,
    pub(super) copy: &'a Directory,
    pub(super) target: &'a Directory,
    pub(super) context: &'a TreeContext,
    pub(super) objects: &'a NewObjects,
}

/// Judges what the data of a repository brings.
struct GitContentReview<'a> {
    ground: &'a GitReviewInput<'a>,
    format: ObjectFormat,
    before: Index,
    references: References<'a>,
    /// Trees whose content the person has, or that was judged, by their paths.
    known_trees: Vec<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Known entries: path, mode and object.
    known_entries: BTreeSet<(Vec<u8>, u32, Vec<u8>)>,
    bytes_left: u64,
    entries_left: usize,
}

/// The findings about the data of the tree's own repository.
///
/// # Errors
/// [`DirectoryError`] for a path that can't be looked at.
pub(super) fn find(ground: &GitReviewInput<'_>) -> Result<Vec<Finding>, DirectoryError> {
    let is_own =
        |path: &Path| path.iter().next().is_some_and(|first| is_dot_git(&folded(&first.to_string_lossy())));
    let changed: Vec<&Path> =
        ground.set.iter().filter(|(path, _)| is_own(path)).map(|(path, _)| path).collect();
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    let mut judge = GitContentReview::new(ground);
    let mut findings = Vec::new();
    let mut note = |path: &Path, reason: Option<String>| {
        let path = untrusted::name(path);
        findings.extend(reason.map(|reason| Finding { path, kind: TrustKind::Git, reason: reason.into() }));
    };
    // The index first: what it has was judged then, and a commit mostly has what it has.
    let is_there = |path: &&&Path| ground.set.get(path).is_some_and(|changed| changed.after.is_some());
    for path in changed.iter().filter(is_there).filter(|path| folded_parts(path) == [".git", "index"]) {
        note(path, judge.index(path)?);
    }
    for path in &changed {
        let parts = folded_parts(path);
        if ground.set.get(path).is_some_and(|changed| changed.after.is_none()) {
            note(path, judge.removed(path));
            continue;
        }
        match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [_, "head" | "orig_head"] | [_, "refs", ..] => note(path, judge.reference(path)),
            [_, "logs", ..] => note(path, judge.log(path)),
            [_, "objects", ..] => note(path, judge.commit(path)?),
            _ => {}
        }
    }
    Ok(findings)
}

fn folded_parts(path: &Path) -> Vec<String> {
    path.iter().map(|part| folded(&part.to_string_lossy())).collect()
}

// === impl GitContentReview ===

impl<'a> GitContentReview<'a> {
    fn new(ground: &'a GitReviewInput<'a>) -> Self {
        let format = format_of(ground.target);
        let before = read(ground.target.open_file(Path::new(".git/index")), LARGEST_INDEX_BYTES);
        let before = before.and_then(|bytes| Index::read(&bytes, format)).unwrap_or_default();
        let known_trees = vec![before.trees(format)];
        let known_entries = known(&before);
        let (bytes_left, entries_left) = (MOST_BYTES, MOST_ENTRIES);
        let references = References::of(ground.target);
        Self { ground, format, before, references, known_trees, known_entries, bytes_left, entries_left }
    }

    /// Returns why an index needs an approval, if it does.
    fn index(&mut self, path: &Path) -> Result<Option<String>, DirectoryError> {
        let unknown = || Some("git checkout writes its content, which cannot be determined".to_owned());
        let Some(bytes) = read(self.ground.copy.open_file(path), LARGEST_INDEX_BYTES) else {
            return Ok(unknown());
        };
        let Some(index) = Index::read(&bytes, self.format) else { return Ok(unknown()) };
        if !index.has_right_trees(self.format) {
            return Ok(Some("the next commit would contain other files than it lists".to_owned()));
        }
        if index.saves_looks && !self.before.saves_looks {
            return Ok(Some("git status skips the files that it marks as unchanged".to_owned()));
        }
        let before: BTreeMap<(&[u8], u16), &IndexEntry> =
            self.before.entries.iter().map(|entry| ((entry.path.as_slice(), entry.stage), entry)).collect();
        let is_changed =
            |entry: &&IndexEntry| before.get(&(entry.path.as_slice(), entry.stage)) != Some(entry);
        let changed: Vec<IndexEntry> = index.entries.iter().filter(is_changed).cloned().collect();
        let was_unwatched = |path: &[u8]| before.get(&(path, 0)).is_some_and(|entry| entry.is_unwatched);
        if let Some(hidden) = changed.iter().find(|entry| entry.is_unwatched && !was_unwatched(&entry.path)) {
            return Ok(Some(format!(
                "git status and git diff don't show changes of {}",
                shown(&hidden.path)
            )));
        }
        for IndexEntry { path, mode, object, .. } in changed {
            if let Some(reason) = self.content(&path, mode, &object)? {
                return Ok(Some(format!("git checkout writes {}: {reason}", shown(&path))));
            }
        }
        self.known_trees.push(index.trees(self.format));
        self.known_entries.extend(known(&index));
        Ok(None)
    }

    /// Returns why a reference needs an approval, if it does.
    fn reference(&self, path: &Path) -> Option<String> {
        let is_directory = |state: PathState| state.kind == FileType::Directory;
        if self.ground.set.get(path).and_then(|changed| changed.after).is_some_and(is_directory) {
            return None;
        }
        let bytes = read(self.ground.copy.open_file(path), LONGEST_REFERENCE).unwrap_or_default();
        let text = str::from_utf8(&bytes).unwrap_or_default();
        let text = text.strip_suffix('\n').unwrap_or(text);
        let is_hash =
            text.len() == 2 * self.format.length() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_name = text.strip_prefix("ref: refs/").is_some_and(is_harmless);
        if !is_hash && !is_name {
            return Some("it is not a valid commit name, or a shell may execute its content".to_owned());
        }
        let is_harmless = path.to_str().is_some_and(is_harmless);
        if !is_harmless {
            return Some("a shell that prints the branch name may execute its content".to_owned());
        }
        let name = path.strip_prefix(".git").ok().and_then(Path::to_str).unwrap_or_default();
        self.destination(name, text)
    }

    /// Returns why a reference needs an approval because of the commit that it leads to, if it does.
    fn destination(&self, name: &str, says: &str) -> Option<String> {
        let hash = match says.strip_prefix("ref: ") {
            // The other one is judged for itself, if it is changed.
            Some(other) if self.ground.set.get(&Path::new(".git").join(other)).is_some() => return None,
            // There is no commit yet.
            Some(other) => self.references.get(other)?,
            None => says.to_owned(),
        };
        (!self.is_known(name, &hash)).then(|| UNKNOWN_COMMIT.to_owned())
    }

    /// Returns true if a commit is new, and so looked at, or one that the reference led to before.
    fn is_known(&self, name: &str, hash: &str) -> bool {
        let is_new = from_hex(hash).is_some_and(|hash| self.ground.objects.commit(&hash).is_some());
        is_new || self.references.led_to(name, hash)
    }

    /// Returns why the log of a reference needs an approval, if it does: `HEAD@{1}`, `git checkout -` and `git stash` read
    /// it.
    fn log(&self, path: &Path) -> Option<String> {
        let is_directory = |state: PathState| state.kind == FileType::Directory;
        if self.ground.set.get(path).and_then(|changed| changed.after).is_some_and(is_directory) {
            return None;
        }
        let Some(after) = read(self.ground.copy.open_file(path), LARGEST_INDEX_BYTES) else {
            return Some(UNKNOWN_COMMIT.to_owned());
        };
        let before = read(self.ground.target.open_file(path), LARGEST_INDEX_BYTES).unwrap_or_default();
        let before: BTreeSet<&[u8]> = before.split(|byte| *byte == b'\n').collect();
        let name = path.strip_prefix(".git/logs").ok().and_then(Path::to_str).unwrap_or_default();
        let none = "0".repeat(2 * self.format.length());
        let is_known = |hash: Option<&[u8]>| {
            let hash = hash.and_then(|hash| str::from_utf8(hash).ok());
            hash.is_some_and(|hash| hash == none || self.is_known(name, hash))
        };
        let mut new = after.split(|byte| *byte == b'\n').filter(|line| !before.contains(line));
        let is_harmless = new.all(|line| {
            let mut words = line.split(|byte| *byte == b' ');
            is_known(words.next()) && is_known(words.next())
        });
        (!is_harmless).then(|| UNKNOWN_COMMIT.to_owned())
    }

    /// Returns why a reference that is removed needs an approval, if it does: what is packed under its name counts then.
    fn removed(&self, path: &Path) -> Option<String> {
        let name = path.strip_prefix(".git").ok()?.to_str()?;
        let packed = self.references.get_packed(name)?;
        self.destination(name, packed)
    }

    /// Returns why a new object needs an approval, if it is a commit and does.
    fn commit(&mut self, path: &Path) -> Result<Option<String>, DirectoryError> {
        let Some(name) = object_name(path) else { return Ok(None) };
        let Some(content) = self.ground.objects.commit(&name) else { return Ok(None) };
        let Some(tree) = tree_of(content) else {
            return Ok(Some("it is no commit as git writes them".to_owned()));
        };
        let reason = self.tree(&tree)?;
        Ok(reason.map(|(path, reason)| format!("it is a commit with {}: {reason}", shown(&path))))
    }

    /// Returns a path in a tree that needs an approval, and the reason.
    fn tree(&mut self, root: &[u8]) -> Result<Option<(Vec<u8>, String)>, DirectoryError> {
        let mut pending = vec![(Vec::new(), root.to_vec())];
        while let Some((path, object)) = pending.pop() {
            if self.known_trees.iter().any(|trees| trees.get(&path) == Some(&object)) {
                continue;
            }
            let Some(content) = self.ground.objects.tree(&object) else {
                return Ok(Some((path, "its content is not part of the changes".to_owned())));
            };
            let Some(entries) = entries_of(content, self.format) else {
                return Ok(Some((path, "it is not a valid git tree".to_owned())));
            };
            for (name, mode, object) in entries {
                let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
                let known = ([path.as_slice(), slash, name].concat(), mode, object.to_vec());
                let Some(left) = self.entries_left.checked_sub(1) else {
                    return Ok(Some((known.0, "there are too many files to look at".to_owned())));
                };
                self.entries_left = left;
                if !can_be(&known.0) {
                    return Ok(Some((path, "there are longer names in it than there can be".to_owned())));
                }
                if mode == 0o40_000 {
                    pending.push((known.0, known.2));
                } else if !self.known_entries.contains(&known)
                    && let Some(reason) = self.content(&known.0, mode, object)?
                {
                    return Ok(Some((known.0, reason)));
                }
            }
        }
        Ok(None)
    }

    /// Returns why a content needs an approval where Git would write it, if it does.
    fn content(&mut self, path: &[u8], mode: u32, object: &[u8]) -> Result<Option<String>, DirectoryError> {
        let text = String::from_utf8_lossy(path).into_owned();
        let is_bad =
            |part: &str| matches!(part, "" | "." | "..") || part.contains('\\') || is_dot_git(&folded(part));
        if text.split('/').any(is_bad) {
            return Ok(Some("no such path is written by git itself".to_owned()));
        }
        let path = PathBuf::from(OsStr::from_bytes(path));
        if self.is_file(&path, mode, object)? {
            return Ok(None);
        }
        let after = match mode {
            0o100_644 | 0o100_755 => ChangeEntryKind::File { is_executable: mode == 0o100_755 },
            _ => return Ok(Some("a link, or a repository of its own, that is not shown".to_owned())),
        };
        let before =
            self.ground.target.stat(&path)?.map(|stat| entry(PathState::of(&stat), String::new(), false));
        let touched = ChangedPath::new(&text, before, Some(after));
        let findings = policy::review_in_tree([touched], self.ground.context);
        Ok(findings
            .into_iter()
            .next()
            .map(|finding| format!("not the content that the review shows; {}", finding.reason)))
    }

    /// Returns true if a path will be what Git has of it. Then a review of the files shows it, or nothing of it is changed.
    fn is_file(&mut self, path: &Path, mode: u32, object: &[u8]) -> Result<bool, DirectoryError> {
        let changed = self.ground.set.get(path);
        let tree = match changed {
            Some(changed) if !changed.same_content => self.ground.copy,
            _ => self.ground.target,
        };
        let state = match changed {
            Some(changed) => changed.after,
            None => self.ground.target.stat(path)?.as_ref().map(PathState::of),
        };
        let Some(state) = state else { return Ok(false) };
        let content = match (state.kind, mode) {
            (FileType::Symlink, 0o120_000) => tree.read_link(path)?.into_bytes(),
            (FileType::RegularFile, 0o100_644 | 0o100_755)
                if (state.mode & 0o100 != 0) == (mode == 0o100_755) && state.size <= self.bytes_left =>
            {
                self.bytes_left -= state.size;
                let Some(content) = read(tree.open_file(path), state.size) else { return Ok(false) };
                content
            }
            _ => return Ok(false),
        };
        Ok(self.format.object("blob", &content) == object)
    }
}

fn known(index: &Index) -> BTreeSet<(Vec<u8>, u32, Vec<u8>)> {
    let entries = index.entries.iter().filter(|entry| entry.stage == 0);
    entries.map(|entry| (entry.path.clone(), entry.mode, entry.object.clone())).collect()
}

/// Reads a whole file; `None` for one that can't be read or is larger.
pub(super) fn read(file: Result<std::fs::File, DirectoryError>, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Returns the format of the objects of a tree's own repository. Changes of the setting for it need an approval.
fn format_of(tree: &Directory) -> ObjectFormat {
    let config = read(tree.open_file(Path::new(".git/config")), 1 << 20).unwrap_or_default();
    let config = String::from_utf8_lossy(&config).to_lowercase();
    let is_sha256 = config.lines().any(|line| line.contains("objectformat") && line.contains("sha256"));
    if is_sha256 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 }
}

/// Returns true for a name in which no shell finds anything to run, and that no command takes for an option (`--exec=x`) or for more than
/// a name (`+main` is pushed by force). Git finds no reference by a name with `..`.
fn is_harmless(name: &str) -> bool {
    let is_harmless = |character: char| character.is_alphanumeric() || "-_./+@=,#".contains(character);
    let is_name = |part: &str| !part.is_empty() && part != "." && !part.starts_with(['-', '+']);
    name.chars().all(is_harmless) && name.split('/').all(is_name) && !name.contains("..")
}

fn object_name(path: &Path) -> Option<Vec<u8>> {
    let mut parts = path.iter().rev();
    let (rest, two) = (parts.next()?.to_str()?, parts.next()?.to_str()?);
    from_hex(&format!("{two}{rest}"))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The tree that a commit names first.
fn tree_of(commit: &[u8]) -> Option<Vec<u8>> {
    let line = commit.strip_prefix(b"tree ")?.split(|byte| *byte == b'\n').next()?;
    from_hex(str::from_utf8(line).ok()?)
}

/// An entry of a tree: name, mode, object.
type TreeEntry<'a> = (&'a [u8], u32, &'a [u8]);

/// The entries of a tree.
fn entries_of(mut tree: &[u8], format: ObjectFormat) -> Option<Vec<TreeEntry<'_>>> {
    let mut entries = Vec::new();
    while !tree.is_empty() {
        let space = tree.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(str::from_utf8(tree.get(..space)?).ok()?, 8).ok()?;
        let rest = tree.get(space + 1..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (object, left) = rest.get(end + 1..)?.split_at_checked(format.length())?;
        entries.push((rest.get(..end)?, mode, object));
        tree = left;
    }
    Some(entries)
}

/// A path as a person reads it in a reason.
fn shown(path: &[u8]) -> String {
    match path.is_empty() {
        true => "its files".to_owned(),
        false => untrusted::name(Path::new(OsStr::from_bytes(path))),
    }
}
