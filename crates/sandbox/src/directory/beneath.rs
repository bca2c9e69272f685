//! Opens paths that lead nowhere but beneath a directory, and through no link.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::path::{Component, Path};

const NEVER_OUTSIDE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// Opens what is there.
pub(super) fn open(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match openat2(&directory, path, flags, Mode::empty(), NEVER_OUTSIDE) {
        // Under a policy that keeps that call from programs: `openat` never follows more than one name at a time.
        Err(Errno::NOSYS) => open_name_by_name(directory, path, flags),
        opened => opened,
    }
}

fn open_name_by_name(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV),
        }
    }
    let last = names.pop().unwrap_or(OsStr::new("."));
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut opened = openat(directory, ".", way, Mode::empty())?;
    for name in names {
        opened = openat(&opened, name, way, Mode::empty())?;
    }
    let found = openat(&opened, last, flags | OFlags::NOFOLLOW, Mode::empty())?;
    // That way a link itself is found. As the other call has it, only who asks for that gets it.
    let wants_links = flags.contains(OFlags::PATH | OFlags::NOFOLLOW);
    match !wants_links && FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::Symlink {
        true => Err(Errno::LOOP),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use std::os::unix::fs::symlink;

    #[test]
    fn name_by_name_a_path_leads_where_the_kernel_would_let_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/file"), "content").unwrap();
        symlink("a", folder.path().join("way")).unwrap();
        symlink("/etc/passwd", folder.path().join("a/out")).unwrap();
        let directory = Directory::open_host(folder.path()).unwrap();
        let file = OFlags::RDONLY | OFlags::CLOEXEC;
        let look = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let paths = [
            ".",
            "a",
            "a/b",
            "a/b/file",
            "./a/./b",
            "way",
            "way/b",
            "way/b/file",
            "a/out",
            "a/b/file/x",
            "none",
            "..",
            "a/../a",
            "/",
            "/etc",
            "a/..",
        ];
        for path in paths.map(Path::new) {
            for flags in [file, look, look.difference(OFlags::NOFOLLOW), file | OFlags::DIRECTORY] {
                let with_call = openat2(&directory, path, flags, Mode::empty(), NEVER_OUTSIDE);
                let by_name = open_name_by_name(&directory, path, flags);
                let inode = |opened: OwnedFd| fstat(&opened).unwrap().st_ino;
                match (with_call, by_name) {
                    (Ok(one), Ok(other)) => assert_eq!(inode(one), inode(other), "{}", path.display()),
                    // Going up is refused altogether, even where it would lead nowhere else.
                    (_, Err(_)) if path.components().any(|part| part == Component::ParentDir) => {}
                    (one, other) => assert_eq!(one.is_err(), other.is_err(), "{} {flags:?}", path.display()),
                }
            }
        }
    }
}
