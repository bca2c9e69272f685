//! The part of a disk that is kept free of what sandboxes, and the host for them, write, so that the host can still record what became of them.

use rustix::fd::AsFd;
use rustix::fs::fstatvfs;
use rustix::io::Errno;

/// Space left on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Space that every user may still use, in bytes.
    pub available_bytes: u64,
    /// Space that is to stay available, in bytes.
    pub reserve_bytes: u64,
}

/// Maximum reserve of a disk, in bytes.
const RESERVE_BYTES: u64 = 64 << 20;

/// Suffix of a disk limit in texts for people.
pub const OR_LESS: &str = ", or less where the disk has less left";

/// Divisor for the reserve of a small disk: one eighth of it is kept free.
const PART: u64 = 8;

/// A sandbox that has written no more than this is not ended because others have filled the disk, in bytes.
const HARMLESS_BYTES: u64 = 1 << 20;

// === impl FreeSpace ===

impl FreeSpace {
    /// Returns the space left on the file system of a file.
    ///
    /// # Errors
    /// The kernel's, for a file that can't be looked at.
    pub fn of(file: impl AsFd) -> Result<Self, Errno> {
        let found = fstatvfs(file)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let reserve_bytes = RESERVE_BYTES.min(bytes(found.f_blocks) / PART);
        Ok(Self { available_bytes: bytes(found.f_bavail), reserve_bytes })
    }

    /// Returns true if that many more bytes can be written without touching the reserve.
    pub fn takes(self, bytes: u64) -> bool {
        self.available_bytes.saturating_sub(bytes) >= self.reserve_bytes
    }

    /// Returns the space left above the reserve, in bytes.
    pub fn spare_bytes(self) -> u64 {
        self.available_bytes.saturating_sub(self.reserve_bytes)
    }

    /// Returns the maximum that a sandbox may have written while no more than this is left. Once the reserve is touched,
    /// that is as much as is left: those that have written most are ended first, and give back what they took.
    pub fn most_bytes(self) -> u64 {
        match self.takes(0) {
            true => u64::MAX,
            false => self.available_bytes.max(HARMLESS_BYTES),
        }
    }

    /// Returns how much can be written before a sandbox that has written `grown` bytes is to be looked at again.
    pub fn left_bytes(self, grown: u64) -> u64 {
        match self.takes(0) {
            true => self.spare_bytes(),
            // Each byte that it writes also reduces the free space.
            false => self.most_bytes().saturating_sub(grown) / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_is_limited_by_what_is_left_once_the_reserve_is_touched() {
        let room = |available_bytes| FreeSpace { available_bytes, reserve_bytes: 64 << 20 };
        assert_eq!(room(64 << 20).most_bytes(), u64::MAX);
        assert_eq!(room(63 << 20).most_bytes(), 63 << 20);
        assert_eq!(room(0).most_bytes(), HARMLESS_BYTES, "one that wrote next to nothing is not the cause");
        assert!(room(65 << 20).takes(1 << 20) && !room(65 << 20).takes(2 << 20));
    }

    #[test]
    fn reserve_of_a_disk_is_no_larger_than_a_part_of_it() {
        let room = FreeSpace::of(std::fs::File::open("/").unwrap()).unwrap();
        assert!(room.reserve_bytes > 0 && room.reserve_bytes <= RESERVE_BYTES);
    }
}
