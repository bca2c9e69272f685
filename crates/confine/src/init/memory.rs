//! Ends a sandbox as a whole once its memory is used up.
//!
//! A control group of version 2 does so by itself. In one of version 1 the kernel kills a process of its choice and reports
//! it. Without any group, PID 1 adds up the memory of its processes, with their page tables, and of its files. It doesn't
//! see memory that is in no process and no file (memory without a name, pipes, sockets): that has limits of its own. In a
//! container PID 1 sees the group from inside, and the number of OOM kills there.
//!
//! Memory that the kernel charges to no control group is watched in all of these cases ([`super::uncharged`]).

use super::sandbox_state::OwnResources;
use super::uncharged::UnchargedMemoryWatch;
use crate::group::{CgroupJoin, SocketMemory};
use crate::kernel;
use crate::plan::Plan;
use crate::wall;
use crate::walls::{ErrorContext, WallError};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::thread::sched_getaffinity;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Watches what the sandbox holds.
pub(super) struct MemoryWatch {
    limit: OomDetection,
    /// Memory that no limit covers.
    uncharged: UnchargedMemoryWatch,
}

/// Ways to detect that memory has run out.
enum OomDetection {
    /// The kernel enforces the limit, or nothing does.
    Unwatched,
    /// Readable then.
    Told {
        event: OwnedFd,
        /// Memory of sockets that is counted apart.
        sockets: Option<SocketMemoryWatch>,
    },
    /// The number of OOM kills is read from this file at intervals.
    Counted {
        /// A file of lines `key number`.
        file: File,
        /// Time of the next look.
        next: Instant,
    },
    /// The memory is added up at intervals.
    Added {
        /// Maximum memory in bytes.
        most_bytes: u64,
        /// Directory of the sandbox's files in memory.
        files: String,
        /// Time of the next look.
        next: Instant,
    },
}

/// Watches the memory that sockets hold in buffers.
struct SocketMemoryWatch {
    /// A file with the number of bytes.
    usage: File,
    most_bytes: u64,
    /// Time of the next look.
    next: Instant,
}

/// Maximum number of bytes that any machine can allocate per second, for each of its processors.
const FASTEST_BYTES: u64 = 4 << 30;

const BETWEEN_COUNTS: Duration = Duration::from_millis(100);
const BETWEEN_SOCKET_COUNTS: Duration = Duration::from_millis(200);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

// === impl MemoryWatch ===

impl MemoryWatch {
    pub(super) fn watch(plan: &Plan) -> Result<Self, WallError> {
        OomDetection::watch(plan).map(Self::of)
    }

    /// Limit in a container, whose group is not this process's own.
    pub(super) fn of_container() -> Self {
        Self::of(OomDetection::of_container())
    }

    fn of(limit: OomDetection) -> Self {
        Self { limit, uncharged: UnchargedMemoryWatch::watch() }
    }

    /// Returns the descriptors that must stay open for it.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let (first, second) = match &self.limit {
            OomDetection::Told { event, sockets } => {
                (Some(event.as_fd()), sockets.as_ref().map(|sockets| sockets.usage.as_fd()))
            }
            OomDetection::Counted { file, .. } => (Some(file.as_fd()), None),
            OomDetection::Unwatched | OomDetection::Added { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Becomes readable when memory has run out, if the kernel reports that.
    pub(super) fn told(&self) -> Option<BorrowedFd<'_>> {
        match &self.limit {
            OomDetection::Told { event, .. } => Some(event.as_fd()),
            OomDetection::Unwatched | OomDetection::Added { .. } | OomDetection::Counted { .. } => None,
        }
    }

    /// Maximum time before [`Self::has_run_out`] must be called again.
    pub(super) fn patience(&self) -> Duration {
        let uncharged = self.uncharged.patience();
        self.limit.patience().map_or(uncharged, |limit| limit.min(uncharged))
    }

    /// Returns true if the kernel has killed a process for lack of memory (OOM kill), where that is counted. Call it before
    /// the end of a process is reported: the receiver of the report needs the reason.
    pub(super) fn has_cost_somebody(&self) -> bool {
        matches!(&self.limit, OomDetection::Counted { file, .. } if oom_kills(file) > 0)
    }

    /// Returns true if more memory is held than allowed. Measures only when a look is due, also while another look goes on.
    pub(super) fn has_run_out(&mut self, own: &OwnResources) -> bool {
        let Self { limit, uncharged } = self;
        limit.has_run_out() || uncharged.is_too_much(own, &mut || limit.has_run_out())
    }
}

// === impl OomDetection ===

impl OomDetection {
    fn watch(plan: &Plan) -> Result<Self, WallError> {
        let watched = wall!(MemoryLimit: plan.watched_memory_bytes, else None);
        Ok(match (plan.group.as_ref().and_then(CgroupJoin::out_of_memory), watched) {
            (Some(told), _) => {
                // Above the descriptors that a program gets for its streams.
                let event = rustix::io::fcntl_dupfd_cloexec(told, 3).about("memory event")?;
                let sockets = plan.group.as_ref().and_then(CgroupJoin::socket_memory);
                Self::Told { event, sockets: sockets.map(SocketMemoryWatch::watch).transpose()? }
            }
            (None, Some(most_bytes)) => {
                let files = format!("/{}", plan.scratch_places().next().unwrap_or_default());
                // Without a PID namespace all processes of the host would be added up.
                wall!(PidNamespace: Self::Added { most_bytes, files, next: Instant::now() }, else Self::Unwatched)
            }
            (None, None) => Self::Unwatched,
        })
    }

    /// Limit in a container, whose group belongs to its engine. A group that can't be seen is not watched; then the
    /// kernel's choice of a process to kill stands.
    fn of_container() -> Self {
        const COUNTS: [&str; 2] =
            ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
        match COUNTS.iter().find_map(|path| File::open(path).ok()) {
            Some(file) => Self::Counted { file, next: Instant::now() },
            None => Self::Unwatched,
        }
    }

    /// Maximum time before [`Self::has_run_out`] must be called again, if there is one.
    fn patience(&self) -> Option<Duration> {
        match self {
            Self::Added { next, .. }
            | Self::Counted { next, .. }
            | Self::Told { sockets: Some(SocketMemoryWatch { next, .. }), .. } => {
                Some(next.saturating_duration_since(Instant::now()))
            }
            Self::Unwatched | Self::Told { sockets: None, .. } => None,
        }
    }

    /// Returns true if more memory is held than allowed. Measures only when a look is due.
    fn has_run_out(&mut self) -> bool {
        let now = Instant::now();
        match self {
            Self::Unwatched => false,
            Self::Told { sockets, .. } => sockets.as_mut().is_some_and(|sockets| sockets.have_too_much(now)),
            Self::Added { next, .. } | Self::Counted { next, .. } if now < *next => false,
            Self::Added { most_bytes, files, next } => {
                let held = kernel::held_bytes().saturating_add(in_files(files));
                *next = now + pause(most_bytes.saturating_sub(held));
                held > *most_bytes
            }
            Self::Counted { file, next } => {
                *next = now + BETWEEN_COUNTS;
                oom_kills(file) > 0
            }
        }
    }
}

// === impl SocketMemoryWatch ===

impl SocketMemoryWatch {
    fn watch(counted: &SocketMemory) -> Result<Self, WallError> {
        let usage = rustix::io::fcntl_dupfd_cloexec(&counted.usage.0, 3).about("socket memory")?;
        Ok(Self { usage: usage.into(), most_bytes: counted.most_bytes, next: Instant::now() })
    }

    /// Returns true if more memory is held than allowed. Measures only when a look is due.
    fn have_too_much(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + BETWEEN_SOCKET_COUNTS;
        let mut text = [0; 32];
        let read = self.usage.read_at(&mut text, 0).unwrap_or_default();
        let held = std::str::from_utf8(&text[..read]).ok().and_then(|text| text.trim().parse::<u64>().ok());
        held.is_some_and(|held| held > self.most_bytes)
    }
}

/// Returns the number of OOM kills from a file of lines `key number`.
fn oom_kills(file: &File) -> u64 {
    let mut text = [0; 512];
    let read = file.read_at(&mut text, 0).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..read]);
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or_default()
}

/// Returns the size of the sandbox's files in memory, and of their inodes, in bytes. One file system holds them all.
fn in_files(place: &str) -> u64 {
    const INODE_BYTES: u64 = 1024;
    let of = rustix::fs::statvfs(place);
    of.map_or(0, |of| {
        let content = of.f_blocks.saturating_sub(of.f_bfree).saturating_mul(of.f_frsize);
        content.saturating_add(of.f_files.saturating_sub(of.f_ffree).saturating_mul(INODE_BYTES))
    })
}

/// The sooner, the less is left.
fn pause(left_bytes: u64) -> Duration {
    // The standard library would look for a share in control groups, and open files for that each time.
    let processors = sched_getaffinity(None).map_or(1, |processors| u64::from(processors.count().max(1)));
    let milliseconds = left_bytes.saturating_mul(1000) / (FASTEST_BYTES * processors);
    Duration::from_millis(milliseconds).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_is_left_the_sooner_it_is_looked_again() {
        assert_eq!(pause(0), SHORTEST_PAUSE);
        assert_eq!(pause(u64::MAX), LONGEST_PAUSE);
        assert!(pause(1 << 30) <= pause(2 << 30));
    }
}
