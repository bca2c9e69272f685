//! Baseline with which the source of a copy is compared before it is written to, so that the work of others isn't lost.
//!
//! A file that was touched since the copy was made is the work of others, unless a commit of this very copy touched it and
//! it was not touched since. A directory that was replaced since is recognised by its inode
//! ([`directories`](super::directories)).

use super::copy_time::CopyTime;
use super::directories::DirectoryInodes;
use super::imprint::Imprint;
use super::merge::MergedContent;
use super::references::{self, PackedReferences};
use super::source_names::Names;
use belljar_files::directory::Directory;
use belljar_files::host_path::HostPath;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Time at which a copy was made, and the state that its commits have left in the source since.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Baseline {
    #[serde(flatten)]
    since: CopyTime,
    /// Latest modification of the files that were copied, if that is earlier. Only for a whole copy.
    #[serde(default)]
    newest_copied: Option<SystemTime>,
    #[serde(with = "as_pairs")]
    committed: HashMap<Vec<u8>, FileStamp>,
    /// Directories of the source, as they were when the copy was made or a commit left them.
    #[serde(default)]
    directories: DirectoryInodes,
    /// Further names that existed when the copy was made, as far as they were looked at.
    #[serde(default)]
    names: Names,
    /// The packed references of repositories, as they were when the copy was made or a commit left them.
    #[serde(default)]
    packed_references: PackedReferences,
    /// Directories that a commit is making. If it is interrupted, those that are there are its own.
    #[serde(default)]
    making: BTreeSet<Vec<u8>>,
    /// Paths from which a commit removes something that is in the way of another thing.
    #[serde(default)]
    clearing: BTreeSet<Vec<u8>>,
    /// Directories in which a commit adds, replaces or removes names. If it is interrupted, it has changed their times.
    #[serde(default)]
    writing: BTreeSet<Vec<u8>>,
    /// Files that are about to be replaced by a merge, and what they are then.
    #[serde(default, with = "as_pairs")]
    merging: HashMap<Vec<u8>, MergedContent>,
    /// Temporary name of a file in the source while it is written. No program inside knows it.
    temporary: String,
}

/// State in which a file was left or found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    inode: u64,
    size: i64,
    mode: u32,
    modified_at: SystemTime,
    changed_at: SystemTime,
}

// === impl Baseline ===

impl Baseline {
    /// Makes the baseline of a copy that is made now.
    pub fn now() -> Self {
        Self::of_moment(CopyTime::now())
    }

    /// Makes the baseline of a copy that was made at that time.
    pub fn at(since: SystemTime) -> Self {
        Self::of_moment(CopyTime::at(since))
    }

    fn of_moment(since: CopyTime) -> Self {
        let temporary = format!(".belljar-{}", Uuid::new_v4());
        Self {
            since,
            newest_copied: None,
            committed: HashMap::new(),
            directories: DirectoryInodes::default(),
            names: Names::default(),
            packed_references: PackedReferences::default(),
            making: BTreeSet::new(),
            clearing: BTreeSet::new(),
            writing: BTreeSet::new(),
            merging: HashMap::new(),
            temporary,
        }
    }

    /// Records the directories of a source that a copy lies on, with the names in them and the packed references. To be called before
    /// anything can write to the copy. `own` is a new file or directory of the host's own, which may be on the file system of the source.
    #[must_use]
    pub(crate) fn of_source(self, source: &Directory, own: Option<&Stat>) -> Self {
        let (mut names, mut packed_references) = (Names::default(), PackedReferences::default());
        let directories = DirectoryInodes::of(source, |path, directory, listed| {
            names.list(path, listed);
            if listed.iter().any(|name| name.name.as_bytes() == references::NAME.as_bytes()) {
                packed_references.record(path, directory);
            }
        });
        Self { since: self.since.by_clock_of(source, own), directories, names, packed_references, ..self }
    }

    /// Records the directories of the source at a path ([`Self::of_source`]). Nothing is recorded if it can't be opened:
    /// then only times show if a directory was replaced.
    #[must_use]
    pub(crate) fn of_source_at(self, source: &HostPath, own: Option<&Stat>) -> Self {
        match Directory::open_meant(source) {
            Ok(source) => self.of_source(&source, own),
            Err(_) => self,
        }
    }

    /// Records the directories that a whole copy was made from. A file that is newer than all that was copied was changed after
    /// that, also if this baseline was begun later.
    #[must_use]
    pub(crate) fn of_imprint(mut self, imprint: &Imprint) -> Self {
        for (path, inode) in imprint.source_directories() {
            if self.directories.inode(path).is_none() {
                self.directories.note_inode(path, inode);
            }
        }
        self.names.list_all(imprint.paths());
        self.newest_copied = imprint.latest_change();
        self
    }

    /// Returns true if another program has touched the file that is there now.
    pub(super) fn is_touched(&self, path: &Path, now: &Stat) -> bool {
        let stamp = FileStamp::of(now);
        let is_after_copies = match FileType::from_raw_mode(now.st_mode) {
            FileType::RegularFile | FileType::Symlink => {
                self.newest_copied.is_some_and(|newest| stamp.changed_at > newest)
            }
            _ => false,
        };
        let is_newer = is_after_copies
            || self.since.may_be_before(stamp.changed_at)
            || stamp.modified_at > self.since.bound();
        is_newer && self.committed.get(path.as_os_str().as_bytes()) != Some(&stamp)
    }

    /// Returns true if a time of a file may be later than the copy, or as late.
    pub(super) fn may_be_before(&self, time: SystemTime) -> bool {
        self.since.may_be_before(time)
    }

    /// Returns true if something else has added or removed names in a directory, or may have.
    pub(super) fn is_list_touched(&self, path: &Path, now: &Stat) -> bool {
        self.may_be_before(modified_at(now)) && self.is_touched(path, now)
    }

    /// Returns whether something was at a path when the copy was made, or a commit has left something there; `None` if that isn't known.
    pub(super) fn had(&self, path: &Path) -> Option<bool> {
        let name = path.as_os_str().as_bytes();
        if self.clearing.contains(name) {
            return Some(false);
        }
        match self.committed.contains_key(name) || self.directories.inode(path).is_some() {
            true => Some(true),
            false => self.names.had(path),
        }
    }

    /// The packed references that were recorded.
    pub(super) fn packed_references(&self) -> &PackedReferences {
        &self.packed_references
    }

    /// Notes that a path at which nothing is held nothing before a commit, if that isn't known: its directory gets other times by it.
    pub(super) fn note_free(&mut self, path: &Path) {
        if self.had(path).is_none() {
            self.names.free(path);
        }
    }

    /// Notes that a commit has removed what was at a path.
    pub(super) fn note_removed(&mut self, path: &Path) {
        self.committed.remove(path.as_os_str().as_bytes());
        self.directories.forget(path);
        self.names.free(path);
    }

    /// Records the packed references of a repository as a commit has left them.
    pub(super) fn note_references(&mut self, repository: &Path, opened: &Directory) {
        self.packed_references.record(repository, opened);
    }

    /// Notes how a commit has left a file.
    pub(super) fn note(&mut self, path: &Path, left: &Stat) {
        self.committed.insert(path.as_os_str().as_bytes().to_owned(), FileStamp::of(left));
        self.note_directory(path, left);
    }

    /// Records a directory as it is now: it is the one that was there when the copy was made, or that a commit made.
    pub(super) fn note_directory(&mut self, path: &Path, stat: &Stat) {
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            self.directories.note(path, stat);
        }
    }

    /// Notes the directories that a commit is about to make.
    pub(super) fn set_making<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        self.making = bytes_of(paths).collect();
    }

    /// Notes paths from which a commit is about to remove obstacles, in addition to those of an interrupted attempt.
    pub(super) fn add_clearing<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        self.clearing.extend(bytes_of(paths));
    }

    /// Notes directories in which a commit is about to change names, in addition to those of an interrupted attempt.
    pub(super) fn add_writing<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        self.writing.extend(bytes_of(paths));
    }

    /// Returns true if a commit was interrupted that changed names in a directory, or may have.
    pub(super) fn is_writing(&self, directory: &Path) -> bool {
        self.writing.contains(directory.as_os_str().as_bytes())
    }

    /// Returns true if a commit was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        !self.writing.is_empty()
    }

    /// Notes that a commit is over.
    pub(super) fn end_commit(&mut self) {
        self.making.clear();
        self.clearing.clear();
        self.writing.clear();
    }

    /// Notes the files that are about to be merged; an empty list once they are.
    pub(super) fn set_merging<'p>(&mut self, files: impl Iterator<Item = (&'p Path, MergedContent)>) {
        self.merging =
            files.map(|(path, content)| (path.as_os_str().as_bytes().to_owned(), content)).collect();
    }

    /// Returns the content of a file if an interrupted attempt has merged it.
    pub(super) fn merging(&self, path: &Path) -> Option<MergedContent> {
        self.merging.get(path.as_os_str().as_bytes()).copied()
    }

    /// Returns whether a directory is the one that was recorded at that path; `None` if none was.
    pub(super) fn is_same_directory(&self, path: &Path, now: &Stat) -> Option<bool> {
        let is_own = self.making.contains(path.as_os_str().as_bytes());
        if is_own { Some(true) } else { self.directories.is_same(path, now) }
    }

    pub(super) fn temporary(&self) -> &str {
        &self.temporary
    }
}

// === impl FileStamp ===

impl FileStamp {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            inode: stat.st_ino,
            size: stat.st_size,
            mode: stat.st_mode,
            modified_at: modified_at(stat),
            changed_at: changed_at(stat),
        }
    }

    /// Returns true if both are of one file to which nothing was written in between.
    pub(super) fn has_content_of(&self, other: &Self) -> bool {
        (self.inode, self.size, self.modified_at) == (other.inode, other.size, other.modified_at)
    }

    /// Returns true if the stamp is of this file or directory, whatever was changed in it since.
    pub(super) fn is_of_inode(&self, now: &Stat) -> bool {
        self.inode == now.st_ino
    }

    /// Returns true if both differ at most in when the inode was changed, as after a rename.
    pub(super) fn is_but_for_inode_change(&self, other: &Self) -> bool {
        self.mode == other.mode && self.has_content_of(other)
    }
}

fn bytes_of<'p>(paths: impl Iterator<Item = &'p Path>) -> impl Iterator<Item = Vec<u8>> {
    paths.map(|path| path.as_os_str().as_bytes().to_owned())
}

/// Returns the time of the last change of the content, or of a directory's list of names (mtime). A program can set it.
pub(super) fn modified_at(stat: &Stat) -> SystemTime {
    time(stat.st_mtime, stat.st_mtime_nsec)
}

/// Returns the time of the last change of the inode (ctime), as by writing, renaming or changing its permissions.
pub(super) fn changed_at(stat: &Stat) -> SystemTime {
    time(stat.st_ctime, stat.st_ctime_nsec)
}

pub(super) fn time(seconds: i64, nanoseconds: u64) -> SystemTime {
    let nanoseconds = u32::try_from(nanoseconds).unwrap_or(0);
    UNIX_EPOCH + Duration::new(seconds.unsigned_abs(), nanoseconds)
}

/// Names are bytes, which can't be the members of a JSON object.
mod as_pairs {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::HashMap;

    pub(super) fn serialize<V: Serialize, S: Serializer>(
        by_name: &HashMap<Vec<u8>, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(by_name)
    }

    pub(super) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<HashMap<Vec<u8>, V>, D::Error> {
        Ok(Vec::<(Vec<u8>, V)>::deserialize(from)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_files::directory::Directory;

    #[test]
    fn what_a_commit_left_is_nobodys_work_until_somebody_touches_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::open_host(place.path()).unwrap();
        let path = Path::new("file");
        std::fs::write(place.path().join(path), "old").unwrap();
        let stat = || directory.stat(path).unwrap().unwrap();
        let mut baseline = Baseline::now();
        assert!(!baseline.is_touched(path, &stat()));
        let touch = |content: &str| std::fs::write(place.path().join(path), content).unwrap();
        touch("newer");
        assert!(baseline.is_touched(path, &stat()));
        baseline.note(path, &stat());
        assert!(!baseline.is_touched(path, &stat()));
        let told: Baseline = serde_json::from_slice(&serde_json::to_vec(&baseline).unwrap()).unwrap();
        assert!(!told.is_touched(path, &stat()));
        touch("of another length");
        assert!(told.is_touched(path, &stat()));
    }
}
