//! Follows links of a tree on the host, outside of the tree: name by name and without opening anything, until they come back.

use belljar_files::directory::Directory;
use belljar_policy::handoff::{ExitTarget, Names, OutsideResolver, TreeExit, prepend};
use belljar_trusted::in_use::FileIdentity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The host around a tree. The tree's directories are known by what they are: a path may come to them by a bind mount, or through a
/// link above the tree.
#[derive(Debug)]
pub(super) struct HostResolver<'a> {
    tree: &'a Directory,
    directories: &'a BTreeMap<FileIdentity, PathBuf>,
}

/// Why a path ends outside.
enum ResolutionEnd {
    Nowhere,
    Unknown,
}

// === impl HostResolver ===

impl<'a> HostResolver<'a> {
    pub(super) fn new(tree: &'a Directory, directories: &'a BTreeMap<FileIdentity, PathBuf>) -> Self {
        Self { tree, directories }
    }

    fn walk(
        &self,
        exit: TreeExit,
        names: &mut Names,
        links_left: &mut u32,
    ) -> Result<ExitTarget, ResolutionEnd> {
        let mut at = match exit {
            TreeExit::Above => place(self.tree, "..")?,
            TreeExit::Root => place(CWD, "/")?,
        };
        loop {
            if let Some(path) = self.directories.get(&FileIdentity::of(&fstat(&at)?)) {
                return Ok(ExitTarget::Within(path.as_os_str().as_bytes().to_owned()));
            }
            let Some(name) = names.pop_front() else { return Ok(ExitTarget::Outside) };
            let found = place(&at, OsStr::from_bytes(&name))?;
            match FileType::from_raw_mode(fstat(&found)?.st_mode) {
                FileType::Directory => at = found,
                FileType::Symlink => {
                    // Those of `/proc` lead elsewhere for each process, and not where they say.
                    if fstatfs(&found)?.f_type == PROC_SUPER_MAGIC {
                        return Err(ResolutionEnd::Unknown);
                    }
                    *links_left = links_left.checked_sub(1).ok_or(ResolutionEnd::Nowhere)?;
                    let target = readlinkat(&found, "", Vec::new())?;
                    prepend(names, target.to_bytes());
                    if target.to_bytes().starts_with(b"/") {
                        at = place(CWD, "/")?;
                    }
                }
                _ if names.is_empty() => return Ok(ExitTarget::Outside),
                _ => return Ok(ExitTarget::Nowhere),
            }
        }
    }
}

impl OutsideResolver for HostResolver<'_> {
    fn follow(&mut self, exit: TreeExit, names: &mut Names, links_left: &mut u32) -> ExitTarget {
        match self.walk(exit, names, links_left) {
            Ok(landing) => landing,
            Err(ResolutionEnd::Nowhere) => ExitTarget::Nowhere,
            Err(ResolutionEnd::Unknown) => ExitTarget::Unknown,
        }
    }
}

impl From<Errno> for ResolutionEnd {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Self::Nowhere,
            _ => Self::Unknown,
        }
    }
}

fn place(at: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}
