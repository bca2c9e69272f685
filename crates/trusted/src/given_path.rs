//! Paths that a user gives, to lend to a sandbox or to write to. A link that a sandbox can have made doesn't decide where
//! such a path leads.
//!
//! The path is walked by descriptor, one name at a time, and the returned descriptor is that of the walk. A link is refused
//! if another user made it. It is also refused if it lies in a directory that a sandbox writes or has written, or in a Git
//! work tree, whose links come with the clone, and leads out of that directory.

use crate::in_use::{self, FileIdentity};
use crate::rights;
use crate::trusted_file;
use crate::written_directories::WrittenDirectories;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// A resolved path and what it leads to.
#[derive(Debug)]
pub struct CheckedPath {
    /// Path without links.
    pub real: PathBuf,
    /// Descriptor of the target, opened with `O_PATH` when it was found.
    pub opened: OwnedFd,
}

/// Why a path isn't followed.
#[derive(Debug, thiserror::Error)]
pub enum CheckedPathError {
    /// It can't be looked at.
    #[error("can't look at {}", path.display())]
    Look {
        /// Path at which the walk ended.
        path: PathBuf,
        /// Why.
        #[source]
        source: Errno,
    },
    /// A link on the way leads out of a directory in which links can be a sandbox's.
    #[error(
        "{} passes through the symbolic link {} out of {}, {}, so a sandbox may have made the link; if you mean {}, give that path",
        path.display(),
        link.display(),
        tree.display(),
        kind.text(),
        real.display()
    )]
    Planted {
        /// The path, as it was given.
        path: PathBuf,
        /// The link.
        link: PathBuf,
        /// The directory that it leads out of.
        tree: PathBuf,
        /// Kind of the directory tree.
        kind: TreeKind,
        /// Path that the link leads to, resolved.
        real: PathBuf,
    },
    /// Another user made a link on the way.
    #[error(
        "{} passes through the symbolic link {}, which belongs to user {owner}; if you mean {}, give that path",
        path.display(),
        link.display(),
        real.display()
    )]
    Owner {
        /// The path, as it was given.
        path: PathBuf,
        /// The link.
        link: PathBuf,
        /// Owner of the link.
        owner: u32,
        /// Path that the link leads to, resolved.
        real: PathBuf,
    },
}

/// A directory in which links can be a sandbox's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeKind {
    /// A sandbox writes it, or has written it.
    Workspace,
    /// The directory is a work tree of Git.
    WorkTree,
}

/// Maximum number of symbolic links followed on one path, as in the kernel.
const MOST_LINKS: usize = 40;

struct PathWalk<'p> {
    path: &'p Path,
    /// The names that are still to be walked.
    left: VecDeque<OsString>,
    /// The directories that were walked, the root first.
    directories: Vec<WalkedDirectory>,
    links: Vec<FollowedLink>,
}

struct WalkedDirectory {
    opened: OwnedFd,
    identity: FileIdentity,
    at: PathBuf,
}

/// A link that was followed, and the directories that it must not lead out of.
struct FollowedLink {
    at: PathBuf,
    owner: Option<u32>,
    trees: Vec<LinkBoundary>,
}

/// A directory in which links can be a sandbox's.
struct LinkBoundary {
    identity: FileIdentity,
    at: PathBuf,
    kind: TreeKind,
}

/// Walks to the target of the path.
///
/// # Errors
/// [`CheckedPathError`] if there is nothing, or if a link on the way may be a sandbox's.
pub fn resolve(path: &Path) -> Result<CheckedPath, CheckedPathError> {
    let (found, missing) = resolve_as_far(path)?;
    match missing.as_os_str().is_empty() {
        true => Ok(found),
        false => Err(look(path)(Errno::NOENT)),
    }
}

/// Walks as far as there is something. Returns also the names of what is missing.
///
/// # Errors
/// [`CheckedPathError`] if a link on the way may be a sandbox's.
pub fn resolve_as_far(path: &Path) -> Result<(CheckedPath, PathBuf), CheckedPathError> {
    let absolute = std::path::absolute(path)
        .map_err(|error| look(path)(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    let mut walk = PathWalk::begin(&absolute)?;
    let file = walk.walk_on()?;
    let missing: PathBuf = walk.left.iter().collect();
    let last = walk.directories.last().ok_or_else(|| look(path)(Errno::NOENT))?;
    let (opened, at) = match file {
        Some((opened, at)) => (opened, at),
        None => {
            let copy = rustix::io::fcntl_dupfd_cloexec(&last.opened, 0).map_err(look(&last.at))?;
            (copy, last.at.clone())
        }
    };
    let found = CheckedPath { real: at, opened };
    walk.judge(path, &found.beyond(&missing))?;
    Ok((found, missing))
}

/// Returns the directories above a path's target that a sandbox writes or has written.
///
/// # Errors
/// [`CheckedPathError`] if the path can't be walked.
pub fn workspaces_above(path: &Path) -> Result<Vec<PathBuf>, CheckedPathError> {
    let mut walk = PathWalk::begin(path)?;
    walk.walk_on()?;
    let workspaces = walk.trees().into_iter().filter(|tree| tree.kind == TreeKind::Workspace);
    Ok(workspaces.map(|tree| tree.at).collect())
}

// === impl CheckedPath ===

impl CheckedPath {
    /// The path of what is missing below it, or its own.
    pub fn beyond(&self, missing: &Path) -> PathBuf {
        match missing.as_os_str().is_empty() {
            true => self.real.clone(),
            false => self.real.join(missing),
        }
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// The kernel's, when it can't be looked at.
    pub fn kind(&self) -> Result<FileType, Errno> {
        fstat(&self.opened).map(|stat| FileType::from_raw_mode(stat.st_mode))
    }
}

// === impl PathWalk ===

impl<'p> PathWalk<'p> {
    fn begin(path: &'p Path) -> Result<Self, CheckedPathError> {
        let mut walk = Self { path, left: VecDeque::new(), directories: Vec::new(), links: Vec::new() };
        walk.start_over()?;
        walk.prepend(path);
        Ok(walk)
    }

    fn start_over(&mut self) -> Result<(), CheckedPathError> {
        let at = Path::new("/");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, at, flags, Mode::empty()).map_err(look(at))?;
        self.directories.clear();
        self.enter(opened, at.to_owned())
    }

    fn enter(&mut self, opened: OwnedFd, at: PathBuf) -> Result<(), CheckedPathError> {
        let identity = FileIdentity::of(&fstat(&opened).map_err(look(&at))?);
        self.directories.push(WalkedDirectory { opened, identity, at });
        Ok(())
    }

    fn prepend(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.left.push_front(name.to_owned()),
                Component::ParentDir => self.left.push_front(OsString::from("..")),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    /// Walks until everything is walked, or something is missing: its name is then the first that is left. Returns what is no
    /// directory.
    fn walk_on(&mut self) -> Result<Option<(OwnedFd, PathBuf)>, CheckedPathError> {
        while let Some(name) = self.left.pop_front() {
            if name == ".." {
                if self.directories.len() > 1 {
                    self.directories.pop();
                }
                continue;
            }
            let above = self.directories.last().ok_or_else(|| look(self.path)(Errno::NOENT))?;
            let at = above.at.join(&name);
            // As a directory first: one that is mounted when it is used is mounted then.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = match openat(&above.opened, &name, flags | OFlags::DIRECTORY, Mode::empty()) {
                Err(Errno::NOTDIR) => openat(&above.opened, &name, flags, Mode::empty()),
                opened => opened,
            };
            let opened = match opened {
                Err(Errno::NOENT) if !self.left.iter().any(|name| name == "..") => {
                    self.left.push_front(name);
                    return Ok(None);
                }
                opened => opened.map_err(look(&at))?,
            };
            let stat = fstat(&opened).map_err(look(&at))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.enter(opened, at)?,
                FileType::Symlink => self.follow(&opened, &stat, at)?,
                _ if !self.left.is_empty() => return Err(look(&at)(Errno::NOTDIR)),
                _ => return Ok(Some((opened, at))),
            }
        }
        Ok(None)
    }

    fn follow(&mut self, link: &OwnedFd, stat: &Stat, at: PathBuf) -> Result<(), CheckedPathError> {
        if self.links.len() == MOST_LINKS {
            return Err(look(self.path)(Errno::LOOP));
        }
        let target = readlinkat(link, c"", Vec::new()).map_err(look(&at))?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        let owner = (!rights::is_ours(stat, &at)).then_some(stat.st_uid);
        // Links made by root are not those of an ordinary user's sandbox.
        let is_of_root = stat.st_uid == 0 && !rustix::process::geteuid().is_root();
        let trees = if is_of_root { Vec::new() } else { self.trees() };
        self.links.push(FollowedLink { at, owner, trees });
        if target.is_absolute() {
            self.start_over()?;
        }
        self.prepend(&target);
        Ok(())
    }

    /// Returns the directories on the way so far in which links can be a sandbox's.
    fn trees(&self) -> Vec<LinkBoundary> {
        let (writable, written) = (in_use::writable(), WrittenDirectories::now());
        let kind = |step: &WalkedDirectory| {
            let is_lent = writable.iter().any(|entry| entry.identity == step.identity);
            if is_lent || written.holds(&step.opened) {
                return Some(TreeKind::Workspace);
            }
            let git = statat(&step.opened, ".git", AtFlags::SYMLINK_NOFOLLOW);
            git.is_ok().then_some(TreeKind::WorkTree)
        };
        let bound = |step: &WalkedDirectory, kind| LinkBoundary {
            identity: step.identity,
            at: step.at.clone(),
            kind,
        };
        let found = |step: &WalkedDirectory| kind(step).map(|kind| bound(step, kind));
        let mut trees: Vec<_> = self.directories.iter().filter_map(found).collect();
        // A part of a workspace may be mounted elsewhere. What is found out of one is in none.
        let is_known = trees.iter().any(|tree| tree.kind == TreeKind::Workspace);
        if let Some(above) = self.directories.last()
            && !is_known
            && !writable.is_empty()
            && trusted_file::look_at(&above.at).is_err_and(|error| error.is_of_sandbox())
        {
            trees.push(bound(above, TreeKind::Workspace));
        }
        trees
    }

    /// Returns an error if a link has led out of where it must not.
    fn judge(&self, path: &Path, real: &Path) -> Result<(), CheckedPathError> {
        for link in &self.links {
            let is_left =
                |tree: &&LinkBoundary| !self.directories.iter().any(|step| step.identity == tree.identity);
            let (path, real, at) = (path.to_owned(), real.to_owned(), link.at.clone());
            if let Some(owner) = link.owner {
                return Err(CheckedPathError::Owner { path, link: at, owner, real });
            }
            if let Some(LinkBoundary { at: tree, kind, .. }) = link.trees.iter().find(is_left) {
                return Err(CheckedPathError::Planted {
                    path,
                    link: at,
                    tree: tree.clone(),
                    kind: *kind,
                    real,
                });
            }
        }
        Ok(())
    }
}

// === impl TreeKind ===

impl TreeKind {
    fn text(self) -> &'static str {
        match self {
            Self::Workspace => "which a sandbox writes or has written",
            Self::WorkTree => "a Git work tree",
        }
    }
}

fn look(path: &Path) -> impl FnOnce(Errno) -> CheckedPathError {
    move |source| CheckedPathError::Look { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
