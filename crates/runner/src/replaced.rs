//! Files of the runner's own, beside the job's: there whole or not at all, whatever was in their place.

use rustix::fs::{AtFlags, Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// How much the file is to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Survives {
    /// The end of the runner.
    Runner,
    /// The end of the machine, too.
    Machine,
}

/// The directory that such files are put in.
pub(crate) fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Puts a file there.
pub(crate) fn put(directory: impl AsFd, name: &str, bytes: &[u8], survives: Survives) -> io::Result<()> {
    let directory = directory.as_fd();
    let draft = format!(".belljar-{}", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, &draft, flags, Mode::from_raw_mode(0o644))?;
    let is_lasting = survives == Survives::Machine;
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
