//! Report of PID 1 about itself when its last wall stands.

use super::{LIMITS, NAMESPACES, namespace};
use crate::plan::Plan;
use rustix::fs::{CWD, FileType, Mode, mknodat, stat, statvfs, unlink};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, dumpable_behavior, getrlimit};

/// Properties that only PID 1 can see wherever it is, or that ordinary users may not see from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelfReport {
    /// The numbers of its namespaces.
    pub(super) namespaces: [u64; NAMESPACES.len()],
    /// The higher of each limit's two values.
    pub(super) limits: [u64; LIMITS.len()],
    /// Device and inode of its root.
    pub(super) root: (u64, u64),
    /// Capacity of the file system of its scratch directories, in bytes.
    pub(super) scratch_bytes: u64,
    /// True if other processes may look into it.
    pub(super) is_dumpable: bool,
    /// ABI of the Landlock domain that it has entered; 0 for none.
    pub(super) landlock_abi: u32,
    /// The errno of what Landlock refuses before anything else does; 0 if it was not refused.
    pub(super) refused_by_landlock: i32,
}

const WORDS: usize = NAMESPACES.len() + LIMITS.len() + 6;

// === impl SelfReport ===

impl SelfReport {
    /// Looks around. Nothing else of the sandbox runs yet.
    pub(crate) fn give(plan: &Plan, landlock_abi: u32) -> Result<Self, Errno> {
        let mut namespaces = [0; NAMESPACES.len()];
        for (found, (name, _)) in namespaces.iter_mut().zip(NAMESPACES) {
            *found = namespace(name)?;
        }
        let limits = LIMITS.map(|(resource, _)| getrlimit(resource).maximum.unwrap_or(u64::MAX));
        // All scratch directories are in one file system.
        let scratch = plan.scratch_places().next().unwrap_or_default();
        let (root, room) = (stat("/")?, statvfs(format!("/{scratch}"))?);
        Ok(Self {
            namespaces,
            limits,
            root: (root.st_dev, root.st_ino),
            scratch_bytes: room.f_blocks.saturating_mul(room.f_frsize),
            is_dumpable: dumpable_behavior()? != DumpableBehavior::NotDumpable,
            landlock_abi,
            refused_by_landlock: plan.writable.first().map_or(libc::EACCES, |place| refused_a_device(place)),
        })
    }

    /// Encodes it as bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let others = [
            self.root.0,
            self.root.1,
            self.scratch_bytes,
            self.is_dumpable.into(),
            self.landlock_abi.into(),
            self.refused_by_landlock.unsigned_abs().into(),
        ];
        self.namespaces
            .iter()
            .chain(&self.limits)
            .chain(&others)
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    /// Returns `None` for bytes that no `encode` made.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: [[u8; 8]; WORDS] = words.try_into().ok()?;
        let [net, ipc, uts, cgroup, core, files, locked, processes, rest @ ..] =
            words.map(u64::from_le_bytes);
        let [device, inode, scratch, dumpable, abi, refused] = rest;
        Some(Self {
            namespaces: [net, ipc, uts, cgroup],
            limits: [core, files, locked, processes],
            root: (device, inode),
            scratch_bytes: scratch,
            is_dumpable: dumpable != 0,
            landlock_abi: u32::try_from(abi).ok()?,
            refused_by_landlock: i32::try_from(refused).ok()?,
        })
    }
}

/// Tries to make a block device. No process here has the capability for that (`EPERM`); but the Landlock domain is asked
/// first, and returns `EACCES`. With a character device of number 0, which takes no capability, Linux 6.1 asks for no more
/// than the right to make files.
fn refused_a_device(place: &str) -> i32 {
    const NOWHERE: u64 = 0;
    let path = format!("/{place}/.belljar-canary");
    let made = mknodat(CWD, path.as_str(), FileType::BlockDevice, Mode::RUSR, NOWHERE);
    if made.is_ok() {
        let _ = unlink(path.as_str());
    }
    made.err().map_or(0, Errno::raw_os_error)
}
