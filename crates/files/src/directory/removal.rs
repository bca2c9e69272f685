//! Removal of everything in a directory.

use super::{Directory, DirectoryError, Name, at};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The emptying of a directory. Directories are moved up into one before they are emptied, so that depth costs
/// neither stack nor descriptors; and names are read in portions, because a job may have left millions in one place.
pub(super) struct DirectoryRemoval<'a> {
    top: &'a Directory,
    /// Directory for the moved ones. No job can have guessed its name.
    graves: Directory,
    graves_name: CString,
    moved: u64,
    /// Remaining number of entries that may be removed.
    left: u64,
}

impl<'a> DirectoryRemoval<'a> {
    pub(super) fn begin(top: &'a Directory, left: u64) -> Result<Self, DirectoryError> {
        let name = format!(".belljar-removed-{}", uuid::Uuid::new_v4());
        let graves = match top.make(Path::new(&name), 0o700) {
            // A disk may be so full that there is no room for a directory, until something has gone.
            Err(DirectoryError { source: Errno::NOSPC | Errno::DQUOT, .. }) => {
                top.unlink_files(0)?;
                top.make(Path::new(&name), 0o700)?
            }
            made => made?,
        };
        let graves_name = CString::new(name).map_err(|_| Errno::INVAL).map_err(at(Path::new(".")))?;
        Ok(Self { top, graves, graves_name, moved: 0, left })
    }

    pub(super) fn finish(mut self) -> Result<(), DirectoryError> {
        self.empty(self.top)?;
        let mut next = 0;
        while next < self.moved {
            let name = PathBuf::from(next.to_string());
            let directory = self.graves.open_own(&name)?;
            self.empty(&directory)?;
            rustix::fs::unlinkat(&self.graves, &name, AtFlags::REMOVEDIR).map_err(at(&name))?;
            next += 1;
        }
        rustix::fs::unlinkat(self.top, &self.graves_name, AtFlags::REMOVEDIR).map_err(at(Path::new(".")))
    }

    fn empty(&mut self, directory: &Directory) -> Result<(), DirectoryError> {
        const PORTION: usize = 4096;
        loop {
            let mut names = directory.some_names(PORTION)?;
            names.retain(|name| name.name != self.graves_name);
            if names.is_empty() {
                return Ok(());
            }
            for name in names {
                self.remove(directory, &name)?;
            }
        }
    }

    fn remove(&mut self, directory: &Directory, Name { name, kind }: &Name) -> Result<(), DirectoryError> {
        let path = Path::new(OsStr::from_bytes(name.as_bytes()));
        self.left = self.left.checked_sub(1).ok_or(Errno::AGAIN).map_err(at(path))?;
        if *kind != FileType::Directory {
            return rustix::fs::unlinkat(directory, name, AtFlags::empty()).map_err(at(path));
        }
        let bury = || rustix::fs::renameat(directory, name, &self.graves, self.moved.to_string());
        // A directory that may not be written can't be moved either; it is ours, so it can be opened up.
        // A file that has replaced it meanwhile is not followed.
        bury().or_else(|_| {
            directory.change_mode(path, 0o700)?;
            bury().map_err(at(path))
        })?;
        self.moved += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn removal_of_a_number_of_entries_ends_with_an_error_when_there_are_more() {
        let place = tempfile::tempdir().unwrap();
        for number in 0..10 {
            std::fs::create_dir_all(place.path().join(format!("{number}/sub"))).unwrap();
        }
        let top = Directory::open_host(place.path()).unwrap();
        assert_eq!(top.clear_at_most(15).unwrap_err().source, Errno::AGAIN);
        // Control: what is left fits.
        top.clear_at_most(40).unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_cleared_away_changes_nothing_outside() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        std::fs::write(&outside, "x").unwrap();
        std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::create_dir(place.path().join("inside")).unwrap();
        let top = Directory::open_host(&place.path().join("inside")).unwrap();
        let mut clearing = DirectoryRemoval::begin(&top, u64::MAX).unwrap();
        // Seen as a directory, and a link by the time that it can't be moved.
        symlink(&outside, place.path().join("inside/swapped")).unwrap();
        clearing.graves.make(Path::new("0"), 0o700).unwrap().make(Path::new("full"), 0o700).unwrap();
        let seen = Name { name: c"swapped".to_owned(), kind: FileType::Directory };
        clearing.remove(&top, &seen).unwrap_err();
        assert_eq!(std::fs::metadata(&outside).unwrap().mode() & 0o777, 0o644);
    }
}
