//! Copies a directory of the host, so that a container may work on the copy.
//!
//! Files, directories and links; no link is followed, and what else lies there is left out. Where the file system can,
//! a copied file shares what it holds with the original until one of them is changed.

use crate::directory::{Directory, DirectoryError, Name};
use crate::workspace::transfer::copy_data;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, openat, symlinkat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// As many names are copied from one directory.
const MOST_NAMES: usize = 1_000_000;

/// Fills `target` with what is in `source`. What is made belongs to the user, if only root may say so.
pub(super) fn fill(source: &Directory, target: &Directory, user: (u32, u32)) -> Result<(), DirectoryError> {
    let mut pending = vec![PathBuf::from(".")];
    let mut closed = Vec::new();
    while let Some(path) = pending.pop() {
        let (from, to) = (source.open(&path)?, target.open(&path)?);
        for Name { name, kind } in from.names(MOST_NAMES)? {
            let child = path.join(OsStr::from_bytes(name.as_bytes()));
            let made = put(&from, &to, Path::new(OsStr::from_bytes(name.as_bytes())), kind, user);
            if let Some(mode) = made.map_err(|source| DirectoryError { path: child.clone(), source })? {
                if mode & 0o700 != 0o700 {
                    closed.push((child.clone(), mode));
                }
                pending.push(child);
            }
        }
    }
    // Only when they are full, and the innermost first.
    for (path, mode) in closed.iter().rev() {
        target.open(path)?.set_mode(*mode)?;
    }
    Ok(())
}

/// Copies one thing. The permission bits of a directory, whose turn comes later.
fn put(
    from: &Directory,
    to: &Directory,
    name: &Path,
    kind: FileType,
    user: (u32, u32),
) -> Result<Option<u32>, Errno> {
    let at = |error: DirectoryError| error.source;
    // Gone meanwhile.
    let Some(stat) = from.stat(name).map_err(at)? else { return Ok(None) };
    match kind {
        FileType::Directory => {
            to.make(name, stat.st_mode & 0o777 | 0o700).map_err(at)?;
        }
        FileType::Symlink => symlinkat(from.read_link(name).map_err(at)?, to, name)?,
        FileType::RegularFile => put_file(from.open_file(name).map_err(at)?, to, name, &stat)?,
        _ => return Ok(None),
    }
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(user.0), Gid::from_raw(user.1));
        rustix::fs::chownat(to, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok((kind == FileType::Directory).then_some(stat.st_mode & 0o777))
}

fn put_file(mut from: File, to: &Directory, name: &Path, stat: &Stat) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut made = File::from(openat(to, name, flags, Mode::from_raw_mode(stat.st_mode & 0o777))?);
    if rustix::fs::ioctl_ficlone(&made, &from).is_err() {
        copy_data(&mut from, &mut made, u64::MAX)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    }
    // Build tools go by it.
    let time = |tv_sec: i64, tv_nsec: i64| Timespec { tv_sec, tv_nsec };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec as i64),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec as i64),
    };
    rustix::fs::futimens(&made, &times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::changes::{ChangeSet, Changed};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    #[test]
    fn a_copy_is_what_the_original_is_and_leads_nowhere() {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(source.path().join("a/b")).unwrap();
        fs::create_dir(source.path().join("closed")).unwrap();
        fs::write(source.path().join("closed/file"), "").unwrap();
        fs::set_permissions(source.path().join("closed"), PermissionsExt::from_mode(0o550)).unwrap();
        fs::write(source.path().join("a/b/file"), "content").unwrap();
        fs::set_permissions(source.path().join("a/b/file"), PermissionsExt::from_mode(0o4750)).unwrap();
        symlink("/etc", source.path().join("a/link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, source.path().join("pipe"), Mode::RUSR).unwrap();
        let open = |path: &Path| Directory::open_host(path).unwrap();
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        fill(&open(source.path()), &open(target.path()), own).unwrap();
        assert_eq!(fs::read_to_string(target.path().join("a/b/file")).unwrap(), "content");
        let stat = |root: &Path| fs::metadata(root.join("a/b/file")).unwrap();
        assert_eq!(stat(target.path()).mode() & 0o7777, 0o750);
        assert_eq!(stat(target.path()).mtime_nsec(), stat(source.path()).mtime_nsec());
        assert_eq!(fs::read_link(target.path().join("a/link")).unwrap(), Path::new("/etc"));
        assert!(!target.path().join("pipe").exists());
        assert_eq!(fs::metadata(target.path().join("closed")).unwrap().mode() & 0o777, 0o550);
        // And nothing has changed, until something does.
        let changes = || {
            let set = ChangeSet::read_copy(&open(source.path()), &open(target.path())).unwrap();
            let line =
                |(path, changed): (&Path, &Changed)| format!("{:?} {}", changed.change(), path.display());
            set.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(changes(), Vec::<String>::new());
        // Reading has opened it up.
        fs::set_permissions(target.path().join("closed"), PermissionsExt::from_mode(0o550)).unwrap();
        fs::write(target.path().join("a/b/file"), "CONTENT").unwrap();
        fs::write(target.path().join("a/new"), "").unwrap();
        fs::remove_file(target.path().join("a/link")).unwrap();
        assert_eq!(changes(), ["Modified a/b/file", "Deleted a/link", "Created a/new"]);
    }
    #[test]
    fn holes_stay_holes() {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // As a job may have left it: next to nothing, and larger than any disk.
        let file = File::create(source.path().join("file")).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, b"x", 1 << 33).unwrap();
        let open = |path: &Path| Directory::open_host(path).unwrap();
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        fill(&open(source.path()), &open(target.path()), own).unwrap();
        let copied = fs::metadata(target.path().join("file")).unwrap();
        assert_eq!(copied.len(), (1 << 33) + 1);
        assert!(copied.blocks() < 2048, "{}", copied.blocks());
    }
}
