//! Version 1: a tree for each kind of resource, and a group with a directory in each.

use super::mounts::{CgroupMountInfo, MountedHierarchy};
use super::{
    CgroupError, CgroupJoin, CgroupLimits, LaunchDescriptor, SocketMemory, make_directory, number,
    number_after, tree_error,
};
use crate::wall;
use rustix::fs::{Access, OFlags, access};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The trees in which groups are made, below the group that this process is in itself.
#[derive(Debug, Clone)]
pub struct V1Hierarchies {
    memory: PathBuf,
    /// Directory in the tree for processor time, which not every host has.
    cpu: Option<PathBuf>,
}

/// The directories of one group.
#[derive(Debug)]
pub(super) struct V1Directories {
    memory: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

/// Socket buffers are counted apart from other memory, and only where there is a limit for them. This is the limit, as a
/// part of the memory limit, within these bounds.
const SOCKET_MEMORY_PART: u64 = 4;
const SOCKET_MEMORY_BYTES: std::ops::RangeInclusive<u64> = 8 << 20..=256 << 20;

/// Factor by which the kernel may exceed that limit before the sandbox is ended: a new TCP connection gets some memory in
/// any case.
const SOCKET_MEMORY_EXCESS: u64 = 2;

/// Scheduling period for processor time, in microseconds.
const PERIOD_MICROSECONDS: u64 = 100_000;

fn write(path: &Path, value: u64) -> Result<(), CgroupError> {
    let opened = fs::OpenOptions::new().write(true).open(path);
    opened.and_then(|mut file| write!(file, "{value}")).map_err(|error| tree_error(path, error))
}

// === impl V1Hierarchies ===

impl V1Hierarchies {
    pub(super) fn find(place: &CgroupMountInfo) -> Result<Self, CgroupError> {
        let mounted = place.of_version(1);
        let tree = |controller: &str| {
            let own = place.own_path(Some(controller))?;
            mounted.iter().filter(|tree| tree.has(controller)).find_map(|tree| own_directory(tree, &own))
        };
        let unavailable = |why: &str| CgroupError::Unavailable { why: why.to_owned() };
        let memory =
            tree("memory").ok_or_else(|| unavailable("version 1 limits no memory where this process is"))?;
        access(&memory, Access::WRITE_OK)
            .map_err(|_| unavailable("version 1 lets only root make control groups"))?;
        let cpu = tree("cpu").filter(|cpu| access(cpu, Access::WRITE_OK).is_ok());
        Ok(Self { memory, cpu })
    }

    pub(super) fn parents(&self) -> Vec<&Path> {
        [Some(&self.memory), self.cpu.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// Makes the directories of a new group: one for each resource that is limited.
    pub(super) fn make(&self, name: &str, limits: &CgroupLimits) -> Result<V1Directories, CgroupError> {
        let mut made = V1Directories { memory: None, cpu: None };
        let make = |tree: &Path| {
            let path = tree.join(name);
            make_directory(&path).map(|()| path.clone())
        };
        if limits.memory_bytes.is_some() {
            made.memory = Some(make(&self.memory)?);
        }
        if limits.millicpus.is_some() {
            let tree = self.cpu.as_deref().ok_or_else(|| CgroupError::Unavailable {
                why: "version 1 limits no processor time where this process is".to_owned(),
            });
            match tree.and_then(make) {
                Ok(cpu) => made.cpu = Some(cpu),
                Err(error) => {
                    made.paths().for_each(|path| drop(fs::remove_dir(path)));
                    return Err(error);
                }
            }
        }
        Ok(made)
    }
}

fn own_directory(tree: &MountedHierarchy, own: &Path) -> Option<PathBuf> {
    // In a container the path may be that of the host, and the container's group be what is mounted.
    let meant = tree.directory(own).filter(|directory| directory.is_dir());
    meant.or_else(|| Some(tree.point().to_owned()).filter(|point| point.join("cgroup.procs").exists()))
}

// === impl V1Directories ===

impl V1Directories {
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        [self.memory.as_deref(), self.cpu.as_deref()].into_iter().flatten()
    }

    pub(super) fn limit(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        if let (Some(memory), Some(bytes)) = (&self.memory, limits.memory_bytes) {
            write(&memory.join("memory.limit_in_bytes"), bytes)?;
            // Memory and swap together. A kernel that doesn't count swap may still have some.
            let with_swap = memory.join("memory.memsw.limit_in_bytes");
            match with_swap.exists() {
                true => write(&with_swap, bytes)?,
                false => write(&memory.join("memory.swappiness"), 0)?,
            }
            limit_sockets(memory, bytes)?;
        }
        if let (Some(cpu), Some(millicpus)) = (&self.cpu, limits.millicpus) {
            write(&cpu.join("cpu.cfs_period_us"), PERIOD_MICROSECONDS)?;
            write(&cpu.join("cpu.cfs_quota_us"), u64::from(millicpus) * PERIOD_MICROSECONDS / 1000)?;
        }
        Ok(())
    }

    pub(super) fn entrance(&self) -> Result<CgroupJoin, CgroupError> {
        let open = |path: PathBuf, flags| {
            let opened = rustix::fs::open(&path, flags | OFlags::CLOEXEC, rustix::fs::Mode::empty());
            opened.map_err(|errno| tree_error(&path, errno))
        };
        // Of threads: to move a whole process in, even one of one thread, the kernel waits until none in the system starts
        // or ends another, which takes milliseconds.
        let list = |path: &Path| open(path.join("tasks"), OFlags::WRONLY).map(LaunchDescriptor);
        let lists = self.paths().map(list).collect::<Result<_, _>>()?;
        let out_of_memory = self.memory.as_deref().map(out_of_memory).transpose()?;
        let sockets = self.memory.as_deref().and_then(|memory| {
            let limit = number(&memory.join(SOCKET_MEMORY_LIMIT))?;
            let usage =
                open(memory.join("memory.kmem.tcp.usage_in_bytes"), OFlags::RDONLY).map(LaunchDescriptor);
            let most_bytes = limit.saturating_mul(SOCKET_MEMORY_EXCESS);
            Some(usage.map(|usage| SocketMemory { usage, most_bytes }))
        });
        Ok(CgroupJoin::Joins { lists, out_of_memory, sockets: sockets.transpose()? })
    }

    pub(super) fn oom_kills(&self) -> u64 {
        let control = self.memory.as_ref().map(|memory| memory.join("memory.oom_control"));
        control.and_then(|control| number_after(&control, "oom_kill ")).unwrap_or_default()
    }

    pub(super) fn memory_bytes(&self) -> Option<u64> {
        number(&self.memory.as_ref()?.join("memory.usage_in_bytes"))
    }
}

/// The name is TCP's, but the kernel charges sockets of UDP here as well. Local sockets count as other memory.
const SOCKET_MEMORY_LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";

/// Limits what sockets hold in buffers.
fn limit_sockets(memory: &Path, memory_bytes: u64) -> Result<(), CgroupError> {
    let path = memory.join(SOCKET_MEMORY_LIMIT);
    let part = memory_bytes / SOCKET_MEMORY_PART;
    let most = part.clamp(*SOCKET_MEMORY_BYTES.start(), *SOCKET_MEMORY_BYTES.end());
    wall!(SocketMemoryLimit: match path.exists() {
        true => write(&path, most),
        // A kernel that counts none.
        false => Ok(()),
    }, else Ok(()))
}

/// Returns a descriptor that is readable once the kernel has killed a process in the group for lack of memory (OOM kill).
fn out_of_memory(memory: &Path) -> Result<LaunchDescriptor, CgroupError> {
    use std::os::fd::AsRawFd;
    let path = memory.join("memory.oom_control");
    let control = fs::File::open(&path).map_err(|error| tree_error(&path, error))?;
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)
        .map_err(|errno| tree_error(&path, errno))?;
    let path = memory.join("cgroup.event_control");
    let order = format!("{} {}", event.as_raw_fd(), control.as_raw_fd());
    let opened = fs::OpenOptions::new().write(true).open(&path);
    opened.and_then(|mut file| file.write_all(order.as_bytes())).map_err(|error| tree_error(&path, error))?;
    Ok(LaunchDescriptor(event))
}
