//! Carries a tree into an empty one: the layer of changes of one sandbox into that of another.
//!
//! Everything comes along: data (shared by both where the file system can, holes as holes), hard links, permissions,
//! times, and the kernel's notes about the layer (`user.overlay.*`, names that are gone). The owner is another.

#[cfg(test)]
mod tests;

use super::relaxed_permissions::{self, RelaxedPermissions};
use super::transfer::copy_data;
use belljar_confine::as_user::AsUser;
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError, Name};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, XattrFlags, fchmod, fgetxattr, flistxattr,
    fsetxattr, futimens, ioctl_ficlone, linkat, mkdirat, mknodat, openat, symlinkat, utimensat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a tree was not duplicated. Its owner has to clear away what was written.
#[derive(Debug, thiserror::Error)]
pub enum DuplicateError {
    /// The tree exceeds the limits.
    #[error("the workspace has more than {most_bytes} bytes of changes, or more than {MOST_NAMES} files")]
    TooMuch {
        /// Maximum number of bytes that were allowed.
        most_bytes: u64,
    },
    /// Something can't be read.
    #[error(transparent)]
    Read(#[from] DirectoryError),
    /// Something can't be made.
    #[error("can't make {}", path.display())]
    Make {
        /// Path of the file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Maximum number of names that are duplicated.
const MOST_NAMES: usize = 1_000_000;

/// The kernel's own limits for the names of all attributes of a file, and for the value of one.
const LARGEST_ATTRIBUTES: usize = 64 << 10;

/// Attributes that belong to the place and not to what is in it.
const LEFT_BEHIND: [&[u8]; 1] = [b"user.overlay.uuid"];

/// Duplicates everything below `from` in `to`, which is empty and belongs to `owner`, and in which no other program is at
/// work. At most that many bytes are written; shared data costs none.
///
/// # Errors
/// [`DuplicateError`] for the first thing that can't be carried over.
pub fn duplicate(
    from: &Directory,
    to: &Directory,
    owner: Identity,
    most_bytes: u64,
) -> Result<(), DuplicateError> {
    let opened = RelaxedPermissions::in_tree(from);
    let (links, directories, pending) = (HashMap::new(), Vec::new(), vec![PathBuf::new()]);
    let mut work = TreeDuplication {
        from,
        to,
        owner,
        opened,
        links,
        directories,
        pending,
        names_left: MOST_NAMES,
        bytes_left: most_bytes,
        can_share: true,
        attributes: AttributeBuffers {
            names: vec![0; LARGEST_ATTRIBUTES],
            value: vec![0; LARGEST_ATTRIBUTES],
        },
    };
    work.carry_all().map_err(|error| match error {
        DuplicateError::Make { source, .. } if source.raw_os_error() == Some(Errno::DQUOT.raw_os_error()) => {
            DuplicateError::TooMuch { most_bytes }
        }
        DuplicateError::Read(DirectoryError { source: Errno::OVERFLOW, .. }) => {
            DuplicateError::TooMuch { most_bytes }
        }
        other => other,
    })
}

struct TreeDuplication<'a> {
    from: &'a Directory,
    to: &'a Directory,
    owner: Identity,
    opened: RelaxedPermissions<'a>,
    /// First path of each file with several names, by device and inode.
    links: HashMap<(u64, u64), PathBuf>,
    /// Directories that are made, parents first: their permissions and times come last.
    directories: Vec<(PathBuf, Stat)>,
    pending: Vec<PathBuf>,
    names_left: usize,
    bytes_left: u64,
    /// True as long as the file system has not refused to share data.
    can_share: bool,
    attributes: AttributeBuffers,
}

/// Room for the names of a file's attributes and for the value of one.
struct AttributeBuffers {
    names: Vec<u8>,
    value: Vec<u8>,
}

/// A name, and the directories that it is in.
struct EntryLocation<'a> {
    from: &'a Directory,
    to: &'a Directory,
    name: &'a Path,
    path: &'a Path,
}

// === impl TreeDuplication ===

impl TreeDuplication<'_> {
    fn carry_all(&mut self) -> Result<(), DuplicateError> {
        let top = self.from.stat_itself()?;
        self.directories.push((PathBuf::new(), top));
        relaxed_permissions::note(self.opened.modes(), Path::new(""), &top);
        self.from.open_up()?;
        while let Some(below) = self.pending.pop() {
            self.carry_directory(&below)?;
        }
        for (path, stat) in std::mem::take(&mut self.directories).into_iter().rev() {
            let made = self.to.open(place(&path))?;
            finish(made.as_fd(), &stat).map_err(failed(&path))?;
        }
        Ok(())
    }

    fn carry_directory(&mut self, below: &Path) -> Result<(), DuplicateError> {
        let (from, to) = (self.from.open_own(place(below))?, self.to.open(place(below))?);
        self.attributes.copy(from.as_fd(), to.as_fd()).map_err(failed(below))?;
        let names = from.names(self.names_left)?;
        self.names_left -= names.len();
        for Name { name, .. } in names {
            let name = Path::new(OsStr::from_bytes(name.as_bytes()));
            let path = below.join(name);
            self.carry(&EntryLocation { from: &from, to: &to, name, path: &path })?;
        }
        Ok(())
    }

    fn carry(&mut self, place: &EntryLocation<'_>) -> Result<(), DuplicateError> {
        // It is gone: a program works there in spite of everything.
        let Some(stat) = place.from.stat(place.name)? else { return Ok(()) };
        relaxed_permissions::note(self.opened.modes(), place.path, &stat);
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            self.make(place, |to, name| Ok(mkdirat(to, name, Mode::RWXU)?))?;
            self.directories.push((place.path.to_owned(), stat));
            self.pending.push(place.path.to_owned());
            return Ok(());
        }
        let identity = (stat.st_dev, stat.st_ino);
        if stat.st_nlink > 1
            && let Some(first) = self.links.get(&identity)
        {
            return self.make(place, |to, name| Ok(linkat(self.to, first, to, name, AtFlags::empty())?));
        }
        match kind {
            FileType::RegularFile => {
                self.carry_file(place, &stat)?;
                if stat.st_nlink > 1 {
                    self.links.insert(identity, place.path.to_owned());
                }
                Ok(())
            }
            FileType::Symlink => {
                let says = place.from.read_link(place.name)?;
                self.make(place, |to, name| Ok(symlinkat(&says, to, name)?))?;
                self.set_times(place, &stat)
            }
            // A name that is gone. Nothing else that is a device can be made in a sandbox.
            FileType::CharacterDevice if stat.st_rdev == 0 => {
                self.make(place, |to, name| Ok(mknodat(to, name, kind, Mode::empty(), 0)?))
            }
            FileType::Fifo | FileType::Socket => {
                let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
                self.make(place, |to, name| Ok(mknodat(to, name, kind, mode, 0)?))?;
                self.set_times(place, &stat)
            }
            _ => Err(failed(place.path)(Errno::OPNOTSUPP.into())),
        }
    }

    /// Makes something, as its owner.
    fn make<T>(
        &self,
        place: &EntryLocation<'_>,
        make: impl FnOnce(&Directory, &Path) -> std::io::Result<T>,
    ) -> Result<T, DuplicateError> {
        AsUser::become_user(self.owner.host_uid, self.owner.host_gid)
            .map_err(Into::into)
            .and_then(|_user| make(place.to, place.name))
            .map_err(failed(place.path))
    }

    /// Sets the times as the owner: the name may stand for another file by now.
    fn set_times(&self, place: &EntryLocation<'_>, stat: &Stat) -> Result<(), DuplicateError> {
        self.make(place, |to, name| Ok(utimensat(to, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn carry_file(&mut self, place: &EntryLocation<'_>, stat: &Stat) -> Result<(), DuplicateError> {
        let mut from = place.from.open_own_file(place.name)?;
        let mut to = self.make(place, |to, name| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(File::from(openat(to, name, flags, Mode::RUSR | Mode::WUSR)?))
        })?;
        if stat.st_size > 0 {
            self.carry_data(&mut from, &mut to).map_err(failed(place.path))?;
        }
        self.attributes
            .copy(from.as_fd(), to.as_fd())
            .and_then(|()| finish(to.as_fd(), stat))
            .map_err(failed(place.path))
    }

    fn carry_data(&mut self, from: &mut File, to: &mut File) -> std::io::Result<()> {
        if self.can_share {
            match ioctl_ficlone(&*to, &*from) {
                Ok(()) => return Ok(()),
                Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => {
                    self.can_share = false;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        self.bytes_left -= copy_data(from, to, self.bytes_left)?;
        Ok(())
    }
}

// === impl AttributeBuffers ===

impl AttributeBuffers {
    /// Copies everything that a user may attach to a file.
    fn copy(&mut self, from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> std::io::Result<()> {
        let Self { names, value } = self;
        let length = match flistxattr(from, &mut names[..]) {
            // Where there are none, none are missing.
            Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
            Ok(length) => length,
            Err(errno) => return Err(errno.into()),
        };
        for name in names.get(..length).unwrap_or_default().split_inclusive(|byte| *byte == 0) {
            let name = CStr::from_bytes_with_nul(name).map_err(|_| Errno::INVAL)?;
            if !name.to_bytes().starts_with(b"user.") || LEFT_BEHIND.contains(&name.to_bytes()) {
                continue;
            }
            let length = fgetxattr(from, name, &mut value[..])?;
            fsetxattr(to, name, value.get(..length).unwrap_or_default(), XattrFlags::empty())?;
        }
        Ok(())
    }
}

/// Permissions and times. Nothing lends its owner's rights to others.
fn finish(made: BorrowedFd<'_>, stat: &Stat) -> std::io::Result<()> {
    let bits = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory { 0o1777 } else { 0o777 };
    fchmod(made, Mode::from_raw_mode(stat.st_mode & bits))?;
    Ok(futimens(made, &times(stat))?)
}

fn times(stat: &Stat) -> Timestamps {
    let time =
        |tv_sec, nanoseconds: u64| Timespec { tv_sec, tv_nsec: i64::try_from(nanoseconds).unwrap_or(0) };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// The path as one can name it: that of the tree itself is empty.
fn place(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> DuplicateError {
    let path = place(path).to_owned();
    move |source| DuplicateError::Make { path, source }
}
