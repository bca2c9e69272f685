//! Changes permissions, owners and times on behalf of programs ([`crate::seccomp::policy::metadata`]): of files in the
//! sandbox's own directories, and of no others.
//!
//! Everything that the caller could change while it waits is read once: the path, the descriptor, the directory that a relative
//! path begins in, the times. What they lead to is opened, then found again from one of the sandbox's directories,
//! beneath it and through no link; what was found there is changed, by descriptor. The supervisor has rights that
//! programs don't have, so it asks itself whether the program's user could have done it: only to files of one's own.

mod request;

use super::OpenedPath;
use crate::kernel::ask;
use crate::walls::{ErrorContext, WallError};
use request::{Change, MetadataRequest};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Answers the questions of one sandbox.
pub(super) struct MetadataService {
    listener: OwnedFd,
    /// The sandbox's directories.
    own: Vec<OwnedFd>,
}

/// Mode bits that may be set on a file: never the set-id bits.
const PERMISSIONS: u32 = 0o1777;

// === impl MetadataService ===

impl MetadataService {
    pub(super) fn new(listener: OwnedFd, own: &[OpenedPath]) -> Result<Self, WallError> {
        let copy = |place: &OpenedPath| rustix::io::fcntl_dupfd_cloexec(place, 3).about("a place");
        Ok(Self { listener, own: own.iter().map(copy).collect::<Result<_, _>>()? })
    }

    /// Descriptor on which questions come in.
    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one question.
    pub(super) fn answer_one(&self) {
        // The caller may be gone already.
        let Ok(question) = ask::take_question(self.listener()) else { return };
        let request = MetadataRequest::take(&question);
        // The data belong to the caller only if it still waits: its thread id may have been reused.
        if ask::is_still_asked(self.listener(), question.id) {
            let answer = request.and_then(|request| self.fulfil(&request));
            ask::answer_question(self.listener(), question.id, answer);
        }
    }

    fn fulfil(&self, MetadataRequest { target, change }: &MetadataRequest) -> Result<(), Errno> {
        let found = self.find_again(target)?;
        let stat = fstat(&found)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Errno::PERM);
        }
        apply(&found, &stat, change)
    }

    /// Opens the target once more, beneath one of the sandbox's directories.
    fn find_again(&self, target: &OwnedFd) -> Result<OwnedFd, Errno> {
        let meant = fstat(target)?;
        let path = place_of(target)?;
        for own in &self.own {
            let Ok(below) = path.strip_prefix(place_of(own)?) else { continue };
            let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let found = match openat2(own, below, flags, Mode::empty(), resolve) {
                // A link at the end is none that is followed.
                Err(Errno::LOOP) => open_link(own, below)?,
                found => found?,
            };
            let stat = fstat(&found)?;
            if (stat.st_dev, stat.st_ino) == (meant.st_dev, meant.st_ino) {
                return Ok(found);
            }
        }
        Err(Errno::ACCESS)
    }
}

/// The link itself, in a directory that no link leads to.
fn open_link(own: &OwnedFd, below: &Path) -> Result<OwnedFd, Errno> {
    let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else { return Err(Errno::LOOP) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat2(own, parent, flags, Mode::empty(), resolve)?;
    rustix::fs::openat(&parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Returns the path that the kernel reports for an open file; only ever a hint.
fn place_of(opened: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = rustix::fs::readlinkat(CWD, by_descriptor(opened), Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(link.as_bytes())))
}

fn by_descriptor(opened: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", opened.as_raw_fd())
}

/// Changes a file of the user's own, as far as a process without capabilities could.
fn apply(found: &OwnedFd, stat: &Stat, change: &Change) -> Result<(), Errno> {
    match change {
        Change::Mode(_) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            Err(Errno::OPNOTSUPP)
        }
        Change::Mode(mode) => {
            let mode = Mode::from_raw_mode(mode & PERMISSIONS);
            rustix::fs::chmodat(CWD, by_descriptor(found), mode, AtFlags::empty())
        }
        Change::Owner { uid, gid } => {
            let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            let keeps =
                |wanted: u32, own: u32, now: u32| wanted == u32::MAX || wanted == own || wanted == now;
            if !keeps(*uid, own.0, stat.st_uid) || !keeps(*gid, own.1, stat.st_gid) {
                return Err(Errno::PERM);
            }
            let set = |id: u32| (id != u32::MAX).then_some(id);
            let (uid, gid) = (set(*uid).map(Uid::from_raw), set(*gid).map(Gid::from_raw));
            rustix::fs::chownat(found, c"", uid, gid, AtFlags::EMPTY_PATH)
        }
        Change::Times(times) => rustix::fs::utimensat(found, c"", times, AtFlags::EMPTY_PATH),
    }
}
