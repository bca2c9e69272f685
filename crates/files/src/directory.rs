//! A directory held by its descriptor: everything in it is reached from there, and nothing outside of it can be.
//!
//! Names come from inside sandboxes. No symbolic link is followed, no mount point of `/proc` is passed, nothing but
//! regular files is opened, and opening never waits: a FIFO has no way to hold the host up.

mod removal;

use crate::beneath;
use crate::host_path::HostPath;
use removal::DirectoryRemoval;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A directory.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name's bytes.
    pub name: CString,
    /// Type of the named file.
    pub kind: FileType,
}

/// Something in a directory that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("can't use {}", path.display())]
pub struct DirectoryError {
    /// Path, relative to the directory.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: Errno,
}

// === impl Directory ===

impl Directory {
    /// Opens a directory of the host's own.
    ///
    /// # Errors
    /// [`DirectoryError`] when there is none.
    pub fn open_host(path: &Path) -> Result<Self, DirectoryError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).map(Self::from).map_err(at(path))
    }

    /// Opens a host directory like [`Self::open_host`], but not through a link at `path`: the permissions of a link's
    /// target are not ours to change.
    ///
    /// # Errors
    /// [`DirectoryError`] when there is none, or a link in its place.
    pub fn open_host_itself(path: &Path) -> Result<Self, DirectoryError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).map(Self::from).map_err(at(path))
    }

    /// Opens the directory of the host that was meant, and no other that has replaced it.
    ///
    /// # Errors
    /// [`DirectoryError`] when it isn't there any more.
    pub fn open_meant(path: &HostPath) -> Result<Self, DirectoryError> {
        let opened = Self::open_host(path.as_path())?;
        match path.is(&opened).map_err(at(path.as_path()))? {
            true => Ok(opened),
            false => Err(Errno::STALE).map_err(at(path.as_path())),
        }
    }

    /// Opens a directory below this one.
    ///
    /// # Errors
    /// [`DirectoryError`], also for a path that leads through a link.
    pub fn open(&self, path: &Path) -> Result<Self, DirectoryError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        beneath::open(self, path, flags).map(Self::from).map_err(at(path))
    }

    /// Opens the directory of the host that was meant only as a place to begin paths at: one that may not be read will
    /// do.
    ///
    /// # Errors
    /// [`DirectoryError`] when it isn't there any more.
    pub fn open_meant_place(path: &HostPath) -> Result<Self, DirectoryError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, path.as_path(), flags, Mode::empty()).map_err(at(path.as_path()))?;
        match path.is(&opened).map_err(at(path.as_path()))? {
            true => Ok(Self::from(opened)),
            false => Err(Errno::STALE).map_err(at(path.as_path())),
        }
    }

    /// Opens a directory below this one only as a place to begin paths at: one that may not be read will do.
    ///
    /// # Errors
    /// [`DirectoryError`], also for a path that leads through a link.
    pub fn open_place(&self, path: &Path) -> Result<Self, DirectoryError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        beneath::open(self, path, flags).map(Self::from).map_err(at(path))
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`DirectoryError`], also for anything that is no regular file.
    pub fn open_file(&self, path: &Path) -> Result<File, DirectoryError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = beneath::open(self, path, flags).map_err(at(path))?;
        let stat = fstat(&file).map_err(at(path))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            _ => Err(Errno::INVAL).map_err(at(path)),
        }
    }

    /// Opens a directory like [`Self::open`], in a tree that is the host's own: permissions that are in the way are
    /// changed.
    ///
    /// # Errors
    /// [`DirectoryError`], also for a path that leads through a link.
    pub fn open_own(&self, path: &Path) -> Result<Self, DirectoryError> {
        let opened = self.opening_up(path, Mode::RWXU, |directory| directory.open(path))?;
        opened.open_up()?;
        Ok(opened)
    }

    /// Lets the owner do everything in this directory.
    ///
    /// # Errors
    /// [`DirectoryError`] when it isn't ours.
    pub fn open_up(&self) -> Result<(), DirectoryError> {
        let mode = fstat(self).map_err(at(Path::new(".")))?.st_mode & 0o777;
        match mode & 0o700 {
            0o700 => Ok(()),
            _ => self.set_mode(mode | 0o700),
        }
    }

    /// Opens a file like [`Self::open_file`], in a tree that is the host's own: permissions that are in the way are
    /// changed.
    ///
    /// # Errors
    /// [`DirectoryError`], also for anything that is no regular file.
    pub fn open_own_file(&self, path: &Path) -> Result<File, DirectoryError> {
        self.opening_up(path, Mode::RUSR.union(Mode::WUSR), |directory| directory.open_file(path))
    }

    fn opening_up<T>(
        &self,
        path: &Path,
        mode: Mode,
        open: impl Fn(&Self) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        let opened = open(self);
        let Err(DirectoryError { source: Errno::ACCESS, .. }) = opened else { return opened };
        self.change_mode(path, mode.as_raw_mode())?;
        open(self)
    }

    /// Gives what `path` is, itself, these permission bits. A link has none, and what it leads to keeps its own.
    ///
    /// # Errors
    /// [`DirectoryError`], also for a link.
    pub fn change_mode(&self, path: &Path, mode: u32) -> Result<(), DirectoryError> {
        self.change_mode_if(path, mode, |_| true).map(drop)
    }

    /// Changes the mode like [`Self::change_mode`], if it is the file that is meant. Returns its new state; `None` for
    /// another file.
    ///
    /// # Errors
    /// [`DirectoryError`], also for a link.
    pub fn change_mode_if(
        &self,
        path: &Path,
        mode: u32,
        is_meant: impl FnOnce(&Stat) -> bool,
    ) -> Result<Option<Stat>, DirectoryError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = beneath::open(self, path, flags).map_err(at(path))?;
        let stat = fstat(&found).map_err(at(path))?;
        // With these flags a link at the end is found, and older kernels would change its own bits.
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Err(Errno::LOOP).map_err(at(path));
        }
        if !is_meant(&stat) {
            return Ok(None);
        }
        set_mode_of(&found, mode).map_err(at(path))?;
        fstat(&found).map(Some).map_err(at(path))
    }

    /// Returns the state of `path` without following a link; `None` when there is no file.
    ///
    /// # Errors
    /// [`DirectoryError`] when it can't be looked at.
    pub fn stat(&self, path: &Path) -> Result<Option<Stat>, DirectoryError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match beneath::open(self, path, flags) {
            Ok(found) => fstat(&found).map(Some).map_err(at(path)),
            // A link at the end: `openat2` won't even look at it, the parent will.
            Err(Errno::LOOP) => self.stat_link(path),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno).map_err(at(path)),
        }
    }

    /// Returns the state of this directory itself, also if nothing in it may be looked at.
    ///
    /// # Errors
    /// [`DirectoryError`], which is not to be expected.
    pub fn stat_itself(&self) -> Result<Stat, DirectoryError> {
        fstat(self).map_err(at(Path::new(".")))
    }

    fn stat_link(&self, path: &Path) -> Result<Option<Stat>, DirectoryError> {
        match self.parent_of(path) {
            Ok((parent, name)) => {
                rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map(Some).map_err(at(path))
            }
            // The target of a link is not in this directory.
            Err(DirectoryError { source: Errno::LOOP | Errno::NOTDIR | Errno::NOENT, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    /// [`DirectoryError`] when it is none.
    pub fn read_link(&self, path: &Path) -> Result<CString, DirectoryError> {
        let (parent, name) = self.parent_of(path)?;
        rustix::fs::readlinkat(&parent, name, Vec::new()).map_err(at(path))
    }

    /// The directory that `path` is in, and its last name.
    ///
    /// # Errors
    /// [`DirectoryError`] when there is no such directory.
    pub fn parent_of<'p>(&self, path: &'p Path) -> Result<(Self, &'p OsStr), DirectoryError> {
        let name = path.file_name().ok_or(Errno::INVAL).map_err(at(path))?;
        match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => Ok((self.open(parent)?, name)),
            None => Ok((self.open(Path::new("."))?, name)),
        }
    }

    /// Returns the names in it, sorted by their bytes, if there are at most that many.
    ///
    /// # Errors
    /// [`DirectoryError`] when it can't be read; `EOVERFLOW` when there are more.
    pub fn names(&self, most: usize) -> Result<Vec<Name>, DirectoryError> {
        let mut names = self.some_names(most.saturating_add(1))?;
        if names.len() > most {
            return Err(Errno::OVERFLOW).map_err(at(Path::new(".")));
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }

    /// Returns names in it, in no order: at most that many.
    fn some_names(&self, most: usize) -> Result<Vec<Name>, DirectoryError> {
        rustix::fs::seek(self, rustix::fs::SeekFrom::Start(0)).map_err(at(Path::new(".")))?;
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut entries = RawDir::new(self, &mut buffer);
        let mut names = Vec::new();
        while names.len() < most {
            let Some(entry) = entries.next() else { break };
            let entry = entry.map_err(at(Path::new(".")))?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map(|stat| FileType::from_raw_mode(stat.st_mode))
                    .map_err(at(Path::new(".")))?,
                known => known,
            };
            names.push(Name { name: name.to_owned(), kind });
        }
        Ok(names)
    }

    /// Makes a directory in this one and opens it; one that is there already is opened.
    ///
    /// # Errors
    /// [`DirectoryError`] when it can't be made.
    pub fn make(&self, name: &Path, mode: u32) -> Result<Self, DirectoryError> {
        match mkdirat(self, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => self.open(name),
            Err(errno) => Err(errno).map_err(at(name)),
        }
    }

    /// Removes everything in it, however deep it goes and whatever permissions it has. Only for trees in which no other
    /// program is at work any more.
    ///
    /// # Errors
    /// [`DirectoryError`] for the first thing that can't be removed.
    pub fn clear(&self) -> Result<(), DirectoryError> {
        self.open_up()?;
        DirectoryRemoval::begin(self, u64::MAX)?.finish()
    }

    /// Removes what is in it, at most that many entries: other programs may still add to it.
    ///
    /// # Errors
    /// [`DirectoryError`] for the first entry that can't be removed; `EAGAIN` when there are more.
    pub fn clear_at_most(&self, entries: u64) -> Result<(), DirectoryError> {
        self.open_up()?;
        DirectoryRemoval::begin(self, entries)?.finish()
    }

    /// Unlinks what is no directory, here and a few levels down.
    fn unlink_files(&self, depth: usize) -> Result<(), DirectoryError> {
        const DEEPEST: usize = 16;
        const PORTION: usize = 4096;
        for Name { name, kind } in self.some_names(PORTION)? {
            let path = Path::new(OsStr::from_bytes(name.as_bytes()));
            match kind {
                FileType::Directory if depth < DEEPEST => self.open_own(path)?.unlink_files(depth + 1)?,
                FileType::Directory => {}
                _ => rustix::fs::unlinkat(self, &name, AtFlags::empty()).map_err(at(path))?,
            }
        }
        Ok(())
    }

    /// Gives it these permission bits.
    ///
    /// # Errors
    /// [`DirectoryError`] when it isn't ours.
    pub fn set_mode(&self, mode: u32) -> Result<(), DirectoryError> {
        set_mode_of(self, mode).map_err(at(Path::new(".")))
    }

    /// Returns a second handle of the same directory.
    ///
    /// # Errors
    /// [`DirectoryError`] when there are no descriptors left.
    pub fn try_clone(&self) -> Result<Self, DirectoryError> {
        rustix::io::fcntl_dupfd_cloexec(self, 0).map(Self::from).map_err(at(Path::new(".")))
    }
}

/// Sets the mode by descriptor. For a file that may not be read, older kernels have no other way.
fn set_mode_of(opened: impl AsFd, mode: u32) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode);
    match fchmod(&opened, mode) {
        Err(Errno::BADF) => {
            let itself = format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd());
            rustix::fs::chmodat(CWD, itself, mode, AtFlags::empty())
        }
        set => set,
    }
}

fn at(path: &Path) -> impl FnOnce(Errno) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError { path, source }
}

impl From<DirectoryError> for std::io::Error {
    fn from(error: DirectoryError) -> Self {
        error.source.into()
    }
}

impl From<OwnedFd> for Directory {
    fn from(descriptor: OwnedFd) -> Self {
        Self { descriptor }
    }
}

impl From<Directory> for OwnedFd {
    fn from(directory: Directory) -> Self {
        directory.descriptor
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn permissions_are_not_changed_through_links_and_nothing_is_below_one() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("outside")).unwrap();
        std::fs::write(place.path().join("outside/file"), "x").unwrap();
        std::fs::create_dir(place.path().join("inside")).unwrap();
        symlink(place.path().join("outside/file"), place.path().join("inside/to_file")).unwrap();
        symlink(place.path().join("outside"), place.path().join("inside/to_folder")).unwrap();
        let mode = || place.path().join("outside/file").metadata().unwrap().mode();
        let (before, inside) = (mode(), Directory::open_host(&place.path().join("inside")).unwrap());
        for path in ["to_file", "to_folder/file", "../outside/file"] {
            assert!(inside.change_mode(Path::new(path), 0o600).is_err(), "{path}");
        }
        assert_eq!(mode(), before);
        assert!(inside.stat(Path::new("to_folder/file")).unwrap().is_none());
        assert!(inside.stat(Path::new("to_file")).unwrap().is_some());
        std::fs::write(place.path().join("inside/own"), "x").unwrap();
        std::fs::set_permissions(place.path().join("inside/own"), PermissionsExt::from_mode(0o000)).unwrap();
        inside.change_mode(Path::new("own"), 0o640).unwrap();
        assert_eq!(place.path().join("inside/own").metadata().unwrap().mode() & 0o777, 0o640);
    }
}
