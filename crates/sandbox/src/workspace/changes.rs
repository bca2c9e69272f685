//! Reads a change set out of an overlay's upper layer.
//!
//! The layer holds what the job wrote: new and changed files, a character device 0/0 for a name that is gone, and
//! directories, some marked opaque: what was below them is gone too. The layer is the host's own by now: permissions
//! that a job has left in the way are noted first and then changed.

mod left_out;
mod lines;
mod stored;
#[cfg(test)]
mod tests;

use super::carried;
use super::extents;
use super::imprint::Imprint;
use super::relaxed_permissions::{self, ModesByPath, RelaxedPermissions};
use belljar_contract::result::Change;
use belljar_files::directory::{Directory, DirectoryError, Name};
use left_out::OmittedPaths;
pub use lines::{ChangeLine, lines};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use stored::StoredChange;

/// Changes that a job made in its copy of a workspace, by path.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<StoredChange>", into = "Vec<StoredChange>")]
pub struct ChangeSet {
    changes: BTreeMap<PathBuf, PathChange>,
    /// Changed paths that are too long to be used. They are not stored.
    left_out: Vec<PathBuf>,
}

/// A change at one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathChange {
    /// State in the source.
    pub before: Option<PathState>,
    /// State in the copy.
    pub after: Option<PathState>,
    /// True if the content is the same, so that only the permission bits differ.
    pub same_content: bool,
}

/// Why the changes of a job can't be determined.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// There are too many changes to hold.
    #[error(
        "the job changed more than {MOST_PATHS} paths, or these are longer than {MOST_PATH_BYTES} bytes \
         or {MOST_LEVELS} levels together"
    )]
    TooMany,
    /// The job left a path that the kernel accepts only in pieces.
    #[error("the job left a path that exceeds the maximum path length")]
    TooLong,
    /// Something can't be read.
    #[error("can't read the changes of the job")]
    Directory(#[source] DirectoryError),
}

/// State of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathState {
    /// File type.
    pub kind: FileType,
    /// Permission bits.
    pub mode: u32,
    /// Size in bytes.
    pub size: u64,
}

/// Walks a layer beside its source.
struct LayerReader<'a> {
    source: &'a Directory,
    upper: &'a Directory,
    changes: BTreeMap<PathBuf, PathChange>,
    /// Paths that are too long.
    left_out: OmittedPaths,
    /// Permissions that are in the way of reading the layer.
    closed: &'a mut ModesByPath,
    /// Maximum number of bytes of paths that may still be held.
    path_bytes_left: usize,
    /// Maximum number of levels that the other paths may still have.
    levels_left: usize,
    /// Directories of the layer still to be read, and whether they hide what the source has there.
    pending: Vec<(PathBuf, bool)>,
}

/// Maximum number of changed paths that are reported. Far more than a build leaves; a million take about 200 MB here.
const MOST_PATHS: usize = 1_000_000;

/// Maximum size of all names together, in bytes. Deep directories name all that they are in, each of them again.
const MOST_PATH_BYTES: usize = 256 << 20;

/// The levels of all paths together. Each is opened from the top several times: without this limit thousands of files below
/// thousands of directories would take minutes, past the time limit of their run.
const MOST_LEVELS: usize = 20 * MOST_PATHS;

// === impl ChangeSet ===

impl ChangeSet {
    /// Compares the layer with the source below it. The permission bits are those that are applied ([`Self::carried`]).
    ///
    /// # Errors
    /// [`ChangesError`] for whatever can't be read, and for more than can be held.
    pub fn read(source: &Directory, upper: &Directory) -> Result<Self, ChangesError> {
        Self::compare(source, upper, false, &mut ModesByPath::new())?.carried(source)
    }

    /// Compares the layer of a sandbox that lives: permissions that are in the way are noted in `opened`, to be put back. The
    /// permission bits of the changes are those that the sandbox set.
    ///
    /// # Errors
    /// [`ChangesError`], as from [`Self::read`].
    pub fn read_live(
        source: &Directory,
        upper: &Directory,
        opened: &mut RelaxedPermissions<'_>,
    ) -> Result<Self, ChangesError> {
        Self::compare(source, upper, false, opened.modes())
    }

    /// Compares a whole copy with the source that it was made from. Files that a copy leaves out are not missing: sockets,
    /// pipes, devices. Later changes of the source are no changes of the copy.
    ///
    /// # Errors
    /// [`ChangesError`] for whatever can't be read, and for more than can be held.
    pub fn read_copy(source: &Directory, copy: &Directory, made: &Imprint) -> Result<Self, ChangesError> {
        Self::compare_copy(source, copy, made, &mut ModesByPath::new())?.carried(source)
    }

    /// Reads the changes of a copy in which work goes on: permissions that are opened up for reading are noted, to be put
    /// back.
    ///
    /// # Errors
    /// [`ChangesError`], as from [`Self::read_copy`].
    pub fn read_live_copy(
        source: &Directory,
        copy: &Directory,
        made: &Imprint,
        opened: &mut RelaxedPermissions<'_>,
    ) -> Result<Self, ChangesError> {
        Self::compare_copy(source, copy, made, opened.modes())
    }

    fn compare_copy(
        source: &Directory,
        copy: &Directory,
        made: &Imprint,
        closed: &mut ModesByPath,
    ) -> Result<Self, ChangesError> {
        // A layer that hides everything below it.
        let mut changed = Self::compare(source, copy, true, closed)?;
        let is_copied =
            |kind| matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink);
        changed.changes.retain(|_, changed| {
            changed.after.is_some() || changed.before.is_some_and(|before| is_copied(before.kind))
        });
        changed.leave_out_others((source, copy), made)?;
        Ok(changed)
    }

    /// Leaves out differences that were not made in the copy.
    fn leave_out_others(
        &mut self,
        (source, copy): (&Directory, &Directory),
        made: &Imprint,
    ) -> Result<(), ChangesError> {
        let is_gone = |path: &Path| {
            made.has(path) && self.changes.get(path).is_some_and(|changed| changed.after.is_none())
        };
        let mut others = BTreeSet::new();
        for (path, changed) in &self.changes {
            let is_others = match changed.after {
                Some(_) => {
                    let source = source.stat(path)?;
                    copy.stat(path)?.is_some_and(|now| made.is_of_source(path, &now, source.as_ref()))
                }
                // It came to the source later. If the directory that it came to was removed, that is reported, too.
                None => !made.has(path) && !path.ancestors().skip(1).any(is_gone),
            };
            if is_others {
                others.insert(path.clone());
            }
        }
        self.changes.retain(|path, _| !others.contains(path));
        Ok(())
    }

    fn compare(
        source: &Directory,
        upper: &Directory,
        is_opaque: bool,
        closed: &mut ModesByPath,
    ) -> Result<Self, ChangesError> {
        let mut reading = LayerReader::begin((source, upper), is_opaque, closed);
        reading.open_top()?;
        while let Some((below, opaque)) = reading.pending.pop() {
            reading.read_directory(&below, opaque)?;
        }
        reading.compare_content()?;
        reading.changes.retain(|_, changed| changed.before != changed.after || !changed.same_content);
        let LayerReader { mut changes, left_out, .. } = reading;
        left_out.keep_directories(&mut changes);
        Ok(Self { changes, left_out: left_out.paths })
    }

    /// The changes with the permission bits that are applied to the source: of those that a sandbox sets only the executable bit
    /// counts. Changes of nothing but other bits are left out.
    ///
    /// # Errors
    /// [`ChangesError`] for a directory of the source that can't be looked at.
    pub fn carried(mut self, source: &Directory) -> Result<Self, ChangesError> {
        carried::carry(&mut self.changes, source)?;
        Ok(self)
    }

    /// The paths with what became of them, sorted.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Path, &PathChange)> + ExactSizeIterator {
        self.changes.iter().map(|(path, changed)| (path.as_path(), changed))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&Path, &mut PathChange)> {
        self.changes.iter_mut().map(|(path, changed)| (path.as_path(), changed))
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.changes.remove(path);
    }

    /// Leaves out a file that the host itself has put there, with the directories on the way that are there for it alone.
    pub fn leave_out(&mut self, path: &Path) {
        self.changes.remove(path);
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            let is_new = self.changes.get(above).is_some_and(|changed| changed.before.is_none());
            let is_alone = !self.changes.keys().any(|other| other != above && other.starts_with(above));
            if is_new && is_alone {
                self.changes.remove(above);
            }
        }
    }

    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.left_out.is_empty()
    }

    /// Changed paths that are longer than a path may be, at most a hundred of them: the first on the way to what is below. They are
    /// neither shown nor applied.
    pub fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Returns the number of changed paths.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// The change at a path, if there is one.
    pub(super) fn get(&self, path: &Path) -> Option<&PathChange> {
        self.changes.get(path)
    }

    /// Makes a set of these changes.
    pub(super) fn of<'p>(changes: impl Iterator<Item = (&'p Path, PathChange)>) -> Self {
        let changes = changes.map(|(path, changed)| (path.to_owned(), changed)).collect();
        Self { changes, left_out: Vec::new() }
    }

    /// The changes at those paths for which `is_wanted` returns true.
    pub(crate) fn only(&self, is_wanted: impl Fn(&Path) -> bool) -> Self {
        let wanted = self.changes.iter().filter(|(path, _)| is_wanted(path));
        let changes = wanted.map(|(path, changed)| (path.clone(), *changed)).collect();
        Self { changes, left_out: self.left_out.clone() }
    }
}

// === impl LayerReader ===

impl<'a> LayerReader<'a> {
    fn begin(
        (source, upper): (&'a Directory, &'a Directory),
        is_opaque: bool,
        closed: &'a mut ModesByPath,
    ) -> Self {
        Self {
            source,
            upper,
            changes: BTreeMap::new(),
            left_out: OmittedPaths::default(),
            closed,
            path_bytes_left: MOST_PATH_BYTES,
            levels_left: MOST_LEVELS,
            pending: vec![(PathBuf::new(), is_opaque)],
        }
    }

    fn open_top(&mut self) -> Result<(), ChangesError> {
        relaxed_permissions::note(self.closed, Path::new(""), &self.upper.stat_itself()?);
        Ok(self.upper.open_up()?)
    }

    /// Returns the number of names that one directory may still have.
    fn room(&self) -> usize {
        MOST_PATHS.saturating_sub(self.changes.len())
    }

    fn insert(&mut self, path: PathBuf, changed: PathChange) -> Result<(), ChangesError> {
        let (bytes, levels) = (path.as_os_str().len(), path.components().count());
        self.path_bytes_left = self.path_bytes_left.checked_sub(bytes).ok_or(ChangesError::TooMany)?;
        self.levels_left = self.levels_left.checked_sub(levels).ok_or(ChangesError::TooMany)?;
        self.changes.insert(path, changed);
        if self.changes.len() > MOST_PATHS { Err(ChangesError::TooMany) } else { Ok(()) }
    }

    fn read_directory(&mut self, below: &Path, opaque: bool) -> Result<(), ChangesError> {
        let names = match below.as_os_str().is_empty() {
            true => self.upper.names(self.room())?,
            false => self.upper.open_own(below)?.names(self.room())?,
        };
        if opaque {
            self.note_vanished(below, &names)?;
        }
        for name in names {
            self.note(below.join(OsStr::from_bytes(name.name.as_bytes())), opaque)?;
        }
        Ok(())
    }

    fn note(&mut self, path: PathBuf, opaque: bool) -> Result<(), ChangesError> {
        if OmittedPaths::is_too_long(&path) {
            self.left_out.note(path);
            return Ok(());
        }
        let Some(stat) = self.upper.stat(&path)? else { return Ok(()) };
        let before = self.source.stat(&path)?.map(|stat| PathState::of(&stat));
        if is_whiteout(&stat) {
            return self.note_gone(&path, before);
        }
        let after = PathState::of(&stat);
        relaxed_permissions::note(self.closed, &path, &stat);
        if after.kind == FileType::Directory {
            let is_new = before.is_some_and(|before| before.kind != after.kind);
            let hides = opaque || is_new || is_opaque(self.upper, &path)?;
            self.pending.push((path.clone(), hides));
        } else if before.is_some_and(|before| before.kind == FileType::Directory) {
            self.note_gone(&path, before)?;
        }
        self.insert(path, PathChange { before, after: Some(after), same_content: false })
    }

    fn note_gone(&mut self, path: &Path, before: Option<PathState>) -> Result<(), ChangesError> {
        let Some(before) = before else { return Ok(()) };
        let gone = PathChange { before: Some(before), after: None, same_content: false };
        self.insert(path.to_owned(), gone)?;
        match before.kind {
            FileType::Directory => self.note_vanished(path, &[]),
            _ => Ok(()),
        }
    }

    /// Notes everything that the source has below `below`, except what the layer names there itself.
    fn note_vanished(&mut self, top: &Path, named: &[Name]) -> Result<(), ChangesError> {
        let mut vanished = vec![top.to_owned()];
        while let Some(below) = vanished.pop() {
            let Some(stat) = stat_or_self(self.source, &below)? else { continue };
            if PathState::of(&stat).kind != FileType::Directory {
                continue;
            }
            for Name { name, kind } in open_or_clone(self.source, &below)?.names(self.room())? {
                let path = below.join(OsStr::from_bytes(name.as_bytes()));
                if below == top && named.iter().any(|known| known.name == name) {
                    continue;
                }
                if OmittedPaths::is_too_long(&path) {
                    self.left_out.note_removed(path);
                    continue;
                }
                let before = self.source.stat(&path)?.map(|stat| PathState::of(&stat));
                self.insert(path.clone(), PathChange { before, after: None, same_content: false })?;
                if kind == FileType::Directory {
                    vanished.push(path);
                }
            }
        }
        Ok(())
    }

    /// Compares contents. A file that was opened for writing is in the layer even if its content is still the same, as is
    /// every directory on the way.
    fn compare_content(&mut self) -> Result<(), ChangesError> {
        for (path, changed) in &mut self.changes {
            changed.same_content = match (changed.before, changed.after) {
                (Some(before), Some(after)) if before.kind == after.kind && before.size == after.size => {
                    same_content(self.source, self.upper, path, after.kind)?
                }
                _ => false,
            };
        }
        Ok(())
    }
}

// === impl ChangesError ===

impl From<DirectoryError> for ChangesError {
    fn from(error: DirectoryError) -> Self {
        match error.source {
            Errno::OVERFLOW => Self::TooMany,
            Errno::NAMETOOLONG => Self::TooLong,
            _ => Self::Directory(error),
        }
    }
}

// === impl PathChange ===

impl PathChange {
    /// The change as a diff shows it: one that turns a file into something else is a removal and a creation.
    pub fn as_shown(self) -> Vec<Self> {
        let is_directory = |state: &PathState| state.kind == FileType::Directory;
        let without = |state: Option<PathState>| state.filter(|state| !is_directory(state));
        let (before, after) = (without(self.before), without(self.after));
        match (before, after) {
            (None, None) => Vec::new(),
            (Some(old), Some(new)) if old.kind != new.kind => {
                vec![Self { after: None, ..self }, Self { before: None, ..self }]
            }
            _ => vec![Self { before, after, ..self }],
        }
    }

    /// Returns the kind of change, as results name it.
    pub fn change(&self) -> Change {
        match (self.before, self.after) {
            (None, _) => Change::Created,
            (_, None) => Change::Deleted,
            // A directory is what is in it: that is listed by itself.
            (Some(PathState { kind: FileType::Directory, .. }), _) => Change::Created,
            (_, Some(PathState { kind: FileType::Directory, .. })) => Change::Deleted,
            _ if self.same_content => Change::ModeChanged,
            _ => Change::Modified,
        }
    }
}

// === impl PathState ===

impl PathState {
    pub(super) fn of(stat: &Stat) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        // The size of a directory is meaningless.
        let size = if kind == FileType::Directory { 0 } else { stat.st_size.unsigned_abs() };
        Self { kind, mode: stat.st_mode & 0o777, size }
    }
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(upper: &Directory, path: &Path) -> Result<bool, DirectoryError> {
    let directory = upper.open_own(path)?;
    let mut value = [0; 8];
    let read = rustix::fs::fgetxattr(&directory, c"user.overlay.opaque", &mut value[..]);
    Ok(read.is_ok_and(|length| value.get(..length) == Some(b"y")))
}

fn open_or_clone(directory: &Directory, path: &Path) -> Result<Directory, DirectoryError> {
    if path.as_os_str().is_empty() { directory.try_clone() } else { directory.open(path) }
}

fn stat_or_self(directory: &Directory, path: &Path) -> Result<Option<Stat>, DirectoryError> {
    directory.stat(if path.as_os_str().is_empty() { Path::new(".") } else { path })
}

pub(super) fn same_content(
    source: &Directory,
    upper: &Directory,
    path: &Path,
    kind: FileType,
) -> Result<bool, DirectoryError> {
    match kind {
        FileType::RegularFile => {
            let (before, after) = (source.open_file(path)?, upper.open_own_file(path)?);
            Ok(extents::are_same(&before, &after).unwrap_or(false))
        }
        FileType::Symlink => Ok(source.read_link(path)? == upper.read_link(path)?),
        _ => Ok(true),
    }
}
