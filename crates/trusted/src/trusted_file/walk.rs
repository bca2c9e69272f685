//! The walk to a file, one name at a time.

use super::error::{UntrustedFileError, look};
use super::holders::{self, PathElement};
use super::reach::WritableDirectories;
use crate::in_use::{FileIdentity, InUseEntry, UseKind};
use crate::rights;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symbolic links followed on one path, as in the kernel.
const MOST_LINKS: usize = 40;

/// In a directory with this bit only the owner of a name can replace it.
const STICKY: u32 = 0o1000;

/// A walk from the root to a file.
pub(super) struct RootWalk<'a> {
    path: &'a Path,
    writable: &'a [InUseEntry],
    /// The names that are still to be walked.
    left: VecDeque<OsString>,
    /// The name that was looked up last.
    looked_up: Option<OsString>,
    /// The directories that were walked, the root first, each with its path.
    pub(super) directories: Vec<(OwnedFd, PathBuf)>,
    links: usize,
    /// True if files that other users can write are accepted, and only those of sandboxes are refused.
    pub(super) only_sandboxes: bool,
    /// True if the end may be something else than a regular file, such as a socket.
    pub(super) any_kind: bool,
    /// The directories that sandboxes write directly, if there are any.
    reach: Option<WritableDirectories<'a>>,
    /// Everything that has decided what was found, and the file.
    passed: Vec<PathElement>,
    /// The links that were followed, and the file.
    pub(super) obeyed: Vec<InUseEntry>,
}

impl<'a> RootWalk<'a> {
    pub(super) fn begin(path: &'a Path, writable: &'a [InUseEntry]) -> Result<Self, UntrustedFileError> {
        let mut walk = Self {
            path,
            writable,
            left: VecDeque::new(),
            looked_up: None,
            directories: Vec::new(),
            links: 0,
            only_sandboxes: false,
            any_kind: false,
            reach: (!writable.is_empty()).then(|| WritableDirectories::of(writable)).transpose()?,
            passed: Vec::new(),
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

    /// Walks to the end. What there is none of is looked at as far as there is something.
    pub(super) fn open_end(&mut self) -> Result<OwnedFd, UntrustedFileError> {
        let found = self.walk();
        if !found.as_ref().is_err_and(UntrustedFileError::is_of_sandbox)
            && let Some(reach) = &self.reach
        {
            // At the end: by now no sandbox comes to it but by what it has open.
            let locations: Vec<_> = self.passed.iter().filter_map(|passed| passed.location.clone()).collect();
            holders::check(self.path, &self.passed, reach.in_file_systems(&locations))?;
        }
        found
    }

    fn walk(&mut self) -> Result<OwnedFd, UntrustedFileError> {
        while let Some(name) = self.left.pop_front() {
            if name == ".." {
                if self.directories.len() > 1 {
                    self.directories.pop();
                }
                continue;
            }
            let found = self.step(&name);
            self.looked_up = Some(name);
            if let Some(found) = found? {
                return Ok(found);
            }
        }
        self.check_last_directory()?;
        Err(look(self.path)(Errno::ISDIR))
    }

    /// The deepest directory that there is on the way.
    pub(super) fn end_of_way(&self, used: UseKind) -> Result<Option<InUseEntry>, UntrustedFileError> {
        let Some((directory, at)) = self.directories.last() else { return Ok(None) };
        let stat = fstat(directory).map_err(look(at))?;
        Ok(Some(InUseEntry::of(used, &stat, self.path.to_owned())))
    }

    /// The way from there to what is missing.
    pub(super) fn missing(&self) -> PathBuf {
        self.looked_up.iter().chain(&self.left).collect()
    }

    /// Returns true if the last name that was looked up is the end of the path.
    pub(super) fn is_at_last_name(&self) -> bool {
        self.looked_up.is_some() && self.left.is_empty()
    }

    /// Makes the file that is missing at the end of the path.
    pub(super) fn create_last(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (Some((directory, _)), Some(name)) = (self.directories.last(), &self.looked_up) else {
            return Err(Errno::NOENT);
        };
        openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
    }

    /// Walks to one name. Returns it if it is the end.
    fn step(&mut self, name: &OsStr) -> Result<Option<OwnedFd>, UntrustedFileError> {
        self.check_directory(true)?;
        let (directory, at) = self.directories.last().ok_or_else(|| look(self.path)(Errno::NOENT))?;
        let at = at.join(name);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(directory, name, flags, Mode::empty()).map_err(look(&at))?;
        let stat = fstat(&found).map_err(look(&at))?;
        let entry = || InUseEntry::of(UseKind::Obeyed, &stat, at.clone());
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink if is_magic(&found) => return self.passed(name, &at).map(Some),
            FileType::Symlink => {
                self.check_owner(&stat, &at)?;
                self.obeyed.push(entry());
                self.follow(&found, &at)?;
            }
            FileType::Directory => self.directories.push((found, at)),
            _ if !self.left.is_empty() => return Err(look(&at)(Errno::NOTDIR)),
            // No other user provides the content of `/dev/null` or a terminal.
            FileType::CharacterDevice => return Ok(Some(found)),
            FileType::RegularFile => {
                self.check_file(&stat, &at, &found)?;
                self.obeyed.push(entry());
                return Ok(Some(found));
            }
            kind if self.any_kind => {
                self.check_sandboxes(&found, &stat, &at)?;
                self.check_owner(&stat, &at)?;
                // A client that may connect to a socket doesn't serve it.
                if kind != FileType::Socket {
                    self.check_mode(&stat, &at, &found)?;
                }
                return Ok(Some(found));
            }
            // Opening a pipe waits for its writer.
            _ => return Err(UntrustedFileError::Kind { path: self.path.to_owned() }),
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

    /// Opens a file that the caller has passed by a descriptor (`/dev/fd/63` of a shell). A pipe has no other reader; a
    /// file has a path of its own.
    fn passed(&mut self, name: &OsStr, at: &Path) -> Result<OwnedFd, UntrustedFileError> {
        let (directory, _) = self.directories.last().ok_or_else(|| look(at)(Errno::NOENT))?;
        if !self.left.is_empty() {
            return Err(look(at)(Errno::NOTDIR));
        }
        let found =
            openat(directory, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(look(at))?;
        let stat = fstat(&found).map_err(look(at))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            self.check_file(&stat, at, &found)?;
            let named = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd()));
            // A file without a name can be written by those alone who hold it.
            if let Ok(named) = named
                && stat.st_nlink > 0
            {
                RootWalk::begin(&named, self.writable)?.open_end()?;
            }
        }
        Ok(found)
    }

    /// Looks at the directory that the next name is looked up in. In one with the sticky bit others can put names, and replace only
    /// their own.
    pub(super) fn check_directory(&mut self, sticky_will_do: bool) -> Result<(), UntrustedFileError> {
        self.check_last_directory()?;
        let Some((directory, at)) = self.directories.last() else { return Ok(()) };
        let stat = fstat(directory).map_err(look(at))?;
        self.check_owner(&stat, at)?;
        match sticky_will_do && stat.st_mode & STICKY != 0 {
            true => Ok(()),
            false => self.check_mode(&stat, at, directory),
        }
    }

    fn check_last_directory(&mut self) -> Result<(), UntrustedFileError> {
        let Some((directory, at)) = self.directories.last() else { return Ok(()) };
        let stat = fstat(directory).map_err(look(at))?;
        let passed = self.beside_sandboxes(directory, &stat, at)?;
        self.passed.extend(passed);
        Ok(())
    }

    fn check_sandboxes(&mut self, found: &OwnedFd, stat: &Stat, at: &Path) -> Result<(), UntrustedFileError> {
        let passed = self.beside_sandboxes(found, stat, at)?;
        self.passed.extend(passed);
        Ok(())
    }

    /// Checks that what was found is no directory that a sandbox writes, and lies in none.
    fn beside_sandboxes(
        &self,
        found: &OwnedFd,
        stat: &Stat,
        at: &Path,
    ) -> Result<Option<PathElement>, UntrustedFileError> {
        let Some(reach) = &self.reach else { return Ok(None) };
        reach.check(self.path, found, stat)?;
        let (identity, location) = (FileIdentity::of(stat), reach.location(found));
        Ok(Some(PathElement { identity, location, at: at.to_owned() }))
    }

    fn check_file(&mut self, stat: &Stat, at: &Path, file: &OwnedFd) -> Result<(), UntrustedFileError> {
        self.check_sandboxes(file, stat, at)?;
        self.check_owner(stat, at)?;
        self.check_mode(stat, at, file)?;
        match &self.reach {
            Some(reach) if stat.st_nlink > 1 => reach.check_names(self.path, file, stat),
            _ => Ok(()),
        }
    }

    pub(super) fn check_owner(&self, stat: &Stat, at: &Path) -> Result<(), UntrustedFileError> {
        match self.only_sandboxes || rights::is_ours(stat, at) {
            true => Ok(()),
            false => Err(UntrustedFileError::Owner {
                path: self.path.to_owned(),
                at: at.to_owned(),
                owner: stat.st_uid,
            }),
        }
    }

    fn check_mode(&self, stat: &Stat, at: &Path, opened: &OwnedFd) -> Result<(), UntrustedFileError> {
        let opened = || PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        if self.only_sandboxes || rights::is_closed(stat, opened) {
            return Ok(());
        }
        let (path, mode) = (self.path.to_owned(), stat.st_mode & 0o7777);
        Err(UntrustedFileError::Mode { path, at: at.to_owned(), mode })
    }
}

/// Returns true if a link is one of those in `/proc` that lead directly to an open file and have no path.
fn is_magic(link: &OwnedFd) -> bool {
    const PROC_SUPER_MAGIC: i64 = 0x9fa0;
    let is_of_proc = rustix::fs::fstatfs(link.as_fd()).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC);
    let target = readlinkat(link, c"", Vec::new());
    // `/proc/self` is an ordinary link with an ordinary target.
    is_of_proc
        && target.is_ok_and(|target| target.as_bytes().starts_with(b"/") || target.as_bytes().contains(&b':'))
}
