//! A real copy of a workspace. Where the file system can, blocks are shared until one side changes them.
//!
//! Directories, files and links are copied. Sockets, pipes and devices are not: nothing is behind a copy of them.

use super::file_owner::{self, FileOwner};
use super::imprint::Imprint;
use super::transfer::copy_data;
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, fchown, openat, statat, symlinkat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of names in one directory of a workspace.
const MOST_NAMES: usize = 1_000_000;
/// The permissions that are copied: never the set-id bits.
const PERMISSIONS: u32 = 0o777;

/// Something that can't be copied.
#[derive(Debug, thiserror::Error)]
#[error("can't copy {}", path.display())]
pub(crate) struct CopyError {
    /// Path in the workspace.
    pub(crate) path: PathBuf,
    /// Why.
    #[source]
    pub(crate) source: io::Error,
}

/// Copies everything in a directory to an empty one, and returns what was made. It belongs to `owner`, if the process is
/// root, which alone can set that.
pub(crate) fn tree(from: &Directory, to: &Directory, owner: Identity) -> Result<Imprint, CopyError> {
    // Directories get their permissions last: one that may not be written couldn't be filled.
    let mut pending = vec![PathBuf::from(".")];
    let mut finished: Vec<PathBuf> = Vec::new();
    let mut imprint = Imprint::default();
    let maker = FileOwner::of_root(owner.host_uid, owner.host_gid);
    while let Some(path) = pending.pop() {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| CopyError { path, source }
        };
        let source = from.open(&path).map_err(|error| failed(&path)(error.into()))?;
        let copy = to.open(&path).map_err(|error| failed(&path)(error.into()))?;
        for name in source.names(MOST_NAMES).map_err(|error| failed(&path)(error.into()))? {
            let child = Path::new(OsStr::from_bytes(name.name.as_bytes()));
            // Before it is read: a program that changes it meanwhile has made it another file.
            let Ok(was) = statat(&source, child, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if !one((&source, &copy), child, name.kind, maker).map_err(failed(&path.join(child)))? {
                continue;
            }
            if name.kind == FileType::Directory {
                pending.push(path.join(child));
            } else {
                let stat = statat(&copy, child, AtFlags::SYMLINK_NOFOLLOW);
                let stat = stat.map_err(|errno| failed(&path.join(child))(errno.into()))?;
                imprint.note(&path.join(child), &stat, &was);
            }
        }
        finished.push(path);
    }
    for path in finished.iter().rev() {
        let mut stamped = || -> Result<(), DirectoryError> {
            let (source, copy) = (from.open(path)?, to.open(path)?);
            stamp_directory(&source, &copy, path)?;
            imprint.note(path, &copy.stat_itself()?, &source.stat_itself()?);
            Ok(())
        };
        stamped().map_err(|error| CopyError { path: path.clone(), source: error.into() })?;
    }
    Ok(imprint)
}

/// Copies one thing; of a directory, the content is yet to come. False if nothing was made.
fn one(
    (from, to): (&Directory, &Directory),
    name: &Path,
    kind: FileType,
    owner: Option<FileOwner>,
) -> io::Result<bool> {
    let made = match kind {
        FileType::Directory => file_owner::make_as(owner, || Ok(to.make(name, 0o700).map(drop)?)),
        FileType::Symlink => link(from, to, name, owner),
        FileType::RegularFile => file(from, to, name, owner),
        _ => return Ok(false),
    };
    match made {
        // Gone meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        made => made.map(|()| true),
    }
}

/// Makes a directory itself the owner's, as what is copied into it is.
pub(super) fn give_itself(directory: &Directory, owner: Identity) -> Result<(), Errno> {
    if !geteuid().is_root() {
        return Ok(());
    }
    fchown(directory, Some(Uid::from_raw(owner.host_uid)), Some(Gid::from_raw(owner.host_gid)))
}

fn link(from: &Directory, to: &Directory, name: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    let says = from.read_link(name)?;
    file_owner::make_as(owner, || Ok(symlinkat(&says, to, name)?))
}

fn file(from: &Directory, to: &Directory, name: &Path, owner: Option<FileOwner>) -> io::Result<()> {
    let mut source = from.open_file(name)?;
    let stat = rustix::fs::fstat(&source)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy = File::from(openat(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    if rustix::fs::ioctl_ficlone(&copy, &source).is_err() {
        copy_data(&mut source, &mut copy, u64::MAX)?;
    }
    rustix::fs::fchmod(&copy, Mode::from_raw_mode(stat.st_mode & PERMISSIONS))?;
    rustix::fs::futimens(&copy, &times(&stat))?;
    Ok(file_owner::give(&copy, owner)?)
}

fn stamp_directory(from: &Directory, to: &Directory, path: &Path) -> Result<(), DirectoryError> {
    let failed = |source: Errno| DirectoryError { path: path.to_owned(), source };
    let stat = rustix::fs::fstat(from).map_err(failed)?;
    to.set_mode(stat.st_mode & PERMISSIONS)?;
    rustix::fs::utimensat(to, ".", &times(&stat), AtFlags::empty()).map_err(failed)
}

fn times(stat: &rustix::fs::Stat) -> Timestamps {
    let time =
        |tv_sec, tv_nsec: u64| Timespec { tv_sec, tv_nsec: i64::try_from(tv_nsec).unwrap_or_default() };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::changes::{ChangeSet, PathChange};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn own() -> Identity {
        let (uid, gid) = (geteuid().as_raw(), rustix::process::getegid().as_raw());
        Identity { inside_uid: uid, inside_gid: gid, host_uid: uid, host_gid: gid }
    }

    #[test]
    fn a_copy_has_the_same_content_permissions_and_times_and_follows_no_link() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("closed/deep")).unwrap();
        fs::write(from.path().join("closed/deep/run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.path().join("closed/deep/run"), PermissionsExt::from_mode(0o4755)).unwrap();
        fs::set_permissions(from.path().join("closed"), PermissionsExt::from_mode(0o555)).unwrap();
        symlink("/etc/passwd", from.path().join("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, from.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        let open = |directory: &tempfile::TempDir| Directory::open_host(directory.path()).unwrap();
        let imprint = tree(&open(&from), &open(&to), own()).unwrap();
        let run = to.path().join("closed/deep/run");
        assert_eq!(fs::read_to_string(&run).unwrap(), "#!/bin/sh\n");
        assert_eq!(run.metadata().unwrap().mode() & 0o7777, 0o755);
        assert_eq!(
            run.metadata().unwrap().mtime_nsec(),
            from.path().join("closed/deep/run").metadata().unwrap().mtime_nsec()
        );
        assert_eq!(to.path().join("closed").metadata().unwrap().mode() & 0o777, 0o555);
        assert_eq!(fs::read_link(to.path().join("link")).unwrap(), Path::new("/etc/passwd"));
        assert!(!to.path().join("pipe").exists());
        // And nothing has changed, until something does.
        let changes = || {
            let set = ChangeSet::read_copy(&open(&from), &open(&to), &imprint).unwrap();
            let line =
                |(path, changed): (&Path, &PathChange)| format!("{:?} {}", changed.change(), path.display());
            set.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(changes(), Vec::<String>::new());
        // Reading has opened it up.
        fs::set_permissions(to.path().join("closed"), PermissionsExt::from_mode(0o555)).unwrap();
        fs::write(&run, "#!/bin/SH\n").unwrap();
        fs::write(to.path().join("new"), "").unwrap();
        fs::remove_file(to.path().join("link")).unwrap();
        assert_eq!(changes(), ["Modified closed/deep/run", "Deleted link", "Created new"]);
        for directory in [from, to] {
            fs::set_permissions(directory.path().join("closed"), PermissionsExt::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn what_becomes_of_the_source_meanwhile_is_nothing_that_was_done_to_the_copy() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["kept", "removed", "written", "both", "thrown_away/a"] {
            let path = from.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "one\n").unwrap();
        }
        let open = |directory: &tempfile::TempDir| Directory::open_host(directory.path()).unwrap();
        let imprint = tree(&open(&from), &open(&to), own()).unwrap();
        // Changes that another program makes to the source.
        fs::write(from.path().join("written"), "three\n").unwrap();
        fs::remove_file(from.path().join("removed")).unwrap();
        fs::create_dir(from.path().join("came")).unwrap();
        fs::write(from.path().join("came/file"), "theirs").unwrap();
        fs::write(from.path().join("thrown_away/theirs"), "theirs").unwrap();
        fs::write(from.path().join("both"), "theirs").unwrap();
        let set = ChangeSet::read_copy(&open(&from), &open(&to), &imprint).unwrap();
        assert!(set.is_empty(), "{set:?}");
        // And what is done to the copy.
        fs::write(to.path().join("both"), "ours").unwrap();
        fs::write(to.path().join("new"), "ours").unwrap();
        fs::remove_dir_all(to.path().join("thrown_away")).unwrap();
        fs::set_permissions(to.path().join("kept"), PermissionsExt::from_mode(0o755)).unwrap();
        let set = ChangeSet::read_copy(&open(&from), &open(&to), &imprint).unwrap();
        let told: Vec<String> = set.iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(told, ["both", "kept", "new", "thrown_away", "thrown_away/a", "thrown_away/theirs"]);
    }

    #[test]
    fn a_copy_is_its_owners_if_root_makes_it_and_else_whose_it_can_be() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(from.path().join("folder")).unwrap();
        fs::write(from.path().join("folder/file"), "").unwrap();
        symlink("/etc/passwd", from.path().join("link")).unwrap();
        let open = |directory: &tempfile::TempDir| Directory::open_host(directory.path()).unwrap();
        let owner = Identity { host_uid: 4711, host_gid: 4712, ..own() };
        tree(&open(&from), &open(&to), owner).unwrap();
        let expected = if geteuid().is_root() { owner } else { own() };
        for name in ["folder", "folder/file", "link"] {
            let found = fs::symlink_metadata(to.path().join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (expected.host_uid, expected.host_gid), "{name}");
        }
        assert_eq!(fs::metadata("/etc/passwd").unwrap().uid(), 0);
    }

    #[test]
    fn holes_stay_holes() {
        let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // As a job may have left it: next to nothing, and larger than any disk.
        let file = File::create(source.path().join("file")).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, b"x", 1 << 33).unwrap();
        let open = |path: &Path| Directory::open_host(path).unwrap();
        tree(&open(source.path()), &open(target.path()), own()).unwrap();
        let copied = fs::metadata(target.path().join("file")).unwrap();
        assert_eq!(copied.len(), (1 << 33) + 1);
        assert!(copied.blocks() < 2048, "{}", copied.blocks());
    }
}
