//! Opens paths that lead nowhere but beneath a directory.
//!
//! The kernel resolves them (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_MAGICLINKS`), so there is no moment between a
//! check and a use in which an attacker could swap a component. Where that call is missing, or a seccomp policy keeps it
//! from programs, paths are walked one component at a time.

mod components;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::path::Path;

/// Treatment of symbolic links in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks {
    /// Follow links that stay beneath the directory. One that leads out, or is absolute, is [`Errno::XDEV`].
    Beneath,
    /// Follow no link: [`Errno::LOOP`].
    Refused,
}

/// Method of resolving paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// The kernel (`openat2`).
    Kernel,
    /// One component at a time (`openat`).
    Components,
}

/// The kernel gives up on a path when something is renamed meanwhile. That doesn't happen many times in a row, unless an
/// attacker causes it.
const ATTEMPTS: usize = 1000;

/// Opens a path beneath a directory, by the kernel where it has the call, and follows no link. With `O_PATH` and
/// `O_NOFOLLOW` a link itself is opened.
///
/// # Errors
/// The kernel's; [`Errno::XDEV`] for a path that leads out, [`Errno::LOOP`] for one through a link.
pub fn open(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match open_in_kernel(&directory, path, flags, Symlinks::Refused) {
        Err(Errno::NOSYS) => components::resolve(directory.as_fd(), path, flags, Symlinks::Refused),
        opened => opened,
    }
}

/// Opens a path beneath a directory as [`open`] does, with a treatment of links and a method.
///
/// # Errors
/// Those of [`open`]; [`Errno::NOSYS`] where the kernel lacks the call.
pub fn open_with(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    symlinks: Symlinks,
    resolver: Resolver,
) -> Result<OwnedFd, Errno> {
    match resolver {
        Resolver::Kernel => open_in_kernel(directory, path, flags, symlinks),
        Resolver::Components => components::resolve(directory.as_fd(), path, flags, symlinks),
    }
}

fn open_in_kernel(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    symlinks: Symlinks,
) -> Result<OwnedFd, Errno> {
    let mut how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    how.set(ResolveFlags::NO_SYMLINKS, symlinks == Symlinks::Refused);
    let mut opened = Err(Errno::AGAIN);
    for _ in 0..ATTEMPTS {
        opened = openat2(&directory, path, flags, Mode::empty(), how);
        if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    opened
}

// === impl Resolver ===

impl Resolver {
    /// Returns the kernel where it has `openat2` for this process: old kernels lack the call, and some seccomp policies
    /// return other errors for it than [`Errno::NOSYS`].
    pub fn detect(directory: impl AsFd) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(directory, ".", flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(_) => Self::Kernel,
            Err(_) => Self::Components,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use rustix::fs::fstat;
    use std::os::unix::fs::symlink;

    #[test]
    fn both_resolvers_open_the_same_file_or_both_refuse() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/file"), "content").unwrap();
        symlink("a", folder.path().join("way")).unwrap();
        symlink("/etc/passwd", folder.path().join("a/out")).unwrap();
        symlink("loop", folder.path().join("loop")).unwrap();
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
            "loop",
            "none",
            "..",
            "a/../a",
            "way/../a",
            "/",
            "/etc",
            "a/..",
            "a/../..",
        ];
        for path in paths.map(Path::new) {
            for flags in [file, look, look.difference(OFlags::NOFOLLOW), file | OFlags::DIRECTORY] {
                for symlinks in [Symlinks::Refused, Symlinks::Beneath] {
                    let open = |resolver| open_with(&directory, path, flags, symlinks, resolver);
                    let inode = |opened: OwnedFd| fstat(&opened).unwrap().st_ino;
                    let [kernel, components] = [Resolver::Kernel, Resolver::Components].map(open);
                    assert_eq!(
                        kernel.map(inode),
                        components.map(inode),
                        "{} {flags:?} {symlinks:?}",
                        path.display()
                    );
                }
            }
        }
    }
}
