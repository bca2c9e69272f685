//! Complete description of a sandbox: everything [`crate::launch`] needs to know, decided beforehand.
//!
//! A plan holds no host secret and nothing that is decided inside. Paths named `inside` are relative to the sandbox's
//! root and have no leading slash.

pub mod programs;
pub(crate) mod wire;

use self::programs::Programs;
use crate::group::CgroupJoin;
use crate::seccomp::policy::Audience;
use belljar_files::host_path::HostPath;
use rustix::fd::OwnedFd;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::time::Duration;

/// A whole sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Users and groups of the sandboxed processes.
    pub identity: Identity,
    /// Entries that every sandbox of this kind has in its root, in the order in which they are made. No sandbox may change
    /// them.
    pub base: Vec<RootEntry>,
    /// Further entries of the root, in the order in which they are made.
    pub root: Vec<RootEntry>,
    /// Total size limit of all scratch directories, in bytes.
    pub scratch_bytes: u64,
    /// Directories in which Landlock lets files be written; everything else may only be read.
    pub writable: Vec<String>,
    /// A directory of the root whose descriptor comes back with the launch: through it the host reaches what the
    /// sandbox leaves there, also after the sandbox has ended.
    pub exported: Option<String>,
    /// Sockets that listen inside. They come back with the launch, and are the host's.
    pub hatches: Vec<Hatch>,
    /// The host name inside.
    pub hostname: String,
    /// Resource limits of every process.
    pub limits: Limits,
    /// The control group that everything in it is part of.
    pub group: Option<CgroupJoin>,
    /// Name of that group, for the check that PID 1 is in it.
    pub group_name: Option<String>,
    /// Memory that its processes may hold together, where no control group limits it: PID 1 looks now and then, and ends
    /// everything when there is more.
    pub watched_memory_bytes: Option<u64>,
    /// Which system calls may be made.
    pub audience: Audience,
    /// True if `/proc/self/mountinfo` must not show the sources of bind mounts: it then lists no mount at all.
    pub hides_mounts: bool,
    /// The only programs that can be started; all of them where there is no list.
    pub programs: Option<Programs>,
    /// The program to run. The sandbox ends with it; one without a program ends when the host orders it.
    pub program: Option<Program>,
}

/// A socket that listens inside, and is the host's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hatch {
    /// On the loopback of the sandbox's network, `127.0.0.1`.
    Loopback {
        /// Port on which it listens.
        port: u16,
    },
    /// A socket at a path in one of its scratch directories.
    Local {
        /// The path.
        inside: String,
    },
}

/// A program, and where its input and output go.
#[derive(Debug, Serialize, Deserialize)]
pub struct Program {
    /// The command to run.
    pub command: Command,
    /// Its standard streams.
    pub stdio: Stdio,
}

/// Users and groups of the sandboxed processes, inside and outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The user inside; never 0.
    pub inside_uid: u32,
    /// The group inside; never 0.
    pub inside_gid: u32,
    /// The user that they really are on the host.
    pub host_uid: u32,
    /// The group that they really are on the host.
    pub host_gid: u32,
}

/// One entry of the sandbox's root.
#[derive(Debug, Serialize, Deserialize)]
pub enum RootEntry {
    /// A symbolic link.
    Symlink {
        /// Path of the link.
        inside: String,
        /// Target of the link.
        target: String,
    },
    /// A small file with this content.
    File {
        /// Path of the file.
        inside: String,
        /// The content.
        content: Vec<u8>,
    },
    /// A directory or file of the host.
    Bind {
        /// Mount point.
        inside: String,
        /// Source on the host.
        source: HostSource,
        /// Access mode.
        access: Access,
    },
    /// A read-only view of a directory of the host: files, directories and links can be read. Other entries (listening
    /// sockets, pipes, devices) are names without anything behind them.
    View {
        /// Mount point.
        inside: String,
        /// The directory.
        source: HostSource,
    },
    /// A directory of the host whose changes go elsewhere.
    Overlay {
        /// Mount point.
        inside: String,
        /// The directory that is never changed.
        lower: HostSource,
        /// Takes the changes.
        upper: HostPath,
        /// The kernel's scratch directory, on the same file system as `upper`.
        work: HostPath,
    },
    /// An empty directory in memory that may be written.
    Scratch {
        /// Path of the directory.
        inside: String,
    },
}

/// Something of the host.
#[derive(Debug, Serialize, Deserialize)]
pub enum HostSource {
    /// A path, opened again inside the new mount namespace and compared with what the host meant.
    Path(HostPath),
    /// A detached mount that a privileged host has prepared, with its attributes set.
    Mount {
        /// The mount.
        #[serde(with = "wire::descriptor")]
        mount: OwnedFd,
        /// True if it is a directory.
        is_directory: bool,
    },
}

/// Access mode of a bind mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// It is read-only.
    ReadOnly,
    /// It may be written.
    ReadWrite,
}

/// A program to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments; never empty. Without a slash the program is looked up in `PATH` of `env`.
    pub argv: Vec<CString>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<CString>,
    /// Working directory at the start, absolute.
    pub directory: CString,
}

/// Destination of the standard streams.
#[derive(Debug, Serialize, Deserialize)]
pub enum Stdio {
    /// These descriptors, none of which is a terminal.
    Descriptors(#[serde(with = "wire::descriptors")] [OwnedFd; 3]),
    /// A terminal of the sandbox's own; its other end is returned by the launch.
    Terminal,
}

/// Limits of every process (`setrlimit`), and of what the whole sandbox takes of tables that a kernel has once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open files of one process.
    pub open_files: u64,
    /// Processes and threads of the sandbox's user, all together.
    pub processes: u64,
    /// Memory that one process may lock.
    pub locked_memory_bytes: u64,
    /// Queued signals and POSIX timers of the sandbox's user.
    pub pending_signals: u64,
    /// Memory in POSIX message queues of the sandbox's user.
    pub message_queue_bytes: u64,
    /// Pseudo-terminals.
    pub terminals: u64,
    /// Seccomp filters that programs have installed.
    pub filters: u64,
    /// inotify instances.
    pub inotify_instances: u64,
    /// inotify watches.
    pub inotify_watches: u64,
}

/// Maximum number of file locks of a sandbox, POSIX locks and those of `flock`. The kernel charges them to no control
/// group: PID 1 counts them, and ends a sandbox with more.
pub const MOST_LOCKS: usize = 16_384;
/// Maximum kernel memory behind the descriptors of open directories, in bytes. PID 1 ends a sandbox with more.
pub const MOST_FOR_DIRECTORIES: u64 = 256 << 20;
/// Maximum size of the queues of a sandbox's UDP sockets together, and likewise of its netlink sockets, in bytes. PID 1
/// ends a sandbox with more.
pub const MOST_QUEUED_BYTES: u64 = 256 << 20;
/// Maximum number of netlink sockets of a sandbox: full ones hold no more than that. Fewer where the kernel gives sockets
/// larger buffers than usual.
pub const MOST_NETLINK_SOCKETS: u64 = 1_024;
/// Maximum number of UDP sockets that are bound or connected: the kernel takes long to list more.
pub const MOST_UDP_SOCKETS: u64 = 4_096;
/// Maximum number of sockets that are in none of the kernel's lists: IP sockets that are neither bound nor connected. The
/// kernel doesn't report what is in their queues.
pub const MOST_UNLISTED_SOCKETS: u64 = 1_000;

/// Maximum number of TCP connections that a sandbox's programs have closed and that are not over. The machine has one limit
/// for all programs (`net.ipv4.tcp_max_orphans`); beyond it connections of others are reset.
pub const MOST_ORPHANS: u64 = 4_096;

/// Number of descriptors that a thread may wait for in `poll` and `select` before PID 1 counts them: the most that a
/// program can give to `select`. The kernel charges what it keeps for each (128 bytes) to no control group.
pub const MOST_POLLED_UNCOUNTED: u32 = libc::FD_SETSIZE as u32;
/// Maximum number of descriptors that all threads together may wait for where PID 1 counts them. It refuses more.
pub const MOST_POLLED: u64 = 1 << 20;

/// Maximum number of operations in one call on System V semaphores: Linux's default (`SEMOPM`) until 3.19. The kernel
/// retries the operations of all waiting calls, under one lock.
pub const MOST_SEMAPHORE_OPERATIONS: u32 = 32;
/// Maximum number of System V semaphores in a set: more than Linux's default (`SEMMSL`, 250) until 3.19.
pub const MOST_SEMAPHORES_OF_SET: u32 = 255;

/// Maximum time for a program to start in a long-lived sandbox. The host waits longer, so that the sandbox outlives a start
/// that a program inside has stopped.
pub const LONGEST_START: Duration = Duration::from_secs(10);

/// Maximum number of files, directories and links in a file system in memory of this size. Each takes about 1 KiB of kernel
/// memory beside its content, so there may be one for each page of content.
pub fn scratch_inodes(size_bytes: u64) -> u64 {
    const BYTES_FOR_EACH: u64 = 4096;
    /// Number of inodes that a root needs, however small it is.
    const LEAST: u64 = 1024;
    (size_bytes / BYTES_FOR_EACH).max(LEAST)
}

// === impl Plan ===

impl Plan {
    /// Returns the paths of its scratch directories.
    pub(crate) fn scratch_places(&self) -> impl Iterator<Item = &str> {
        self.root.iter().filter_map(|entry| match entry {
            RootEntry::Scratch { inside } => Some(inside.as_str()),
            _ => None,
        })
    }

    /// Returns the directories in which nothing can be started or mapped as code, if there is a list of programs:
    /// everything writable, and everything lent except what is on the list.
    pub(crate) fn places_without_programs(&self) -> impl Iterator<Item = &str> {
        let besides = self.programs.iter().flat_map(|programs| &programs.besides);
        let besides: Vec<&String> = besides.collect();
        let listed = self.programs.iter().flat_map(|_| &self.root);
        listed
            .filter_map(|entry| match entry {
                RootEntry::Scratch { inside }
                | RootEntry::Bind { inside, .. }
                | RootEntry::View { inside, .. }
                | RootEntry::Overlay { inside, .. } => Some(inside),
                RootEntry::Symlink { .. } | RootEntry::File { .. } => None,
            })
            .filter(move |inside| !besides.contains(inside))
            .map(String::as_str)
    }

    /// Returns true if the root holds nothing of the host except the shared base.
    pub(crate) fn is_plain(&self) -> bool {
        self.scratch_places().count() == self.root.len()
    }
}

// === impl HostSource ===

impl HostSource {
    /// Returns true if it is a directory.
    pub fn is_directory(&self) -> bool {
        match self {
            Self::Path(path) => path.is_directory(),
            Self::Mount { is_directory, .. } => *is_directory,
        }
    }
}

// === impl Limits ===

impl Limits {
    /// Returns the limits in force where this process starts a sandbox: a host that allows less keeps its own limit.
    #[must_use]
    pub fn in_force(self) -> Self {
        let lowered = |resource, most: u64| getrlimit(resource).maximum.map_or(most, |host| host.min(most));
        Self {
            open_files: lowered(Resource::Nofile, self.open_files),
            processes: lowered(Resource::Nproc, self.processes),
            locked_memory_bytes: lowered(Resource::Memlock, self.locked_memory_bytes),
            pending_signals: lowered(Resource::Sigpending, self.pending_signals),
            message_queue_bytes: lowered(Resource::Msgqueue, self.message_queue_bytes),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            open_files: 65_536,
            processes: 4_096,
            locked_memory_bytes: 8 << 20,
            pending_signals: 4_096,
            message_queue_bytes: 256 << 10,
            terminals: 64,
            filters: 64,
            inotify_instances: 32,
            inotify_watches: 65_536,
        }
    }
}
