//! Files that the host obeys: configurations, policies, and the credentials, programs, authorities and tokens that they name. Such a
//! file is refused where a sandbox or another local user could write it.
//!
//! The path is walked by descriptor, one name at a time; links are followed here. Every directory on the way decides what is found
//! next, so each must be out of reach, too. Directories that sandboxes write are told by device and inode, never by the path's text.

mod scan;

use crate::in_use::{self, Entry, Identity, Use};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Why a file isn't obeyed.
#[derive(Debug, thiserror::Error)]
pub enum UntrustedFileError {
    /// It can't be looked at.
    #[error("can't look at {}", path.display())]
    Look {
        /// Where the walk ended.
        path: PathBuf,
        /// Why.
        #[source]
        source: Errno,
    },
    /// A sandbox can write it.
    #[error(
        "{} lies in the workspace {}, which a sandbox can write, so the sandbox would decide what the host does; keep it elsewhere, \
         such as in ~/.config/belljar, or give the sandbox a copy (--workspace-copy)",
        path.display(),
        workspace.display()
    )]
    Workspace {
        /// The file, as it was named.
        path: PathBuf,
        /// The directory that a sandbox writes.
        workspace: PathBuf,
    },
    /// A sandbox can write it by another of its names.
    #[error(
        "{} is the same file as {}, which lies in the workspace {}, so a sandbox can write it; obey a copy of the file instead \
         (cp, not ln)",
        path.display(),
        other.display(),
        workspace.display()
    )]
    Linked {
        /// The file, as it was named.
        path: PathBuf,
        /// Its other name.
        other: PathBuf,
        /// The directory that a sandbox writes.
        workspace: PathBuf,
    },
    /// Another user owns it, or a directory on the way to it.
    #[error(
        "{} is obeyed on this host, and {} belongs to the user with the id {owner}, who could change it; \
         it must belong to you or to root (chown)",
        path.display(),
        at.display()
    )]
    Owner {
        /// The file, as it was named.
        path: PathBuf,
        /// What belongs to another user.
        at: PathBuf,
        /// That user.
        owner: u32,
    },
    /// Other users may write it, or a directory on the way to it.
    #[error(
        "{} is obeyed on this host, and other users can write {} (mode {mode:04o}); take that away: chmod go-w {}",
        path.display(),
        at.display(),
        at.display()
    )]
    Mode {
        /// The file, as it was named.
        path: PathBuf,
        /// What others can write.
        at: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
}

/// As the kernel: no more links are followed on one path.
const MOST_LINKS: usize = 40;

/// What permission bits others could write by.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// In a directory with this bit only the owner of a name can replace it.
const STICKY: u32 = 0o1000;

/// Opens a file that the host obeys, registers it as obeyed, and returns it for reading.
///
/// # Errors
/// [`UntrustedFileError`] if a sandbox or another user could write it, or if it can't be opened.
pub fn open(path: &Path) -> Result<File, UntrustedFileError> {
    let walked = check(path)?;
    // What was walked to, and not what has come to its name since.
    let by = format!("/proc/self/fd/{}", walked.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = openat(CWD, by.as_str(), flags, Mode::empty());
    opened.map(File::from).map_err(|source| UntrustedFileError::Look { path: path.to_owned(), source })
}

/// Checks a file that the host obeys, such as a program that it runs, and registers it as obeyed.
///
/// # Errors
/// [`UntrustedFileError`], as from [`open`].
pub fn check(path: &Path) -> Result<OwnedFd, UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let writable: Vec<Entry> =
        in_use::all().into_iter().filter(|entry| entry.used == Use::Writable).collect();
    let mut walk = Walk::begin(&absolute, &writable)?;
    let found = walk.open_end()?;
    let obeyed = walk.obeyed;
    in_use::register(&obeyed).map_err(|error| look(path)(errno(&error)))?;
    Ok(found)
}

/// Checks that a file isn't in a directory, however it is named. Nothing is registered.
///
/// # Errors
/// [`UntrustedFileError`] if it is, or if a sandbox or another user could write it anyway.
pub fn check_outside(path: &Path, directory: &Path) -> Result<(), UntrustedFileError> {
    let absolute = std::path::absolute(path).map_err(|error| look(path)(errno(&error)))?;
    let stat = rustix::fs::stat(directory).map_err(look(directory))?;
    let entry = Entry { used: Use::Writable, identity: Identity::of(&stat), path: directory.to_owned() };
    Walk::begin(&absolute, &[entry])?.open_end().map(drop)
}

/// Registers a directory that a sandbox is about to write directly. `places` are paths that the host would obey if there were
/// something.
///
/// # Errors
/// [`UntrustedFileError`] if a process of this state directory obeys a file in it, or if one of the places is in it.
pub fn lend_workspace(directory: &Path, places: &[PathBuf]) -> Result<(), UntrustedFileError> {
    let stat = rustix::fs::stat(directory).map_err(look(directory))?;
    let entry = Entry { used: Use::Writable, identity: Identity::of(&stat), path: directory.to_owned() };
    // Before the others are looked at: of two processes that do so at once, at least one sees the other.
    in_use::register(std::slice::from_ref(&entry)).map_err(|error| look(directory)(errno(&error)))?;
    let writable = [entry];
    let obeyed = in_use::all().into_iter().filter(|entry| entry.used == Use::Obeyed).map(|entry| entry.path);
    for path in obeyed.chain(places.iter().cloned()) {
        let walked = Walk::begin(&path, &writable).and_then(|mut walk| walk.open_end());
        if let Err(error @ (UntrustedFileError::Workspace { .. } | UntrustedFileError::Linked { .. })) =
            walked
        {
            return Err(error);
        }
    }
    Ok(())
}

/// One walk from the root to a file.
struct Walk<'a> {
    path: &'a Path,
    writable: &'a [Entry],
    /// The names that are still to be walked.
    left: VecDeque<OsString>,
    /// The directories that were walked, the root first, each with its path.
    directories: Vec<(OwnedFd, PathBuf)>,
    links: usize,
    /// The links that were followed, and the file.
    obeyed: Vec<Entry>,
}

impl<'a> Walk<'a> {
    fn begin(path: &'a Path, writable: &'a [Entry]) -> Result<Self, UntrustedFileError> {
        let mut walk = Self {
            path,
            writable,
            left: VecDeque::new(),
            directories: Vec::new(),
            links: 0,
            obeyed: Vec::new(),
        };
        walk.start_over()?;
        walk.prepend(path);
        Ok(walk)
    }

    fn start_over(&mut self) -> Result<(), UntrustedFileError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, "/", flags, Mode::empty()).map_err(look(Path::new("/")))?;
        self.directories = vec![(root, PathBuf::from("/"))];
        Ok(())
    }

    fn prepend(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front(OsString::from("..")),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    fn open_end(&mut self) -> Result<OwnedFd, UntrustedFileError> {
        while let Some(name) = self.left.pop_front() {
            if name == ".." {
                if self.directories.len() > 1 {
                    self.directories.pop();
                }
                continue;
            }
            if let Some(found) = self.step(&name)? {
                return Ok(found);
            }
        }
        Err(look(self.path)(Errno::ISDIR))
    }

    /// Walks to one name. Returns it if it is the end.
    fn step(&mut self, name: &OsStr) -> Result<Option<OwnedFd>, UntrustedFileError> {
        let (directory, at) = self.directories.last().ok_or_else(|| look(self.path)(Errno::NOENT))?;
        let at = at.join(name);
        self.check_directory()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(directory, name, flags, Mode::empty()).map_err(look(&at))?;
        let stat = fstat(&found).map_err(look(&at))?;
        let entry = || Entry { used: Use::Obeyed, identity: Identity::of(&stat), path: at.clone() };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink if is_magic(&found) => return self.passed(name, &at).map(Some),
            FileType::Symlink => {
                self.check_owner(&stat, &at)?;
                self.obeyed.push(entry());
                self.follow(&found, &at)?;
            }
            FileType::Directory => self.directories.push((found, at)),
            _ if !self.left.is_empty() => return Err(look(&at)(Errno::NOTDIR)),
            // What comes out of `/dev/null` or a terminal was put there by no other user.
            FileType::CharacterDevice => return Ok(Some(found)),
            _ => {
                self.check_file(&stat, &at)?;
                self.obeyed.push(entry());
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn follow(&mut self, link: &OwnedFd, at: &Path) -> Result<(), UntrustedFileError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(look(self.path)(Errno::LOOP));
        }
        let target = readlinkat(link, c"", Vec::new()).map_err(look(at))?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        if target.is_absolute() {
            self.start_over()?;
        }
        self.prepend(&target);
        Ok(())
    }

    /// What the caller has passed by a descriptor (`/dev/fd/63` of a shell). A pipe has no other reader; a file has a path of its own.
    fn passed(&mut self, name: &OsStr, at: &Path) -> Result<OwnedFd, UntrustedFileError> {
        let (directory, _) = self.directories.last().ok_or_else(|| look(at)(Errno::NOENT))?;
        if !self.left.is_empty() {
            return Err(look(at)(Errno::NOTDIR));
        }
        let found =
            openat(directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(look(at))?;
        let stat = fstat(&found).map_err(look(at))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            self.check_file(&stat, at)?;
            let named = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()));
            // A file without a name can be written by those alone who hold it.
            if let Ok(named) = named
                && stat.st_nlink > 0
            {
                Walk::begin(&named, self.writable)?.open_end()?;
            }
        }
        Ok(found)
    }

    /// Looks at the directory that the next name is looked up in.
    fn check_directory(&self) -> Result<(), UntrustedFileError> {
        let Some((directory, at)) = self.directories.last() else { return Ok(()) };
        let stat = fstat(directory).map_err(look(at))?;
        let identity = Identity::of(&stat);
        if let Some(entry) = self.writable.iter().find(|entry| entry.identity == identity) {
            return Err(UntrustedFileError::Workspace {
                path: self.path.to_owned(),
                workspace: entry.path.clone(),
            });
        }
        self.check_owner(&stat, at)?;
        match stat.st_mode & STICKY != 0 {
            true => Ok(()),
            false => self.check_mode(&stat, at),
        }
    }

    fn check_file(&self, stat: &Stat, at: &Path) -> Result<(), UntrustedFileError> {
        self.check_owner(stat, at)?;
        self.check_mode(stat, at)?;
        if stat.st_nlink < 2 {
            return Ok(());
        }
        // A hard link can't be told by the path: its other names are looked for where a sandbox writes.
        let identity = Identity::of(stat);
        let near = |entry: &&Entry| entry.identity.shares_device_with(identity);
        for entry in self.writable.iter().filter(near) {
            if let Some(other) = scan::find(&entry.path, identity) {
                let workspace = entry.path.clone();
                return Err(UntrustedFileError::Linked { path: self.path.to_owned(), other, workspace });
            }
        }
        Ok(())
    }

    fn check_owner(&self, stat: &Stat, at: &Path) -> Result<(), UntrustedFileError> {
        let is_ours = stat.st_uid == 0 || stat.st_uid == geteuid().as_raw();
        match is_ours || is_unmapped(stat.st_uid) {
            true => Ok(()),
            false => Err(UntrustedFileError::Owner {
                path: self.path.to_owned(),
                at: at.to_owned(),
                owner: stat.st_uid,
            }),
        }
    }

    fn check_mode(&self, stat: &Stat, at: &Path) -> Result<(), UntrustedFileError> {
        let by_others = stat.st_mode & WRITABLE_BY_OTHERS;
        // A group that has its user's number and no other use is that user's own.
        let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
        let is_own_group = uid != 0 && uid == gid && stat.st_gid == gid;
        if by_others == 0 || (by_others == 0o020 && is_own_group) {
            return Ok(());
        }
        let (path, mode) = (self.path.to_owned(), stat.st_mode & 0o7777);
        Err(UntrustedFileError::Mode { path, at: at.to_owned(), mode })
    }
}

/// In a user namespace, the host's own files belong to a user who has no number there.
fn is_unmapped(uid: u32) -> bool {
    const OVERFLOW: u32 = 65534;
    uid == OVERFLOW
        && std::fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| !map.split_whitespace().eq(["0", "0", "4294967295"]))
}

/// Whether a link is one of those in `/proc` that lead to what a descriptor is, and have no path.
fn is_magic(link: &OwnedFd) -> bool {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    let is_of_proc = rustix::fs::fstatfs(link.as_fd()).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC);
    let target = readlinkat(link, c"", Vec::new());
    // `/proc/self` is an ordinary link with an ordinary target.
    is_of_proc
        && target.is_ok_and(|target| target.as_bytes().starts_with(b"/") || target.as_bytes().contains(&b':'))
}

impl From<UntrustedFileError> for io::Error {
    fn from(error: UntrustedFileError) -> Self {
        match error {
            UntrustedFileError::Look { source, .. } => source.into(),
            refused => Self::new(io::ErrorKind::PermissionDenied, refused),
        }
    }
}

fn look(path: &Path) -> impl FnOnce(Errno) -> UntrustedFileError {
    move |source| UntrustedFileError::Look { path: path.to_owned(), source }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests;
