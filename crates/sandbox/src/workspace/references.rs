//! References of a repository that lie packed in one file: `packed-refs`, beside the directory `refs`.
//!
//! A reference that git packs loses its own file, and one that is changed gets one again, which goes before the packed entry. So where
//! a run adds such a file, what it replaces is the entry. It conflicts if the entry is another than the run began with.
//! References in a reftable need nothing of this: every change of one is a change of the file `tables.list`.

use super::baseline::Baseline;
use belljar_files::directory::{Directory, DirectoryError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The files of packed references that a source had, by the directory that they are in.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(Vec<u8>, String)>", into = "Vec<(Vec<u8>, String)>")]
pub(super) struct PackedReferences {
    files: BTreeMap<PathBuf, ReferenceHashes>,
}

/// Hashes by the name of their reference.
type ReferenceHashes = BTreeMap<Vec<u8>, Vec<u8>>;

/// Finds references that something else has moved since the copy was made.
pub(super) struct MovedReferences<'a> {
    target: &'a Directory,
    /// The tree that the run began with, if it is apart from the target.
    base: Option<&'a Directory>,
    baseline: &'a Baseline,
    /// References found, by the directory of the repository.
    found: BTreeMap<PathBuf, PackedReferencesChange>,
}

/// The packed references of a repository, then and now.
struct PackedReferencesChange {
    /// `None` if it isn't known.
    then: Option<ReferenceHashes>,
    now: ReferenceHashes,
    is_touched: bool,
}

pub(super) const NAME: &str = "packed-refs";

/// Maximum size of such a file that is recorded when a run starts.
const LARGEST_RECORDED_BYTES: u64 = 256 << 10;

/// Maximum size of such a file.
const LARGEST_BYTES: u64 = 64 << 20;

// === impl PackedReferences ===

impl PackedReferences {
    /// Records those in a directory. A file that is too large is left out.
    pub(super) fn record(&mut self, directory: &Path, opened: &Directory) {
        let _ = match entries(opened, Path::new(NAME), LARGEST_RECORDED_BYTES) {
            Some(entries) => self.files.insert(directory.to_owned(), entries),
            None => self.files.remove(directory),
        };
    }
}

/// Names are bytes, which can't be the members of a JSON object; the text is that of git, each byte as the character of its number.
impl From<PackedReferences> for Vec<(Vec<u8>, String)> {
    fn from(packed: PackedReferences) -> Self {
        let line = |(name, hash): (&Vec<u8>, &Vec<u8>)| [hash, &b" "[..], name, b"\n"].concat();
        let text = |entries: &ReferenceHashes| entries.iter().flat_map(line).map(char::from).collect();
        packed
            .files
            .iter()
            .map(|(path, entries)| (path.as_os_str().as_bytes().to_owned(), text(entries)))
            .collect()
    }
}

impl From<Vec<(Vec<u8>, String)>> for PackedReferences {
    fn from(stored: Vec<(Vec<u8>, String)>) -> Self {
        let bytes = |text: &str| text.chars().filter_map(|byte| u8::try_from(byte).ok()).collect::<Vec<u8>>();
        let file = |(path, text): (Vec<u8>, String)| (OsStr::from_bytes(&path).into(), parsed(&bytes(&text)));
        Self { files: stored.into_iter().map(file).collect() }
    }
}

// === impl MovedReferences ===

impl<'a> MovedReferences<'a> {
    pub(super) fn in_target(
        (target, base): (&'a Directory, Option<&'a Directory>),
        baseline: &'a Baseline,
    ) -> Self {
        Self { target, base, baseline, found: BTreeMap::new() }
    }

    /// Returns true if `path`, at which the target has nothing, is that of a reference whose packed entry is another than it was.
    pub(super) fn is_moved(&mut self, path: &Path) -> Result<bool, DirectoryError> {
        for (repository, name) in places(path) {
            if !self.found.contains_key(&repository) {
                let entry = self.look(&repository)?;
                self.found.insert(repository.clone(), entry);
            }
            let Some(PackedReferencesChange { then, now, is_touched }) = self.found.get(&repository) else {
                continue;
            };
            let now = now.get(&name);
            let is_moved = match then {
                Some(then) => then.get(&name) != now,
                None => *is_touched && now.is_some(),
            };
            if is_moved {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn look(&self, repository: &Path) -> Result<PackedReferencesChange, DirectoryError> {
        let path = repository.join(NAME);
        let is_touched = self.target.stat(&path)?.is_some_and(|now| self.baseline.is_touched(&path, &now));
        let of = |tree| entries(tree, &path, LARGEST_BYTES).unwrap_or_default();
        let then = match self.base {
            Some(base) => Some(of(base)),
            None if self.baseline.had(&path) == Some(false) => Some(ReferenceHashes::new()),
            None => self.baseline.packed_references().files.get(repository).cloned(),
        };
        Ok(PackedReferencesChange { then, now: of(self.target), is_touched })
    }
}

/// Returns the directories that may be the repository of a reference at this path, and its name there.
fn places(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let is_refs = |at: &usize| parts.get(*at).is_some_and(|part| part.as_os_str() == "refs");
    let split = |at: usize| {
        let (repository, name) = parts.split_at(at);
        let name: PathBuf = name.iter().collect();
        (repository.iter().collect(), name.as_os_str().as_bytes().to_owned())
    };
    (0..parts.len()).filter(is_refs).map(split).collect()
}

fn entries(tree: &Directory, path: &Path, most: u64) -> Option<ReferenceHashes> {
    let mut bytes = Vec::new();
    tree.open_file(path).ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then(|| parsed(&bytes))
}

fn parsed(text: &[u8]) -> ReferenceHashes {
    let lines =
        text.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"#") && !line.starts_with(b"^"));
    let pairs = lines.filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        Some((line.get(at + 1..)?.to_owned(), line.get(..at)?.to_owned()))
    });
    pairs.collect()
}
