//! The index of a repository of Git, read as Git reads it: what of each path `git checkout` would write, without a look at whether the
//! paths are such as it would take itself.
//!
//! Only what `git add` and `git commit` write is read. Whatever else there may be in an index makes it one that can't be judged.

use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Which hash names the objects of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

/// The entries of an index, in their order.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) entries: Vec<IndexEntry>,
    /// True if it lists files and directories that Git needn't look at: a cache of what is untracked, or of what a file
    /// monitor has seen.
    pub(super) saves_looks: bool,
    /// Cached trees, which Git takes for those of the entries without computing them.
    cached_trees: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A path in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) path: Vec<u8>,
    /// Type and permission bits, as in a tree of Git.
    pub(super) mode: u32,
    /// The hash of the content.
    pub(super) object: Vec<u8>,
    /// Stage: not zero for one of several versions of a path that conflicts.
    pub(super) stage: u16,
    /// Git takes the file for unchanged without a look at it, or for one that needn't be there.
    pub(super) is_unwatched: bool,
}

/// The names in a directory, with mode and object.
type Names = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

/// The bytes of an index that are still to be read.
struct IndexReader<'a>(&'a [u8]);

/// Offset of the mode in an entry, and of its object.
const MODE_AT: usize = 24;
const OBJECT_AT: usize = 40;

/// Bits of the flags of an entry: it is assumed to be unchanged; more flags follow; its stage; the length of its path, or that it is longer.
const ASSUMED_UNCHANGED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
const LENGTH: u16 = 0x0fff;

/// Bit of the further flags of an entry: no file of the work tree belongs to it.
const NOT_IN_WORK_TREE: u16 = 0x4000;

/// `PATH_MAX` with its last byte, and `NAME_MAX`.
const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 255;

/// Maximum number of entries, and of bytes of all directories of all paths. Version 4 repeats long paths in few bytes.
const MOST_ENTRIES: u32 = 500_000;
const MOST_DIRECTORY_BYTES: usize = 256 << 20;

/// The extension with trees, and those that save Git looks: what is untracked, and what a file monitor has seen.
const TREES: &[u8] = b"TREE";
const LOOKS: [&[u8]; 2] = [b"UNTR", b"FSMN"];

// === impl ObjectFormat ===

impl ObjectFormat {
    /// Length of a hash in bytes.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// The name of an object.
    pub(super) fn object(self, kind: &str, content: &[u8]) -> Vec<u8> {
        let head = format!("{kind} {}\0", content.len());
        match self {
            Self::Sha1 => Sha1::new_with_prefix(head).chain_update(content).finalize().to_vec(),
            Self::Sha256 => Sha256::new_with_prefix(head).chain_update(content).finalize().to_vec(),
        }
    }
}

// === impl Index ===

impl Index {
    /// Reads an index; `None` for one with anything that is not known here.
    pub(super) fn read(bytes: &[u8], format: ObjectFormat) -> Option<Self> {
        let mut from = IndexReader(bytes.get(..bytes.len().checked_sub(format.length())?)?);
        if from.take(4)? != b"DIRC" {
            return None;
        }
        let (version, count) = (from.number()?, from.number()?);
        if !(2..=4).contains(&version) || count > MOST_ENTRIES {
            return None;
        }
        let (mut index, mut left) = (Self::default(), MOST_DIRECTORY_BYTES);
        for _ in 0..count {
            let before = index.entries.last().map_or(&[][..], |entry| &entry.path);
            let entry = from.entry(version, format, before)?;
            left = left.checked_sub(entry.path.len() * (1 + depth(&entry.path)))?;
            // In the order of the paths, each once: Git finds them by that.
            let is_next = index
                .entries
                .last()
                .is_none_or(|last| (last.path.as_slice(), last.stage) < (entry.path.as_slice(), entry.stage));
            if !is_next {
                return None;
            }
            index.entries.push(entry);
        }
        while !from.0.is_empty() {
            let (name, length) = (from.take(4)?, from.number()?);
            let content = from.take(usize::try_from(length).ok()?)?;
            match name {
                TREES => index.cached_trees = IndexReader(content).trees(format)?,
                name if LOOKS.contains(&name) => index.saves_looks = true,
                _ => return None,
            }
        }
        Some(index)
    }

    /// Returns true if the cached trees match the entries. Otherwise the next commit has others in it.
    pub(super) fn has_right_trees(&self, format: ObjectFormat) -> bool {
        let trees = if self.cached_trees.is_empty() { BTreeMap::new() } else { self.trees(format) };
        self.cached_trees.iter().all(|(path, object)| trees.get(path) == Some(object))
    }

    /// The trees of the entries, by the paths of their directories.
    pub(super) fn trees(&self, format: ObjectFormat) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let mut contents: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::from([(Vec::new(), Vec::new())]);
        let mut trees = BTreeMap::new();
        // Deepest first, and what is in one directory in the order of Git's trees, in which a directory's name ends with a slash.
        let mut children: BTreeMap<Vec<u8>, Names> = BTreeMap::new();
        for IndexEntry { path, mode, object, .. } in self.entries.iter().filter(|entry| entry.stage == 0) {
            let (above, name) = split(path);
            children.entry(above.to_vec()).or_default().insert(name.to_vec(), (*mode, object.clone()));
            let mut at = above;
            while !at.is_empty() && contents.insert(at.to_vec(), Vec::new()).is_none() {
                at = split(at).0;
            }
        }
        let mut directories: Vec<Vec<u8>> = contents.into_keys().collect();
        directories.sort_by_key(|path| std::cmp::Reverse((depth(path), path.clone())));
        for path in directories {
            let mut content = Vec::new();
            for (name, (mode, object)) in children.remove(&path).unwrap_or_default() {
                let name = name.strip_suffix(b"/").unwrap_or(&name);
                content.extend_from_slice(format!("{mode:o} ").as_bytes());
                content.extend_from_slice(name);
                content.push(0);
                content.extend_from_slice(&object);
            }
            let object = format.object("tree", &content);
            if !path.is_empty() {
                let (above, name) = split(&path);
                let name = [name, b"/"].concat();
                children.entry(above.to_vec()).or_default().insert(name, (0o40000, object.clone()));
            }
            trees.insert(path, object);
        }
        trees
    }
}

/// The directory of a path, and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// Returns true for a path that Linux can have.
pub(super) fn can_be(path: &[u8]) -> bool {
    path.len() < LONGEST_PATH && path.split(|byte| *byte == b'/').all(|name| name.len() <= LONGEST_NAME)
}

fn depth(path: &[u8]) -> usize {
    match path.is_empty() {
        true => 0,
        false => 1 + path.iter().filter(|byte| **byte == b'/').count(),
    }
}

// === impl IndexReader ===

impl<'a> IndexReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Returns the bytes before the next `end` byte, and skips that byte.
    fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        let at = self.0.iter().position(|byte| *byte == end)?;
        let taken = self.take(at)?;
        self.take(1)?;
        Some(taken)
    }

    /// An entry; `before` is the path of the one before.
    fn entry(&mut self, version: u32, format: ObjectFormat, before: &[u8]) -> Option<IndexEntry> {
        let begin = self.0;
        let head = self.take(OBJECT_AT)?;
        let mode = u32::from_be_bytes(head.get(MODE_AT..MODE_AT + 4)?.try_into().ok()?);
        let object = self.take(format.length())?.to_vec();
        let flags = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
        let mut is_unwatched = flags & ASSUMED_UNCHANGED != 0;
        if flags & EXTENDED != 0 {
            if version < 3 {
                return None;
            }
            let further = u16::from_be_bytes(self.take(2)?.try_into().ok()?);
            is_unwatched |= further & NOT_IN_WORK_TREE != 0;
        }
        let path = match version {
            4 => {
                let kept = before.len().checked_sub(self.offset()?)?;
                [before.get(..kept)?, self.until(0)?].concat()
            }
            _ => self.until(0)?.to_vec(),
        };
        let noted = usize::from(flags & LENGTH);
        if noted != path.len().min(usize::from(LENGTH)) || path.is_empty() || !can_be(&path) {
            return None;
        }
        if version != 4 {
            // Up to eight zeros, of which one is taken already.
            let length = begin.len() - self.0.len();
            let padding = self.take((length - 1 + 8) / 8 * 8 - length)?;
            if padding.iter().any(|byte| *byte != 0) {
                return None;
            }
        }
        Some(IndexEntry { path, mode, object, stage: (flags & STAGE) >> 12, is_unwatched })
    }

    /// A number as Git writes offsets: seven bits a byte, each further byte adding one.
    fn offset(&mut self) -> Option<usize> {
        let mut number = 0_usize;
        for at in 0..5 {
            let byte = *self.take(1)?.first()?;
            number = (number + usize::from(at > 0)) << 7 | usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The extension with trees: each directory before those in it.
    fn trees(&mut self, format: ObjectFormat) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut trees = Vec::new();
        // Paths of directories, and how many in each are still to come.
        let mut open: Vec<(Vec<u8>, u32)> = Vec::new();
        while !self.0.is_empty() {
            let name = self.until(0)?;
            let count = text(self.until(b' ')?)?.parse::<i64>().ok()?;
            let below = text(self.until(b'\n')?)?.parse::<u32>().ok()?;
            while open.last().is_some_and(|(_, left)| *left == 0) {
                open.pop();
            }
            let path: Vec<u8> = match open.last_mut() {
                Some((above, left)) => {
                    *left = left.checked_sub(1)?;
                    let slash: &[u8] = if above.is_empty() { b"" } else { b"/" };
                    [above.as_slice(), slash, name].concat()
                }
                None if trees.is_empty() && name.is_empty() => Vec::new(),
                None => return None,
            };
            if !can_be(&path) {
                return None;
            }
            if count >= 0 {
                trees.push((path.clone(), self.take(format.length())?.to_vec()));
            }
            open.push((path, below));
        }
        Some(trees)
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}
