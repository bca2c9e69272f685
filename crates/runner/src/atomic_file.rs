//! Atomically replaced files of the runner's own, beside the job's, whatever was in their place.

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// Durability of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The file survives the end of the runner.
    Runner,
    /// The file survives a crash of the machine, too.
    Machine,
}

/// Opens the directory for such files. If a step has removed the owner's permissions, they are restored.
pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let open = || rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    match open() {
        Err(Errno::ACCESS) => {
            let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let place = rustix::fs::open(path, place, Mode::empty())?;
            let itself = format!("/proc/self/fd/{}", place.as_raw_fd());
            rustix::fs::chmod(itself, with_owner(rustix::fs::fstat(&place)?.st_mode))?;
            Ok(open()?)
        }
        opened => Ok(opened?),
    }
}

/// Restores the owner's permissions of a directory that a step may have removed.
pub(crate) fn open_up(directory: impl AsFd) -> Result<(), Errno> {
    let mode = rustix::fs::fstat(&directory)?.st_mode;
    match mode & 0o700 {
        0o700 => Ok(()),
        _ => rustix::fs::fchmod(directory, with_owner(mode)),
    }
}

fn with_owner(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o1777 | 0o700)
}

/// Writes the file.
pub(crate) fn put(directory: impl AsFd, name: &str, bytes: &[u8], survives: Durability) -> io::Result<()> {
    let directory = directory.as_fd();
    open_up(directory)?;
    let draft = format!(".belljar-{}", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, &draft, flags, Mode::from_raw_mode(0o644))?;
    let is_lasting = survives == Durability::Machine;
    let put = write(file.into(), bytes, is_lasting).and_then(|()| {
        rustix::fs::renameat(directory, &draft, directory, name)?;
        if is_lasting { Ok(rustix::fs::fsync(directory)?) } else { Ok(()) }
    });
    if put.is_err() {
        let _ = rustix::fs::unlinkat(directory, &draft, AtFlags::empty());
    }
    put
}

fn write(mut file: File, bytes: &[u8], is_lasting: bool) -> io::Result<()> {
    file.write_all(bytes)?;
    if is_lasting { file.sync_all() } else { Ok(()) }
}
