//! The directories that sandboxes of a state directory write or have written directly: a link in one may be a sandbox's, also after
//! that has ended.
//!
//! Each has a file of its own in `<state>/written/`, whose name is its device, inode and time of birth.

use crate::in_use::{self, InUseEntry, UseKind};
use rustix::fs::{AtFlags, FileType, StatxFlags, fstat, statx};
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const FOLDER: &str = "written";

/// Maximum number of directories that are remembered; the ones written longest ago are forgotten.
const MOST: usize = 4_096;

/// Directories by their names in [`FOLDER`].
#[derive(Debug, Default)]
pub(crate) struct WrittenDirectories(BTreeSet<String>);

// === impl WrittenDirectories ===

impl WrittenDirectories {
    /// Returns the directories that are recorded in this process's state directory now.
    pub(crate) fn now() -> Self {
        let folder = in_use::state_directory().map(|state| state.join(FOLDER));
        Self(folder.iter().flat_map(|folder| names(folder)).collect())
    }

    /// Returns true if an open directory is one of these.
    pub(crate) fn holds(&self, directory: impl AsFd) -> bool {
        !self.0.is_empty() && name_of(directory).is_ok_and(|name| self.0.contains(&name))
    }
}

/// Remembers those of the entries that sandboxes write.
pub(crate) fn remember(state: &Path, entries: &[InUseEntry]) -> io::Result<()> {
    let folder = state.join(FOLDER);
    for entry in entries.iter().filter(|entry| entry.used == UseKind::Writable) {
        // Another directory may have come to its place, which is none that was lent.
        let directory = entry.open().ok_or(rustix::io::Errno::STALE)?;
        if FileType::from_raw_mode(fstat(&directory)?.st_mode) != FileType::Directory {
            // A file that is mounted there leads nowhere.
            continue;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        // Written again, it is the last to be forgotten.
        File::create(folder.join(name_of(&directory)?))?.set_modified(std::time::SystemTime::now())?;
    }
    forget(&folder);
    Ok(())
}

fn forget(folder: &Path) {
    let names: Vec<_> = names(folder).collect();
    let too_many = names.len().saturating_sub(MOST);
    if too_many == 0 {
        return;
    }
    let path = |name: String| folder.join(name);
    let written_at = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    let mut all: Vec<_> = names.into_iter().map(path).map(|path| (written_at(&path), path)).collect();
    all.sort_unstable();
    all.iter().take(too_many).for_each(|(_, path)| drop(std::fs::remove_file(path)));
}

fn names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().into_string().ok())
}

/// Returns a name of a directory from its inode and birth time: an inode is reused after a directory is removed, and the
/// birth time distinguishes the two.
fn name_of(directory: impl AsFd) -> io::Result<String> {
    let stat = statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::BTIME)?;
    let (device, born) = ((stat.stx_dev_major, stat.stx_dev_minor), stat.stx_btime);
    Ok(format!("{}-{}-{}-{}.{}", device.0, device.1, stat.stx_ino, born.tv_sec, born.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &Path, used: UseKind) -> InUseEntry {
        InUseEntry::of(used, &rustix::fs::stat(path).unwrap(), path.to_owned())
    }

    #[test]
    fn written_directory_is_remembered_after_a_move() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["state", "work", "other"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        remember(
            &at("state"),
            &[entry(&at("work"), UseKind::Writable), entry(&at("other"), UseKind::Obeyed)],
        )
        .unwrap();
        let written = WrittenDirectories(names(&at("state").join(FOLDER)).collect());
        std::fs::rename(at("work"), at("moved")).unwrap();
        assert!(written.holds(File::open(at("moved")).unwrap()));
        assert!(!written.holds(File::open(at("other")).unwrap()));
    }

    #[test]
    fn oldest_written_directory_is_evicted_first() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..MOST + 2 {
            let file = File::create(place.path().join(number.to_string())).unwrap();
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(u64::try_from(number).unwrap());
            file.set_modified(at).unwrap();
        }
        forget(place.path());
        let left: BTreeSet<_> = names(place.path()).collect();
        assert_eq!(left.len(), MOST);
        assert!(!left.contains("0") && !left.contains("1") && left.contains("2"));
    }
}
