//! The directories of a source by their inodes, so that a directory that was replaced since the copy was made is recognised.
//!
//! A rename changes no time of the files in the directory that is moved. A directory that is renamed into the place of another
//! brings files that look older than the copy. A change below it was made to other files, so it conflicts.
//!
//! ```text
//! on another mount than the source             ─► replaced
//! inode known ─► the same inode                ─► not replaced
//!             └► another one                   ─► replaced
//! inode unknown ─► its inode is older          ─► not replaced: a rename changes the time of the inode that it moves
//!               ├► its parent's list is older  ─► not replaced: a rename changes the list of names
//!               └► otherwise                   ─► replaced, as nothing proves the contrary
//! ```
//! A walk through a large source would take long. So only the directories next to its top are recorded when a run starts, on an overlay
//! or a snapshot. Of a whole copy, all are.

use super::baseline::{Baseline, changed_at, modified_at};
use belljar_files::directory::{Directory, DirectoryError, Name};
use rustix::fs::{AtFlags, FileType, Stat, StatxFlags, fstat, statx};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Inodes of directories, by path.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(Vec<u8>, u64)>", into = "Vec<(Vec<u8>, u64)>")]
pub(super) struct DirectoryInodes {
    inodes: BTreeMap<PathBuf, u64>,
}

/// Finds the directories of a target that were replaced since the copy was made.
pub(super) struct ReplacedDirectories<'a> {
    target: &'a Directory,
    baseline: &'a Baseline,
    mount: Option<u64>,
    /// Results so far, by path.
    found: BTreeMap<PathBuf, bool>,
}

/// Maximum number of directories that are read when a run starts.
const MOST_READ: usize = 256;

/// Maximum number of names in them.
const MOST_NAMES: usize = 8_192;

// === impl DirectoryInodes ===

impl DirectoryInodes {
    /// Records the directories next to the top of a source, and calls `visit` with each whose names are known. One that can't be read
    /// is left out, and so is what is below.
    pub(super) fn of(source: &Directory, mut visit: impl FnMut(&Path, &Directory, &[Name])) -> Self {
        let mut directories = Self::default();
        let mut names_left = MOST_NAMES;
        let mut pending = VecDeque::from([PathBuf::new()]);
        for _ in 0..MOST_READ {
            let Some(below) = pending.pop_front() else { break };
            let opened = match below.as_os_str().is_empty() {
                true => source.try_clone(),
                false => source.open(&below),
            };
            let Ok(directory) = opened else { continue };
            if let Ok(stat) = fstat(&directory)
                && !below.as_os_str().is_empty()
            {
                directories.note(&below, &stat);
            }
            // A directory with too many names is known itself; those in it are not.
            let Ok(names) = directory.names(names_left) else { continue };
            names_left -= names.len();
            visit(&below, &directory, &names);
            let inner = names.into_iter().filter(|name| name.kind == FileType::Directory);
            pending.extend(inner.map(|name| below.join(OsStr::from_bytes(name.name.as_bytes()))));
        }
        directories
    }

    /// Records a directory as it is now.
    pub(super) fn note(&mut self, path: &Path, stat: &Stat) {
        self.note_inode(path, stat.st_ino);
    }

    pub(super) fn note_inode(&mut self, path: &Path, inode: u64) {
        self.inodes.insert(path.to_owned(), inode);
    }

    /// Forgets a directory that is there no more.
    pub(super) fn forget(&mut self, path: &Path) {
        self.inodes.remove(path);
    }

    pub(super) fn inode(&self, path: &Path) -> Option<u64> {
        self.inodes.get(path).copied()
    }

    /// Returns whether a directory is the one that was recorded at that path; `None` if none was.
    pub(super) fn is_same(&self, path: &Path, stat: &Stat) -> Option<bool> {
        self.inode(path).map(|inode| inode == stat.st_ino)
    }
}

/// Names are bytes, which can't be the members of a JSON object.
impl From<DirectoryInodes> for Vec<(Vec<u8>, u64)> {
    fn from(directories: DirectoryInodes) -> Self {
        let pair = |(path, inode): (PathBuf, u64)| (path.into_os_string().into_vec(), inode);
        directories.inodes.into_iter().map(pair).collect()
    }
}

impl From<Vec<(Vec<u8>, u64)>> for DirectoryInodes {
    fn from(pairs: Vec<(Vec<u8>, u64)>) -> Self {
        let pair = |(path, inode)| (OsString::from_vec(path).into(), inode);
        Self { inodes: pairs.into_iter().map(pair).collect() }
    }
}

// === impl ReplacedDirectories ===

impl<'a> ReplacedDirectories<'a> {
    pub(super) fn in_target(target: &'a Directory, baseline: &'a Baseline) -> Self {
        Self { target, baseline, mount: mount_of(target).ok(), found: BTreeMap::new() }
    }

    /// Returns true if a directory on the way to `path`, or the directory at `path`, was replaced.
    pub(super) fn leads_to(&mut self, path: &Path) -> Result<bool, DirectoryError> {
        let mut on_the_way: Vec<&Path> = path.ancestors().collect();
        // The target itself was opened as the directory that was meant.
        on_the_way.retain(|above| !above.as_os_str().is_empty());
        for above in on_the_way.into_iter().rev() {
            let is_replaced = match self.found.get(above) {
                Some(known) => *known,
                None => {
                    let is_replaced = self.is_replaced(above)?;
                    self.found.insert(above.to_owned(), is_replaced);
                    is_replaced
                }
            };
            if is_replaced {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if there is a directory at `path`, and it is not proven to be the one that was there.
    fn is_replaced(&self, path: &Path) -> Result<bool, DirectoryError> {
        let Some(stat) = self.target.stat(path)? else { return Ok(false) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Ok(false);
        }
        if self.mount != mount_of(&self.target.open_place(path)?).ok() {
            return Ok(true);
        }
        if let Some(is_same) = self.baseline.is_same_directory(path, &stat) {
            return Ok(!is_same);
        }
        let parent = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => self.target.stat(parent)?,
            None => Some(self.target.stat_itself()?),
        };
        let is_list_older = parent.is_some_and(|parent| !self.baseline.may_be_before(modified_at(&parent)));
        Ok(self.baseline.may_be_before(changed_at(&stat)) && !is_list_older)
    }
}

/// Identifies the mount that a directory is on; by its device, on a kernel that doesn't report mount ids.
fn mount_of(directory: &Directory) -> Result<u64, Errno> {
    let stat = statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    match StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::MNT_ID) {
        true => Ok(stat.stx_mnt_id),
        false => Ok(fstat(directory)?.st_dev),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::time::SystemTime;

    /// A source with `src/inner/file`, all of which is older than the baseline, and a directory to replace `src`.
    fn source() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().unwrap();
        for path in ["src/inner/file", "src.new/inner/file"] {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "old").unwrap();
        }
        let directory = Directory::open_host(place.path()).unwrap();
        // The kernel's clock for files goes in larger steps than the other.
        belljar_testkit::wait::until(|| {
            let stat = directory.stat(Path::new("src.new/inner/file")).unwrap().unwrap();
            changed_at(&stat) + std::time::Duration::from_millis(20) < SystemTime::now()
        });
        (place, directory)
    }

    fn replace(place: &Path) {
        fs::rename(place.join("src"), place.join("src.old")).unwrap();
        fs::rename(place.join("src.new"), place.join("src")).unwrap();
    }

    #[test]
    fn directory_renamed_into_place_is_replaced_and_one_in_which_names_were_added_is_not() {
        let (place, directory) = source();
        let baseline = Baseline::now().of_source(&directory, None);
        let leads = |path: &str| {
            ReplacedDirectories::in_target(&directory, &baseline).leads_to(Path::new(path)).unwrap()
        };
        assert!(!leads("src/inner/file"));
        // The control: names are added in the directory and beside it.
        for name in ["beside", "src/added", "src/inner/added"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        assert!(!leads("src/inner/file"));
        replace(place.path());
        assert!(leads("src/inner/file") && leads("src/new") && leads("src"));
        assert!(!leads("beside"));
    }

    #[test]
    fn unrecorded_directory_counts_as_replaced_unless_a_time_proves_the_contrary() {
        let (place, directory) = source();
        let baseline = Baseline::now();
        let leads = |path: &str| {
            ReplacedDirectories::in_target(&directory, &baseline).leads_to(Path::new(path)).unwrap()
        };
        assert!(!leads("src/inner/file"));
        belljar_testkit::wait::until(|| {
            let added = place.path().join("src/inner/added");
            fs::write(&added, "").unwrap();
            fs::remove_file(added).unwrap();
            baseline.may_be_before(changed_at(&directory.stat(Path::new("src/inner")).unwrap().unwrap()))
        });
        // The list of `src` is older, so nothing was renamed into it.
        assert!(!leads("src/inner/file"));
        replace(place.path());
        assert!(leads("src/inner/file"));
    }
}
