//! Transfer of files into a sandbox and out of it as tar archives, through a directory that the sandbox has.
//!
//! A program inside may swap names meanwhile. Every path is resolved by the kernel beneath the root and through no link, so
//! nothing that is swapped leads anywhere else.

use crate::backend::BackendError;
use belljar_confine::as_user::AsUser;
use belljar_confine::plan::Identity;
use belljar_files::directory::Directory;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use tar::{Archive, Builder, EntryType, Header};

/// Maximum number of names that are packed from one directory, and remembered at once.
const MOST_NAMES: usize = 1_000_000;

/// Unpacks an archive below `inside`. What is made belongs to the sandbox's user.
pub(crate) fn unpack(
    root: &Directory,
    inside: &str,
    archive: &mut dyn Read,
    owner: Identity,
) -> Result<(), BackendError> {
    let base = open(root, inside)?;
    // No other user can make anything here: the sandbox's file systems know no other user.
    let _user =
        AsUser::become_user(owner.host_uid, owner.host_gid).map_err(|errno| failed(inside)(errno.into()))?;
    let mut archive = Archive::new(archive);
    for entry in archive.entries().map_err(failed(inside))? {
        let mut entry = entry.map_err(failed(inside))?;
        let path = entry.path().map_err(failed(inside))?.into_owned();
        let shown = path.display().to_string();
        let relative = relative(&path).ok_or_else(|| failed(&shown)(Errno::XDEV.into()))?;
        if !relative.as_os_str().is_empty() {
            put(&base, &relative, &mut entry).map_err(failed(&shown))?;
        }
    }
    Ok(())
}

fn put<R: Read>(base: &Directory, path: &Path, entry: &mut tar::Entry<'_, R>) -> io::Result<()> {
    let (parent, name) = base.parent_of(path)?;
    let mode = Mode::from_raw_mode(entry.header().mode()? & 0o777);
    match entry.header().entry_type() {
        EntryType::Directory => match rustix::fs::mkdirat(&parent, name, mode) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
        EntryType::Symlink => {
            let target = entry.link_name()?.ok_or(Errno::INVAL)?.into_owned();
            remove(&parent, name)?;
            Ok(symlinkat(&target, &parent, name)?)
        }
        EntryType::Regular | EntryType::Continuous => {
            remove(&parent, name)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&parent, name, flags, mode)?);
            io::copy(entry, &mut file).map(drop)
        }
        // Archives carry notes of their own, too; devices and pipes have no place in a sandbox.
        EntryType::XGlobalHeader => Ok(()),
        _ => Err(Errno::OPNOTSUPP.into()),
    }
}

fn remove(parent: &Directory, name: &OsStr) -> io::Result<()> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Packs what is at `inside`, under its last name.
pub(crate) fn pack(root: &Directory, inside: &str, archive: &mut dyn Write) -> Result<(), BackendError> {
    let path = relative(Path::new(inside)).ok_or_else(|| failed(inside)(Errno::XDEV.into()))?;
    let name = PathBuf::from(path.file_name().unwrap_or(OsStr::new(".")));
    pack_as(root, path, name, archive)
}

/// Packs what is at `path` below the directory, under that name.
pub(crate) fn pack_as(
    root: &Directory,
    path: PathBuf,
    name: PathBuf,
    archive: &mut dyn Write,
) -> Result<(), BackendError> {
    pack_at_most(MOST_NAMES, root, (path, name), archive)
}

/// Packs with a limit on the names that are remembered at once, for trees whose path lengths are known.
fn pack_at_most(
    most: usize,
    root: &Directory,
    (path, name): (PathBuf, PathBuf),
    archive: &mut dyn Write,
) -> Result<(), BackendError> {
    let mut builder = Builder::new(archive);
    // A directory's own path is there once, however many names it has.
    let mut pending: Vec<(Rc<(PathBuf, PathBuf)>, PathBuf)> = Vec::new();
    let mut next = Some((path, name));
    while let Some((path, name)) = next {
        let shown = path.display().to_string();
        let below = take(root, &path, &name, &mut builder).map_err(failed(&shown))?;
        if pending.len() + below.len() > most {
            return Err(failed(&shown)(Errno::OVERFLOW.into()));
        }
        let parents = Rc::new((path, name));
        pending.extend(below.into_iter().map(|child| (Rc::clone(&parents), child)));
        next = pending.pop().map(|(parents, child)| (parents.0.join(&child), parents.1.join(&child)));
    }
    builder.finish().map_err(failed("the archive"))
}

/// Packs one entry. Returns the names in it if it is a directory.
fn take(
    root: &Directory,
    path: &Path,
    name: &Path,
    builder: &mut Builder<&mut dyn Write>,
) -> io::Result<Vec<PathBuf>> {
    let found = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let stat = root.stat(found)?.ok_or(Errno::NOENT)?;
    let mut header = Header::new_gnu();
    header.set_mode(stat.st_mode & 0o777);
    header.set_mtime(stat.st_mtime.unsigned_abs());
    header.set_size(0);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => {
            header.set_entry_type(EntryType::Directory);
            builder.append_data(&mut header, name, io::empty())?;
            let names = root.open(found).and_then(|directory| directory.names(MOST_NAMES))?;
            return Ok(names
                .iter()
                .map(|one| PathBuf::from(OsStr::from_bytes(one.name.as_bytes())))
                .collect());
        }
        FileType::Symlink => {
            header.set_entry_type(EntryType::Symlink);
            let target = root.read_link(path)?;
            builder.append_link(&mut header, name, OsStr::from_bytes(target.as_bytes()))?;
        }
        FileType::RegularFile => {
            let file = root.open_file(path)?;
            let size = file.metadata()?.len();
            header.set_entry_type(EntryType::Regular);
            header.set_size(size);
            // One that shrinks meanwhile is filled up: the archive has promised a size.
            builder.append_data(&mut header, name, file.take(size).chain(io::repeat(0)).take(size))?;
        }
        // Nothing that an archive could carry.
        _ => {}
    }
    Ok(Vec::new())
}

/// An archive of these files, by their paths, with the directories that they are in.
///
/// # Errors
/// The archive's, when a path is none.
pub fn of_texts(texts: &BTreeMap<String, String>) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    let header = |kind, mode, size| {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size);
        header
    };
    let above = texts.keys().flat_map(|path| Path::new(path).ancestors().skip(1));
    let directories: BTreeSet<&Path> = above.filter(|path| !path.as_os_str().is_empty()).collect();
    for directory in directories {
        builder.append_data(&mut header(EntryType::Directory, 0o755, 0), directory, io::empty())?;
    }
    for (path, text) in texts {
        let size = text.len() as u64;
        builder.append_data(&mut header(EntryType::Regular, 0o644, size), path, text.as_bytes())?;
    }
    builder.into_inner()
}

fn open(root: &Directory, inside: &str) -> Result<Directory, BackendError> {
    let path = relative(Path::new(inside)).ok_or_else(|| failed(inside)(Errno::XDEV.into()))?;
    let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
    root.open(&path).map_err(|error| failed(inside)(error.into()))
}

/// Returns the path without its root; `None` for one that leads up.
pub(crate) fn relative(path: &Path) -> Option<PathBuf> {
    path.components()
        .filter(|component| !matches!(component, Component::RootDir | Component::CurDir))
        .map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect()
}

pub(crate) fn failed(path: &str) -> impl Fn(io::Error) -> BackendError {
    let path = path.to_owned();
    move |source| BackendError::Copy { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_with_the_directories_that_they_are_in() {
        let texts =
            BTreeMap::from([(".a/b/c".to_owned(), "x".to_owned()), (".a/d".to_owned(), String::new())]);
        let archive = of_texts(&texts).unwrap();
        let mut archive = Archive::new(archive.as_slice());
        let found = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), text)
        });
        let expected = [(".a", 0o755, ""), (".a/b", 0o755, ""), (".a/b/c", 0o644, "x"), (".a/d", 0o644, "")];
        let expected = expected.map(|(path, mode, text)| (path.to_owned(), mode, text.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_more_names_are_remembered_than_may_be() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        for number in 0..6 {
            // Whichever is taken first, others are left.
            std::fs::create_dir_all(place.path().join(format!("a/{number}/x"))).unwrap();
            std::fs::write(deep.join(number.to_string()), "x").unwrap();
        }
        let root = Directory::open_host(place.path()).unwrap();
        let packed = |most| {
            let mut archive = Vec::new();
            pack_at_most(most, &root, ("a".into(), "named".into()), &mut archive).map(|()| archive)
        };
        assert!(matches!(packed(6), Err(BackendError::Copy { .. })));
        let archive = packed(13).unwrap();
        let mut names: Vec<PathBuf> = Archive::new(archive.as_slice())
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().into_owned())
            .collect();
        names.sort();
        assert_eq!(names.len(), 20);
        assert_eq!(names.last().unwrap(), Path::new("named/b/5"));
    }
}
