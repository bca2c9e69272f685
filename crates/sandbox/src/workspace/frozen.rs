//! A frozen set of changes: the changed files are copied to a directory of the host's own, which no sandbox can write. A review shows
//! the copy, the digest is computed over the copy, and a commit writes the copy, so that nothing that a program does meanwhile counts.

use super::changes::{ChangeSet, ChangesError, PathChange, PathState};
use super::diff;
use super::digest::ReviewDigest;
use super::extents;
use super::transfer::copy_data;
use belljar_contract::result::WorkspaceChanges;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::reserve::FreeSpace;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ioctl_ficlone, linkat, openat, symlinkat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Changes that are frozen, and their digest.
#[derive(Debug)]
pub struct FrozenChanges {
    set: ChangeSet,
    tree: Directory,
    digest: ReviewDigest,
}

/// Why changes can't be frozen.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// The changes can't be read.
    #[error(transparent)]
    Changes(#[from] ChangesError),
    /// A path can't be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A changed file can't be copied.
    #[error("can't copy the changed file {}", path.display())]
    Copy {
        /// Path in the workspace.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

const NO_ROOM: &str = "the review's copy of the changed files needs more than half of the free disk space";

/// Copies to a frozen tree, under way.
struct FreezeCopier<'a> {
    copy: &'a Directory,
    tree: &'a Directory,
    /// Maximum number of bytes that may still be copied: programs decide how much there is, and the disk is also for
    /// others.
    bytes_left: u64,
    /// Path, in the tree, of each file with several names.
    links: HashMap<(u64, u64), PathBuf>,
}

/// Freezes changes: copies what is new in `copy` into `tree`, an empty directory of the host's own. The sandbox should stand still
/// meanwhile, or the frozen state is one that never existed as a whole; it is what is shown and written either way.
///
/// # Errors
/// [`FreezeError`], also where copying takes more than half of what is left of the disk above its reserve; what was copied by then is
/// left in `tree`.
pub fn freeze(
    set: ChangeSet,
    (source, copy): (&Directory, &Directory),
    tree: Directory,
) -> Result<FrozenChanges, FreezeError> {
    let mut set = set.carried(source)?;
    let room = FreeSpace::of(&tree).map_err(|source| DirectoryError { path: ".".into(), source })?;
    let mut freezing =
        FreezeCopier { copy, tree: &tree, bytes_left: room.spare_bytes() / 2, links: HashMap::new() };
    for (path, changed) in set.iter_mut() {
        let failed = |source| FreezeError::Copy { path: path.to_owned(), source };
        if let Some(after) = &mut changed.after
            && !changed.same_content
        {
            freezing.put(path, after).map_err(failed)?;
        }
    }
    let digest = ReviewDigest::of(&set, source, &tree)?;
    Ok(FrozenChanges { set, tree, digest })
}

/// The directory of a path. Those on the way are made where they are missing: an unchanged directory is no change.
fn parent_in(tree: &Directory, path: &Path) -> io::Result<Directory> {
    let parent = path.parent().unwrap_or(Path::new(""));
    if parent.as_os_str().is_empty() {
        return Ok(tree.try_clone()?);
    }
    if let Ok(known) = tree.open(parent) {
        return Ok(known);
    }
    let mut directory = tree.try_clone()?;
    for part in parent.components() {
        directory = directory.make(Path::new(part.as_os_str()), 0o700)?;
    }
    Ok(directory)
}

// === impl FreezeCopier ===

impl FreezeCopier<'_> {
    /// Copies one thing. Its size becomes that of the copy.
    fn put(&mut self, path: &Path, after: &mut PathState) -> io::Result<()> {
        let parent = parent_in(self.tree, path)?;
        let name = path.file_name().unwrap_or_default();
        match after.kind {
            FileType::Directory => parent.make(Path::new(name), 0o700).map(drop)?,
            FileType::Symlink => symlinkat(self.copy.read_link(path)?, &parent, name)?,
            FileType::RegularFile => after.size = self.put_file(path, (&parent, name))?,
            // Pipes, sockets and devices are shown by their names and never written.
            _ => {}
        }
        Ok(())
    }

    /// Copies a file, once if it has several names, and returns its size.
    fn put_file(&mut self, path: &Path, (parent, name): (&Directory, &OsStr)) -> io::Result<u64> {
        let mut from = self.copy.open_own_file(path)?;
        let metadata = from.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        if let Some(first) = self.links.get(&identity) {
            linkat(self.tree, first, parent, name, AtFlags::empty())?;
            return Ok(parent.open_file(Path::new(name))?.metadata()?.len());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut to = File::from(openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?);
        if ioctl_ficlone(&to, &from).is_err() {
            let copied = copy_data(&mut from, &mut to, self.bytes_left).map_err(|error| {
                match error.raw_os_error() == Some(Errno::DQUOT.raw_os_error()) {
                    true => io::Error::new(io::ErrorKind::StorageFull, NO_ROOM),
                    false => error,
                }
            })?;
            self.bytes_left -= copied;
        }
        if metadata.nlink() > 1 {
            self.links.insert(identity, path.to_owned());
        }
        Ok(to.metadata()?.len())
    }
}

// === impl FrozenChanges ===

impl FrozenChanges {
    /// Takes up changes that were frozen by another process: their set, the tree with their content, and their digest.
    pub fn restore(set: ChangeSet, tree: Directory, digest: ReviewDigest) -> Self {
        Self { set, tree, digest }
    }

    /// The changes.
    pub fn set(&self) -> &ChangeSet {
        &self.set
    }

    /// The directory with what is new.
    pub fn tree(&self) -> &Directory {
        &self.tree
    }

    /// The digest.
    pub fn digest(&self) -> ReviewDigest {
        self.digest
    }

    /// Renders the changes for a person.
    ///
    /// # Errors
    /// [`DirectoryError`] for whatever can't be read.
    pub fn rendered(&self, source: &Directory) -> Result<WorkspaceChanges, DirectoryError> {
        diff::render(&self.set, source, &self.tree)
    }

    /// Returns the changes that are left to be applied after an interrupted attempt: without those that the source has
    /// already.
    ///
    /// # Errors
    /// [`DirectoryError`] for whatever can't be read.
    pub fn without_applied(mut self, source: &Directory) -> Result<Self, DirectoryError> {
        let mut applied = Vec::new();
        for (path, changed) in self.set.iter_mut() {
            let now = source.stat(path)?.map(|stat| PathState::of(&stat));
            match is_applied((path, changed), now, (source, &self.tree))? {
                true => applied.push(path.to_owned()),
                // The attempt got half way: what was in the way is gone, or the directory is there without its permissions.
                false => changed.before = half_way(changed, now),
            }
        }
        applied.iter().for_each(|path| self.set.remove(path));
        Ok(self)
    }
}

fn is_applied(
    (path, changed): (&Path, &PathChange),
    now: Option<PathState>,
    (source, tree): (&Directory, &Directory),
) -> Result<bool, DirectoryError> {
    let (Some(after), Some(now)) = (changed.after, now) else {
        return Ok(changed.after.is_none() && now.is_none());
    };
    if (after.kind, after.mode) != (now.kind, now.mode) {
        return Ok(false);
    }
    match after.kind {
        FileType::RegularFile if changed.same_content => Ok(true),
        FileType::RegularFile => {
            let (one, other) = (source.open_file(path)?, tree.open_own_file(path)?);
            Ok(extents::are_same(&one, &other).unwrap_or(false))
        }
        FileType::Symlink => Ok(source.read_link(path)? == tree.read_link(path)?),
        _ => Ok(true),
    }
}

fn half_way(changed: &PathChange, now: Option<PathState>) -> Option<PathState> {
    let is_directory =
        |state: Option<PathState>| state.is_some_and(|state| state.kind == FileType::Directory);
    match now {
        Some(_) if is_directory(now) && is_directory(changed.after) => now,
        None if changed.before.map(|before| before.kind) != changed.after.map(|after| after.kind) => None,
        _ => changed.before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::apply::{ApplyError, commit};
    use crate::workspace::baseline::Baseline;
    use belljar_policy::handoff::ApprovedPaths;
    use belljar_testkit::skip::skip;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};
    use tempfile::TempDir;

    /// The baseline of a copy that was made after all that a test has written up to now.
    fn made_later() -> Baseline {
        Baseline::at(SystemTime::now() + Duration::from_secs(1))
    }

    fn open(place: &TempDir) -> Directory {
        Directory::open_host(place.path()).unwrap()
    }

    fn frozen_of((source, layer, tree): (&TempDir, &TempDir, &TempDir)) -> FrozenChanges {
        let set = ChangeSet::read(&open(source), &open(layer)).unwrap();
        freeze(set, (&open(source), &open(layer)), open(tree)).unwrap()
    }

    fn places() -> [TempDir; 3] {
        std::array::from_fn(|_| TempDir::new().unwrap())
    }

    #[test]
    fn what_was_frozen_is_written_whatever_became_of_the_copy_since() {
        let [source, layer, tree] = places();
        std::fs::write(source.path().join("file"), "old").unwrap();
        std::fs::write(layer.path().join("file"), "reviewed").unwrap();
        std::fs::create_dir_all(layer.path().join("new/folder")).unwrap();
        std::fs::write(layer.path().join("new/folder/file"), "reviewed too").unwrap();
        symlink("file", layer.path().join("link")).unwrap();
        let frozen = frozen_of((&source, &layer, &tree));
        // A program changes the files after the review.
        std::fs::write(layer.path().join("file"), "never shown").unwrap();
        std::fs::write(layer.path().join("new/folder/file"), "never shown").unwrap();
        std::fs::remove_file(layer.path().join("link")).unwrap();
        symlink("/etc/passwd", layer.path().join("link")).unwrap();
        let shown = frozen.rendered(&open(&source)).unwrap().diff;
        assert!(shown.contains("+reviewed too") && !shown.contains("never shown"), "{shown}");
        let mut baseline = made_later();
        commit(frozen.set(), frozen.tree(), &open(&source), &mut baseline, &ApprovedPaths::default())
            .unwrap();
        let read = |name: &str| std::fs::read_to_string(source.path().join(name)).unwrap();
        assert_eq!((read("file").as_str(), read("new/folder/file").as_str()), ("reviewed", "reviewed too"));
        assert_eq!(std::fs::read_link(source.path().join("link")).unwrap(), Path::new("file"));
    }

    #[test]
    fn file_of_several_names_is_copied_once_and_written_by_each() {
        let [source, layer, tree] = places();
        std::fs::write(layer.path().join("a"), vec![b'x'; 1 << 20]).unwrap();
        for name in ["b", "c"] {
            std::fs::hard_link(layer.path().join("a"), layer.path().join(name)).unwrap();
        }
        let frozen = frozen_of((&source, &layer, &tree));
        let inode = |name: &str| tree.path().join(name).metadata().unwrap().ino();
        assert!(inode("a") == inode("b") && inode("b") == inode("c"));
        commit(frozen.set(), frozen.tree(), &open(&source), &mut made_later(), &ApprovedPaths::default())
            .unwrap();
        for name in ["a", "b", "c"] {
            assert_eq!(source.path().join(name).metadata().unwrap().len(), 1 << 20, "{name}");
        }
    }

    #[test]
    fn review_leaves_half_of_the_disk_to_others() {
        let [_, layer, tree] = places();
        std::fs::write(layer.path().join("large"), vec![b'x'; 1 << 20]).unwrap();
        let (copy, to) = (open(&layer), open(&tree));
        let put = |name: &str, bytes_left| {
            let mut freezing = FreezeCopier { copy: &copy, tree: &to, bytes_left, links: HashMap::new() };
            freezing.put_file(Path::new("large"), (&to, OsStr::new(name)))
        };
        let shared = File::create(tree.path().join("shared")).unwrap();
        if ioctl_ficlone(&shared, copy.open_file(Path::new("large")).unwrap()).is_ok() {
            return skip("review_leaves_half_of_the_disk_to_others", "this file system shares blocks");
        }
        assert_eq!(put("one", 1 << 20).unwrap(), 1 << 20);
        let refused = put("two", (1 << 20) - 1).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn an_interrupted_attempt_is_finished_from_what_was_frozen() {
        let [source, layer, tree] = places();
        for name in ["one", "two", "gone", "turned"] {
            std::fs::write(source.path().join(name), "old").unwrap();
        }
        for name in ["one", "two"] {
            std::fs::write(layer.path().join(name), "new").unwrap();
        }
        for name in ["turned", "made"] {
            std::fs::create_dir(layer.path().join(name)).unwrap();
            std::fs::write(layer.path().join(name).join("inner"), "new").unwrap();
        }
        let frozen = frozen_of((&source, &layer, &tree));
        // An attempt that got this far: one file replaced, one out of the way, one directory made.
        std::fs::write(source.path().join("one"), "new").unwrap();
        std::fs::remove_file(source.path().join("turned")).unwrap();
        std::fs::create_dir(source.path().join("made")).unwrap();
        std::fs::set_permissions(source.path().join("made"), PermissionsExt::from_mode(0o700)).unwrap();
        let left = frozen.without_applied(&open(&source)).unwrap();
        let mut baseline = made_later();
        commit(left.set(), left.tree(), &open(&source), &mut baseline, &ApprovedPaths::default()).unwrap();
        for name in ["one", "two", "turned/inner", "made/inner"] {
            assert_eq!(std::fs::read_to_string(source.path().join(name)).unwrap(), "new", "{name}");
        }
        assert_eq!(source.path().join("made").metadata().unwrap().permissions().mode() & 0o777, 0o755);
        assert!(left.without_applied(&open(&source)).unwrap().set().is_empty());
    }

    #[test]
    fn private_files_of_the_source_stay_private() {
        let [source, layer, tree] = places();
        let mode = |place: &TempDir, name: &str, mode| {
            std::fs::set_permissions(place.path().join(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        for (place, wide) in [(&source, false), (&layer, true)] {
            std::fs::create_dir(place.path().join("private")).unwrap();
            std::fs::write(place.path().join("key"), if wide { "changed" } else { "secret" }).unwrap();
            std::fs::write(place.path().join("untouched"), "same").unwrap();
            mode(place, "private", if wide { 0o777 } else { 0o700 });
            mode(place, "key", if wide { 0o666 } else { 0o600 });
            mode(place, "untouched", if wide { 0o666 } else { 0o640 });
        }
        std::fs::write(layer.path().join("private/new"), "").unwrap();
        mode(&layer, "private/new", 0o666);
        let frozen = frozen_of((&source, &layer, &tree));
        let paths: Vec<_> = frozen.set().iter().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(paths, [Path::new("key"), Path::new("private/new")]);
        commit(frozen.set(), frozen.tree(), &open(&source), &mut made_later(), &ApprovedPaths::default())
            .unwrap();
        let now = |name: &str| source.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(["private", "key", "untouched", "private/new"].map(now), [0o700, 0o600, 0o640, 0o600]);
        // The control: the executable bit is carried, shown as a change of mode, and needs an approval.
        mode(&layer, "untouched", 0o777);
        let [_, _, tree] = places();
        let frozen = freeze(
            ChangeSet::read(&open(&source), &open(&layer)).unwrap(),
            (&open(&source), &open(&layer)),
            open(&tree),
        )
        .unwrap();
        let shown = frozen.rendered(&open(&source)).unwrap().diff;
        assert!(shown.contains("old mode 100644\nnew mode 100755\n"), "{shown}");
        let refused =
            commit(frozen.set(), frozen.tree(), &open(&source), &mut made_later(), &ApprovedPaths::default());
        assert!(matches!(refused, Err(ApplyError::Handoff { .. })), "{refused:?}");
    }
}
