//! Applies a change set to the directory that it was made from.
//!
//! Nothing is applied if anything in the directory was touched since the copy was made: whoever did that would lose
//! work. Each file is replaced atomically; a link the job has made is created as a link and never followed.

use super::changes::{ChangeSet, Changed, State};
use crate::directory::{Directory, DirectoryError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, openat, renameat, seek, symlinkat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why a change set was not applied, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Files changed in the meantime. Nothing was applied.
    #[error("changed in the meantime: {}", listed(paths))]
    Conflict {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// A path can't be read or reached.
    #[error("can't apply the changes")]
    Directory(#[from] DirectoryError),
    /// A path can't be written. Those before it were.
    #[error("can't write {}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Applies the change set. `since` is when the copy was made.
///
/// # Errors
/// [`ApplyError`]; see there what was applied.
pub fn apply(
    set: &ChangeSet,
    copy: &Directory,
    target: &Directory,
    since: SystemTime,
) -> Result<(), ApplyError> {
    let paths = conflicts(set, target, since)?;
    if !paths.is_empty() {
        return Err(ApplyError::Conflict { paths });
    }
    // What goes, deepest first, then what comes, parents first: a directory may take a file's place and the reverse.
    let gone: Vec<_> = set.iter().filter(|(_, changed)| makes_way(changed)).collect();
    for (path, changed) in gone.into_iter().rev() {
        remove(target, path, changed.before).map_err(write_error(path))?;
    }
    for (path, changed) in set.iter() {
        if let Some(after) = changed.after {
            put(copy, target, path, changed.before, after).map_err(write_error(path))?;
        }
    }
    Ok(())
}

fn write_error(path: &Path) -> impl FnOnce(std::io::Error) -> ApplyError {
    let path = path.to_owned();
    move |source| ApplyError::Write { path, source }
}

fn conflicts(set: &ChangeSet, target: &Directory, since: SystemTime) -> Result<Vec<PathBuf>, ApplyError> {
    let mut conflicts = Vec::new();
    for (path, changed) in set.iter() {
        let now = target.stat(path)?;
        let touched = match (&now, changed.before) {
            (Some(now), Some(before)) => {
                let is_directory = before.kind == FileType::Directory;
                FileType::from_raw_mode(now.st_mode) != before.kind
                    || (!is_directory && changed_at(now) > since)
            }
            (None, None) => false,
            _ => true,
        };
        if touched {
            conflicts.push(path.to_owned());
        }
    }
    Ok(conflicts)
}

fn changed_at(stat: &rustix::fs::Stat) -> SystemTime {
    UNIX_EPOCH + Duration::new(stat.st_mtime.unsigned_abs(), u32::try_from(stat.st_mtime_nsec).unwrap_or(0))
}

fn makes_way(changed: &Changed) -> bool {
    match (changed.before, changed.after) {
        (Some(_), None) => true,
        (Some(before), Some(after)) => before.kind != after.kind,
        _ => false,
    }
}

fn remove(target: &Directory, path: &Path, before: Option<State>) -> std::io::Result<()> {
    let (parent, name) = target.parent_of(path).map_err(|error| error.source)?;
    let is_directory = before.is_some_and(|before| before.kind == FileType::Directory);
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(unlinkat(&parent, name, flags)?)
}

fn put(
    copy: &Directory,
    target: &Directory,
    path: &Path,
    before: Option<State>,
    after: State,
) -> std::io::Result<()> {
    let (parent, name) = target.parent_of(path).map_err(|error| error.source)?;
    match after.kind {
        FileType::Directory => match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(after.mode)) {
            Err(Errno::EXIST) if before.is_some_and(|before| before.kind == FileType::Directory) => {
                let directory = parent.open(Path::new(name)).map_err(|error| error.source)?;
                Ok(directory.set_mode(after.mode).map_err(|error| error.source)?)
            }
            made => Ok(made?),
        },
        FileType::Symlink => {
            let says = copy.read_link(path).map_err(|error| error.source)?;
            replace(&parent, name, |temporary| Ok(symlinkat(&says, &parent, temporary)?))
        }
        FileType::RegularFile => {
            let mut from = copy.open_own_file(path).map_err(|error| error.source)?;
            replace(&parent, name, |temporary| {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mut to = File::from(openat(&parent, temporary, flags, Mode::from_raw_mode(0o600))?);
                copy_data(&mut from, &mut to)?;
                rustix::fs::fchmod(&to, Mode::from_raw_mode(after.mode))?;
                Ok(())
            })
        }
        // Pipes, sockets and devices are no part of a workspace.
        _ => Ok(()),
    }
}

/// Copies what is really there: a job may leave a file of which a disk's worth is holes.
fn copy_data(from: &mut File, to: &mut File) -> std::io::Result<()> {
    let size = from.metadata()?.len();
    let mut at = 0;
    loop {
        let data = match seek(&*from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing but a hole is left.
            Err(Errno::NXIO) => return to.set_len(size),
            Err(errno) => return Err(errno.into()),
        };
        let hole = seek(&*from, SeekFrom::Hole(data))?;
        seek(&*from, SeekFrom::Start(data))?;
        seek(&*to, SeekFrom::Start(data))?;
        std::io::copy(&mut from.take(hole - data), to)?;
        at = hole;
    }
}

fn replace(
    parent: &Directory,
    name: &OsStr,
    make: impl FnOnce(&str) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let temporary = format!(".belljar-{}", uuid::Uuid::now_v7());
    let made = make(&temporary).and_then(|()| Ok(renameat(parent, &temporary, parent, name)?));
    if made.is_err() {
        let _ = unlinkat(parent, &temporary, AtFlags::empty());
    }
    made
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
