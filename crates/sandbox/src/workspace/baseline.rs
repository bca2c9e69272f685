//! What the source of a copy is compared with before it is written to: nobody's work may be lost.
//!
//! A file that was touched since the copy was made is somebody else's, unless a commit of this very copy touched it and
//! nobody has since. A directory that was replaced since is recognised by its inode ([`directories`](super::directories)).

use super::directories::Directories;
use super::imprint::Imprint;
use super::merge::MergedContent;
use crate::directory::Directory;
use belljar_confine::plan::HostPath;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// When a copy was made, and what its commits have left in the source since.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Baseline {
    since: SystemTime,
    /// When the newest of the files that were copied was changed last, if that is earlier. Of a whole copy.
    #[serde(default)]
    newest_copied: Option<SystemTime>,
    #[serde(with = "as_pairs")]
    committed: HashMap<Vec<u8>, Stamp>,
    /// Directories of the source, as they were when the copy was made or a commit left them.
    #[serde(default)]
    directories: Directories,
    /// Directories that a commit is making. If it is interrupted, those that are there are its own.
    #[serde(default)]
    making: BTreeSet<Vec<u8>>,
    /// Files that are about to be replaced by a merge, and what they are then.
    #[serde(default, with = "as_pairs")]
    merging: HashMap<Vec<u8>, MergedContent>,
    /// What a file is called in the source while it is written. Nobody inside knows it.
    temporary: String,
}

/// How a file was left or found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    inode: u64,
    size: i64,
    mode: u32,
    modified_at: SystemTime,
    changed_at: SystemTime,
}

// === impl Baseline ===

impl Baseline {
    /// That of a copy that is made now.
    pub fn now() -> Self {
        Self::at(SystemTime::now())
    }

    /// That of a copy that was made then.
    pub fn at(since: SystemTime) -> Self {
        let temporary = format!(".belljar-{}", Uuid::new_v4());
        Self {
            since,
            newest_copied: None,
            committed: HashMap::new(),
            directories: Directories::default(),
            making: BTreeSet::new(),
            merging: HashMap::new(),
            temporary,
        }
    }

    /// Records the directories of a source that a copy lies on. To be called before anything can write to the copy.
    #[must_use]
    pub(crate) fn of_source(self, source: &Directory) -> Self {
        Self { directories: Directories::of(source), ..self }
    }

    /// Records the directories of the source at a path ([`Self::of_source`]). Nothing is recorded if it can't be opened: then only
    /// times tell whether a directory was replaced.
    #[must_use]
    pub(crate) fn of_source_at(self, source: &HostPath) -> Self {
        match Directory::open_meant(source) {
            Ok(source) => self.of_source(&source),
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
        self.newest_copied = imprint.latest_change();
        self
    }

    /// Whether somebody else has touched what is there now.
    pub(super) fn is_touched(&self, path: &Path, now: &Stat) -> bool {
        let stamp = Stamp::of(now);
        let since = match FileType::from_raw_mode(now.st_mode) {
            FileType::RegularFile | FileType::Symlink => {
                self.newest_copied.map_or(self.since, |newest| newest.min(self.since))
            }
            _ => self.since,
        };
        let is_newer = stamp.changed_at > since || stamp.modified_at > self.since;
        is_newer && self.committed.get(path.as_os_str().as_bytes()) != Some(&stamp)
    }

    /// Notes how a commit has left a file.
    pub(super) fn note(&mut self, path: &Path, left: &Stat) {
        self.committed.insert(path.as_os_str().as_bytes().to_owned(), Stamp::of(left));
        self.note_directory(path, left);
    }

    /// Records a directory as it is now: it is the one that was there when the copy was made, or that a commit made.
    pub(super) fn note_directory(&mut self, path: &Path, stat: &Stat) {
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            self.directories.note(path, stat);
        }
    }

    /// Notes the directories that a commit is about to make; none once it is over.
    pub(super) fn set_making<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        self.making = paths.map(|path| path.as_os_str().as_bytes().to_owned()).collect();
    }

    /// Notes the files that are about to be merged; none once they are.
    pub(super) fn set_merging<'p>(&mut self, files: impl Iterator<Item = (&'p Path, MergedContent)>) {
        self.merging =
            files.map(|(path, content)| (path.as_os_str().as_bytes().to_owned(), content)).collect();
    }

    /// What a file is if an interrupted attempt has merged it.
    pub(super) fn merging(&self, path: &Path) -> Option<MergedContent> {
        self.merging.get(path.as_os_str().as_bytes()).copied()
    }

    /// Returns whether a directory is the one that was recorded at that path; `None` if none was.
    pub(super) fn is_same_directory(&self, path: &Path, now: &Stat) -> Option<bool> {
        let is_own = self.making.contains(path.as_os_str().as_bytes());
        if is_own { Some(true) } else { self.directories.is_same(path, now) }
    }

    /// When the copy was made.
    pub(crate) fn since(&self) -> SystemTime {
        self.since
    }

    pub(super) fn temporary(&self) -> &str {
        &self.temporary
    }
}

// === impl Stamp ===

impl Stamp {
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

    /// Returns true if it was taken of this file or directory, whatever was changed in it since.
    pub(super) fn is_of_inode(&self, now: &Stat) -> bool {
        self.inode == now.st_ino
    }

    /// Returns true if both differ at most in when the inode was changed, as after a rename.
    pub(super) fn is_but_for_inode_change(&self, other: &Self) -> bool {
        self.mode == other.mode && self.has_content_of(other)
    }
}

/// When the content, or a directory's list of names, was changed last. A program can set it.
pub(super) fn modified_at(stat: &Stat) -> SystemTime {
    time(stat.st_mtime, stat.st_mtime_nsec)
}

/// When the inode was changed last, as by writing, renaming or changing its permissions.
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
    use crate::directory::Directory;

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
        // The kernel's clock for files goes in larger steps than the other.
        belljar_testkit::wait::until(|| {
            touch("newer");
            baseline.is_touched(path, &stat())
        });
        baseline.note(path, &stat());
        assert!(!baseline.is_touched(path, &stat()));
        let told: Baseline = serde_json::from_slice(&serde_json::to_vec(&baseline).unwrap()).unwrap();
        assert!(!told.is_touched(path, &stat()));
        touch("of another length");
        assert!(told.is_touched(path, &stat()));
    }
}
