//! Control groups (cgroups): resource limits of a sandbox as a whole, and its resource usage.
//!
//! ```text
//! Hierarchies::find ─► make ─► Group ── entrance ──► the launch: PID 1 is born in it (version 2) or moves in (version 1)
//!                                │ ── usage, oom_kills
//!                                └─ remove: nothing of it is left
//! ```
//! The process that made a group holds a lock on it. The kernel releases the lock when that process is gone, so a group
//! that can be locked is a leftover ([`sweep`]).

mod mounts;
mod v1;
mod v2;

use mounts::CgroupMountInfo;

use crate::plan::wire;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open, stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Cgroup hierarchies of this host in which groups can be made.
#[derive(Debug, Clone)]
pub enum CgroupHierarchies {
    /// The single tree of version 2.
    V2(v2::V2Hierarchy),
    /// The trees of version 1, one for each kind of resource.
    V1(v1::V1Hierarchies),
}

/// Resource limits of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Memory in bytes, without any swap beyond.
    pub memory_bytes: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
    /// Thousandths of a processor.
    pub millicpus: Option<u32>,
}

/// A group that one sandbox lives in. Dropping it kills whatever is still in it and removes it.
#[derive(Debug)]
pub struct Cgroup {
    directories: CgroupDirectories,
    /// Locks on each of its directories.
    locks: Vec<OwnedFd>,
    removed: bool,
}

/// Which directories a group has.
#[derive(Debug)]
enum CgroupDirectories {
    V2(v2::V2Directory),
    V1(v1::V1Directories),
}

/// The way in which PID 1 enters its group.
#[derive(Debug, Serialize, Deserialize)]
pub enum CgroupJoin {
    /// PID 1 is born in this directory.
    Born(#[serde(with = "wire::descriptor")] OwnedFd),
    /// PID 1 writes itself into these files, and ends everything when the last file reports that memory ran out.
    Joins {
        /// Files that list a group's threads, open for writing.
        lists: Vec<LaunchDescriptor>,
        /// Readable when the kernel has killed a process of the group for lack of memory (OOM kill).
        out_of_memory: Option<LaunchDescriptor>,
        /// Memory of sockets, where it is counted apart.
        sockets: Option<SocketMemory>,
    },
}

/// Memory that the sockets of a group hold in buffers, which is no part of its memory (version 1).
#[derive(Debug, Serialize, Deserialize)]
pub struct SocketMemory {
    /// A file with the number of bytes.
    pub(crate) usage: LaunchDescriptor,
    /// PID 1 ends the sandbox when there is more.
    pub(crate) most_bytes: u64,
}

/// A descriptor on its way into a launch.
#[derive(Debug, Serialize, Deserialize)]
pub struct LaunchDescriptor(#[serde(with = "wire::descriptor")] pub(crate) OwnedFd);

/// Why there is no group.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// There is no tree in which this process may make one.
    #[error("{why}")]
    Unavailable {
        /// Description of what is missing.
        why: String,
    },
    /// A file or directory of the tree can't be used.
    #[error("can't use {}", path.display())]
    Tree {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Maximum time until a group is empty once everything in it was killed.
const EMPTYING: Duration = Duration::from_secs(2);

pub(crate) fn tree_error(path: &Path, source: impl Into<std::io::Error>) -> CgroupError {
    CgroupError::Tree { path: path.to_owned(), source: source.into() }
}

/// Removes the groups below `parent` whose names begin with `prefix` and whose owner is gone, after killing what is left in
/// them. Returns the number of groups removed. Groups of a live owner stay.
///
/// # Errors
/// [`CgroupError`] for the first that can't be removed.
pub fn sweep(parent: &Path, prefix: &str) -> Result<usize, CgroupError> {
    let Ok(entries) = fs::read_dir(parent) else { return Ok(0) };
    let mut removed = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(prefix));
        if !is_ours {
            continue;
        }
        // The lock is held until the group is gone: a process that is making it at this moment can't get the lock, and
        // makes another.
        let Ok(Some(_lock)) = lock(&entry.path()) else { continue };
        empty(&entry.path())?;
        removed += 1;
    }
    Ok(removed)
}

/// Makes the directory of a group. No other user can open it, and so hold its lock.
fn make_directory(path: &Path) -> Result<(), CgroupError> {
    fs::DirBuilder::new().mode(0o700).create(path).map_err(|error| tree_error(path, error))
}

/// Locks a group's directory. Returns `None` if another process holds the lock.
fn lock(directory: &Path) -> Result<Option<OwnedFd>, Errno> {
    let opened = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // One that was removed meanwhile can be locked, too.
            let (locked, there) = (fstat(&opened)?, stat(directory)?);
            let is_there = (locked.st_dev, locked.st_ino) == (there.st_dev, there.st_ino);
            is_there.then_some(Some(opened)).ok_or(Errno::NOENT)
        }
        Err(Errno::AGAIN) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn is_swept(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::BUSY | Errno::NODEV | Errno::EXIST))
}

/// Removes a directory of a group, killing what is in it. Nothing to do when it is gone already.
fn empty(directory: &Path) -> Result<(), CgroupError> {
    let begun = std::time::Instant::now();
    loop {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if begun.elapsed() > EMPTYING => return Err(tree_error(directory, error)),
            Err(_) => kill_all(directory),
        }
        // A killed process is listed until the kernel has taken it apart.
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn kill_all(directory: &Path) {
    // All at once, where the kernel can (version 2, Linux 5.14).
    if fs::write(directory.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let listed = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    for pid in listed.lines().filter_map(|line| rustix::process::Pid::from_raw(line.parse().ok()?)) {
        // The descriptor holds the process, so the id can't pass to another one; then the process must still be listed.
        let Ok(held) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            continue;
        };
        let still = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        if still.lines().any(|line| line.parse() == Ok(pid.as_raw_nonzero().get())) {
            let _ = rustix::process::pidfd_send_signal(held, rustix::process::Signal::KILL);
        }
    }
}

/// The number in a file of the kernel's.
fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after a key, in a file of lines `key number`.
fn number_after(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

// === impl CgroupJoin ===

impl CgroupJoin {
    /// The directory in which PID 1 is born, if that is how it comes in.
    pub(crate) fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Born(directory) => Some(directory.as_fd()),
            Self::Joins { .. } => None,
        }
    }

    /// Returns the number of trees in which the group has a directory.
    pub(crate) fn trees(&self) -> usize {
        match self {
            Self::Born(_) => 1,
            Self::Joins { lists, .. } => lists.len(),
        }
    }

    /// Readable when memory has run out, where the kernel doesn't end everything by itself.
    pub(crate) fn out_of_memory(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Born(_) => None,
            Self::Joins { out_of_memory, .. } => out_of_memory.as_ref().map(|door| door.0.as_fd()),
        }
    }

    /// Returns the memory of its sockets, where that is counted apart.
    pub(crate) fn socket_memory(&self) -> Option<&SocketMemory> {
        match self {
            Self::Born(_) => None,
            Self::Joins { sockets, .. } => sockets.as_ref(),
        }
    }
}

// === impl CgroupHierarchies ===

impl CgroupHierarchies {
    /// Looks where this process may make groups: version 2 if it limits memory there, version 1 otherwise.
    ///
    /// # Errors
    /// [`CgroupError::Unavailable`] with what is missing.
    pub fn find() -> Result<Self, CgroupError> {
        let place = CgroupMountInfo::look();
        let v2 = match v2::V2Hierarchy::find(&place) {
            Ok(tree) => return Ok(Self::V2(tree)),
            Err(error) => error,
        };
        match v1::V1Hierarchies::find(&place) {
            Ok(trees) => Ok(Self::V1(trees)),
            Err(v1) => Err(CgroupError::Unavailable { why: format!("{v2}; {v1}") }),
        }
    }

    /// Which version it is.
    pub fn version(&self) -> u8 {
        match self {
            Self::V2(_) => 2,
            Self::V1(_) => 1,
        }
    }

    /// Returns the directories in which groups are made.
    pub fn parents(&self) -> Vec<&Path> {
        match self {
            Self::V2(tree) => vec![tree.parent()],
            Self::V1(trees) => trees.parents(),
        }
    }

    /// Makes a group. Its limits hold before any process is in it.
    ///
    /// # Errors
    /// [`CgroupError`]; nothing of it is left then.
    pub fn make(&self, name: &str, limits: &CgroupLimits) -> Result<Cgroup, CgroupError> {
        const ATTEMPTS: usize = 64;
        let mut made = self.try_make(name, limits);
        for attempt in 1..ATTEMPTS {
            match made {
                // A sweep by another process came between making the group and locking it, and took it for a leftover. It
                // removes the group by name, so the next group must have another name.
                Err(CgroupError::Tree { source, .. }) if is_swept(&source) => {
                    made = self.try_make(&format!("{name}-{attempt}"), limits);
                }
                made => return made,
            }
        }
        made
    }

    fn try_make(&self, name: &str, limits: &CgroupLimits) -> Result<Cgroup, CgroupError> {
        let directories = match self {
            Self::V2(tree) => CgroupDirectories::V2(tree.make(name)?),
            Self::V1(trees) => CgroupDirectories::V1(trees.make(name, limits)?),
        };
        let mut group = Cgroup { directories, locks: Vec::new(), removed: false };
        for path in group.paths().map(Path::to_owned).collect::<Vec<_>>() {
            let lock = lock(&path).map_err(|errno| tree_error(&path, errno))?;
            group.locks.push(lock.ok_or_else(|| tree_error(&path, Errno::BUSY))?);
        }
        group.limit(limits)?;
        Ok(group)
    }
}

// === impl Cgroup ===

impl Cgroup {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (v1, v2) = match &self.directories {
            CgroupDirectories::V2(directory) => (None, Some(directory.path())),
            CgroupDirectories::V1(directories) => (Some(directories.paths()), None),
        };
        v1.into_iter().flatten().chain(v2)
    }

    fn limit(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        match &self.directories {
            CgroupDirectories::V2(directory) => directory.limit(limits),
            CgroupDirectories::V1(directories) => directories.limit(limits),
        }
    }

    /// Name of the group, the same in every tree.
    pub fn name(&self) -> Option<&str> {
        self.paths().find_map(Path::file_name)?.to_str()
    }

    /// Returns what a launch needs for PID 1 to be in the group.
    ///
    /// # Errors
    /// [`CgroupError`] when its files can't be opened.
    pub fn entrance(&self) -> Result<CgroupJoin, CgroupError> {
        match &self.directories {
            CgroupDirectories::V2(directory) => directory.entrance(),
            CgroupDirectories::V1(directories) => directories.entrance(),
        }
    }

    /// Number of its processes that the kernel has killed for lack of memory (OOM kills).
    pub fn oom_kills(&self) -> u64 {
        match &self.directories {
            CgroupDirectories::V2(directory) => directory.oom_kills(),
            CgroupDirectories::V1(directories) => directories.oom_kills(),
        }
    }

    /// The memory that it holds now, if that is counted.
    pub fn memory_bytes(&self) -> Option<u64> {
        match &self.directories {
            CgroupDirectories::V2(directory) => directory.memory_bytes(),
            CgroupDirectories::V1(directories) => directories.memory_bytes(),
        }
    }

    /// Removes it, after killing what is still in it.
    ///
    /// # Errors
    /// [`CgroupError`] when it doesn't become empty.
    pub fn remove(mut self) -> Result<(), CgroupError> {
        self.removed = true;
        self.remove_now()
    }

    fn remove_now(&self) -> Result<(), CgroupError> {
        self.paths().try_for_each(empty)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if !self.removed {
            // A directory that can't be removed is a leftover, and found by the next sweep.
            let _ = self.remove_now();
        }
    }
}
