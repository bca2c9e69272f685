//! Resource limits of the host's git, besides time: the server whose data it reads is untrusted.

use super::GitError;
use belljar_files::reserve::FreeSpace;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs::File;
use std::path::Path;

/// Memory of one process of git's, in bytes: heap and other private memory, without files that are mapped. A list of 200,000 files takes about
/// 50 MiB, the largest file that is committed 512 MiB.
pub(super) const MEMORY_BYTES: u64 = 2 << 30;

/// Maximum number of bytes that one step may write while the disk's reserve is touched: settings, references, the commit of a
/// push.
const HARMLESS_BYTES: u64 = 1 << 20;

/// The disk that a step writes to.
pub(super) struct DiskBudget {
    directory: Option<File>,
    available_before: u64,
}

/// Limits the memory of a process, and of those that it starts from now on.
pub(super) fn limit_memory(process: Pid) -> Result<(), Errno> {
    let limit = Rlimit { current: Some(MEMORY_BYTES), maximum: Some(MEMORY_BYTES) };
    prlimit(Some(process), Resource::Data, limit).map(drop)
}

// === impl DiskBudget ===

impl DiskBudget {
    /// The disk of a directory, as it is before the step. One that can't be looked at is not watched: git can't write there either.
    pub(super) fn of(directory: &Path) -> Self {
        let directory = File::open(directory).ok();
        let room = directory.as_ref().and_then(|directory| FreeSpace::of(directory).ok());
        Self { directory, available_before: room.map_or(0, |room| room.available_bytes) }
    }

    /// Fails when the step has taken what is kept free for records of the host's.
    pub(super) fn check(&self, step: &str) -> Result<(), GitError> {
        let room = self.directory.as_ref().and_then(|directory| FreeSpace::of(directory).ok());
        match room {
            Some(room) if !room.takes(0) && room.available_bytes + HARMLESS_BYTES < self.available_before => {
                Err(GitError::DiskFull { step: step.to_owned() })
            }
            _ => Ok(()),
        }
    }
}
