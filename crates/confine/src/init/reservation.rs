//! Reserves space for files on behalf of programs ([`crate::seccomp::policy::guard`]).
//!
//! One `fallocate` can take a whole disk within a moment. The host checks the growth of a sandbox as often as a disk can be
//! filled by writing. So space is reserved no faster than that: one question after the other, piece by piece. A sandbox
//! that exceeds its quota meanwhile is ended by the host.

use super::caller;
use crate::kernel::ask::{self, SeccompNotification};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, fallocate, fstat, fstatvfs};
use rustix::io::Errno;
use std::thread::sleep;
use std::time::Duration;

/// Number of bytes reserved in one step.
const PIECE_BYTES: u64 = 16 << 20;
/// Number of bytes reserved per second. The host assumes that a disk is twice as fast.
const BYTES_A_SECOND: u64 = 1 << 30;
/// `st_blocks` counts in these.
const BLOCK_BYTES: u64 = 512;

struct FallocateCall {
    file: OwnedFd,
    flags: FallocateFlags,
    offset: u64,
    length: u64,
}

/// Answers one question, in a worker.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &SeccompNotification) {
    let is_asked = || ask::is_still_asked(listener, question.id);
    caller::answer(listener, question, FallocateCall::take, |request| request.fulfil(is_asked));
}

// === impl FallocateCall ===

impl FallocateCall {
    fn take(question: &SeccompNotification) -> Result<Self, Errno> {
        let [file, mode, offset, length, ..] = question.arguments;
        let flags = flags(mode as u32)?;
        let is_valid = i64::try_from(offset).is_ok() && i64::try_from(length).is_ok_and(|length| length > 0);
        if !is_valid {
            return Err(Errno::INVAL);
        }
        let file = ask::take_descriptor(question.thread, (file as u32).cast_signed())?;
        Ok(Self { file, flags, offset, length })
    }

    fn fulfil(&self, is_asked: impl Fn() -> bool) -> Result<(), Errno> {
        let end = self.offset.checked_add(self.length).filter(|end| i64::try_from(*end).is_ok());
        let end = end.ok_or(Errno::FBIG)?;
        // More than there is would fill the disk before it fails.
        if self.length > self.most()? {
            return Err(Errno::NOSPC);
        }
        let mut from = self.offset;
        while from < end {
            let piece = PIECE_BYTES.min(end - from);
            sleep(time_for(piece));
            if !is_asked() {
                return Err(Errno::INTR);
            }
            fallocate(&self.file, self.flags, from, piece)?;
            from += piece;
        }
        Ok(())
    }

    /// Returns the maximum size that can be reserved: what the file has already, and what is free. A file system without a
    /// size (`memfd`) reports no limit.
    fn most(&self) -> Result<u64, Errno> {
        let (own, free) = (fstat(&self.file)?, fstatvfs(&self.file)?);
        if free.f_blocks == 0 {
            return Ok(u64::MAX);
        }
        let own = u64::try_from(own.st_blocks).unwrap_or_default().saturating_mul(BLOCK_BYTES);
        Ok(free.f_bavail.saturating_mul(free.f_frsize).saturating_add(own))
    }
}

/// The ways to reserve. Others move data or write zeros, which few file systems can and no program counts on.
fn flags(mode: u32) -> Result<FallocateFlags, Errno> {
    match FallocateFlags::from_bits_retain(mode) {
        flags if flags.is_empty() || flags == FallocateFlags::KEEP_SIZE => Ok(flags),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// Returns the minimum time that a disk takes to write that many bytes.
fn time_for(bytes: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / BYTES_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, openat};
    use std::cell::Cell;
    use std::fs::File;

    fn request(length: u64) -> (FallocateCall, File) {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR).unwrap());
        let copy = file.try_clone().unwrap();
        (FallocateCall { file: copy.into(), flags: FallocateFlags::empty(), offset: 0, length }, file)
    }

    #[test]
    fn fallocate_reserves_space_and_extends_the_file() {
        let (request, file) = request(PIECE_BYTES + 1);
        match request.fulfil(|| true) {
            Ok(()) => assert_eq!(file.metadata().unwrap().len(), PIECE_BYTES + 1),
            // The file system of the temporary directory can't.
            Err(error) => assert_eq!(error, Errno::OPNOTSUPP),
        }
    }

    #[test]
    fn fallocate_beyond_free_space_reserves_nothing() {
        let (request, file) = request(1 << 60);
        assert_eq!(request.fulfil(|| true), Err(Errno::NOSPC));
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn fallocate_stops_when_the_calling_thread_is_gone() {
        let (request, file) = request(3 * PIECE_BYTES);
        let asked = Cell::new(0);
        let ended = request.fulfil(|| asked.replace(asked.get() + 1) == 0);
        if ended != Err(Errno::OPNOTSUPP) {
            assert_eq!((ended, file.metadata().unwrap().len()), (Err(Errno::INTR), PIECE_BYTES));
        }
    }

    #[test]
    fn fallocate_modes_other_than_reservation_are_refused() {
        assert_eq!(flags(0), Ok(FallocateFlags::empty()));
        assert_eq!(flags(1), Ok(FallocateFlags::KEEP_SIZE));
        for other in [0x8, 0x10, 0x11, 0x20, 0x40, 0x80, u32::MAX] {
            assert_eq!(flags(other), Err(Errno::OPNOTSUPP), "{other:#x}");
        }
    }

    #[test]
    fn reservation_time_is_proportional_to_its_size() {
        assert_eq!(time_for(BYTES_A_SECOND), Duration::from_secs(1));
        assert_eq!(time_for(PIECE_BYTES), Duration::from_micros(15_625));
    }
}
