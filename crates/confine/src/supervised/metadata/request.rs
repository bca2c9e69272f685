//! Arguments of a call that changes metadata, read from the caller once.

use crate::kernel::ask::{self, SeccompNotification};
use crate::seccomp::policy::metadata::FCHMODAT2;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, Timespec, Timestamps, openat, openat2};
use rustix::io::Errno;
use std::ffi::CString;

/// A change, and to what.
pub(super) struct MetadataRequest {
    pub(super) target: OwnedFd,
    pub(super) change: Change,
}

/// Requested change.
pub(super) enum Change {
    /// The permissions.
    Mode(u32),
    /// The owner and group; all bits set means as it is.
    Owner { uid: u32, gid: u32 },
    /// Times of the last read and write.
    Times(Timestamps),
}

/// The thread that made the call.
struct Caller {
    thread: i32,
    memory: OwnedFd,
}

/// Directory in which a relative path begins.
#[derive(Clone, Copy)]
struct BaseDirectory(i32);

/// The longest path that the kernel takes, its end included.
const LONGEST_PATH: usize = 4096;
const NOFOLLOW: u32 = libc::AT_SYMLINK_NOFOLLOW as u32;
const EMPTY_PATH: u32 = libc::AT_EMPTY_PATH as u32;
const HERE: BaseDirectory = BaseDirectory(libc::AT_FDCWD);

// === impl MetadataRequest ===

impl MetadataRequest {
    /// The kernel looks at the low 32 bits of numbers, too.
    pub(super) fn take(question: &SeccompNotification) -> Result<Self, Errno> {
        let caller = Caller::of(question)?;
        let [a, b, c, d, e, _] = question.arguments;
        let at = |argument: u64| BaseDirectory((argument as u32).cast_signed());
        let owner = |uid: u64, gid: u64| Change::Owner { uid: uid as u32, gid: gid as u32 };
        let mode = |mode: u64| Change::Mode(mode as u32);
        let (target, change) = match libc::c_long::from(question.number) {
            libc::SYS_chmod => (caller.open(HERE, a, 0)?, mode(b)),
            libc::SYS_fchmod => (caller.descriptor(at(a))?, mode(b)),
            libc::SYS_fchmodat => (caller.open(at(a), b, 0)?, mode(c)),
            FCHMODAT2 => (caller.open(at(a), b, d as u32)?, mode(c)),
            libc::SYS_chown => (caller.open(HERE, a, 0)?, owner(b, c)),
            libc::SYS_lchown => (caller.open(HERE, a, NOFOLLOW)?, owner(b, c)),
            libc::SYS_fchown => (caller.descriptor(at(a))?, owner(b, c)),
            libc::SYS_fchownat => (caller.open(at(a), b, e as u32)?, owner(c, d)),
            libc::SYS_utime => (caller.open(HERE, a, 0)?, caller.times(b, TimeUnit::Seconds)?),
            libc::SYS_utimes => (caller.open(HERE, a, 0)?, caller.times(b, TimeUnit::Microseconds)?),
            libc::SYS_futimesat => {
                (caller.open_or_take(at(a), b, 0)?, caller.times(c, TimeUnit::Microseconds)?)
            }
            libc::SYS_utimensat => {
                (caller.open_or_take(at(a), b, d as u32)?, caller.times(c, TimeUnit::Nanoseconds)?)
            }
            _ => return Err(Errno::NOSYS),
        };
        Ok(Self { target, change })
    }
}

/// Encoding of a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    /// One number: seconds.
    Seconds,
    /// Two numbers, the second in microseconds.
    Microseconds,
    /// Two numbers, the second in nanoseconds, or one of two special values.
    Nanoseconds,
}

// === impl Caller ===

impl Caller {
    fn of(question: &SeccompNotification) -> Result<Self, Errno> {
        let memory = open(question.thread, "mem", OFlags::RDONLY)?;
        Ok(Self { thread: question.thread, memory })
    }

    fn descriptor(&self, BaseDirectory(descriptor): BaseDirectory) -> Result<OwnedFd, Errno> {
        ask::take_descriptor(self.thread, descriptor)
    }

    /// A descriptor itself, where calls mean that by no path at all.
    fn open_or_take(&self, at: BaseDirectory, path: u64, flags: u32) -> Result<OwnedFd, Errno> {
        if path == 0 { self.descriptor(at) } else { self.open(at, path, flags) }
    }

    /// Opens a path as the caller would, to look at.
    fn open(&self, at: BaseDirectory, path: u64, flags: u32) -> Result<OwnedFd, Errno> {
        if flags & !(NOFOLLOW | EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let path = self.text(path)?;
        if path.is_empty() && flags & EMPTY_PATH != 0 && at.0 != libc::AT_FDCWD {
            return self.descriptor(at);
        }
        // C libraries say so where an older kernel knows no better way. It means the caller, and not this process.
        let of_self = [&b"/proc/self/fd/"[..], b"/proc/thread-self/fd/"];
        if let Some(number) = of_self.iter().find_map(|prefix| path.as_bytes().strip_prefix(*prefix)) {
            let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
            return self.descriptor(BaseDirectory(number.ok_or(Errno::ACCESS)?));
        }
        let directory = match at {
            BaseDirectory(libc::AT_FDCWD) => open(self.thread, "cwd", OFlags::PATH | OFlags::DIRECTORY)?,
            at => self.descriptor(at)?,
        };
        let nofollow = if flags & NOFOLLOW != 0 { OFlags::NOFOLLOW } else { OFlags::empty() };
        let wanted = OFlags::PATH | OFlags::CLOEXEC | nofollow;
        openat2(&directory, path.as_c_str(), wanted, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
    }

    fn text(&self, pointer: u64) -> Result<CString, Errno> {
        let mut bytes = vec![0; LONGEST_PATH];
        let read = rustix::io::pread(&self.memory, &mut bytes[..], pointer).map_err(|_| Errno::FAULT)?;
        let end = bytes[..read].iter().position(|byte| *byte == 0);
        let end = end.ok_or(if read == LONGEST_PATH { Errno::NAMETOOLONG } else { Errno::FAULT })?;
        bytes.truncate(end);
        CString::new(bytes).map_err(|_| Errno::FAULT)
    }

    fn times(&self, pointer: u64, unit: TimeUnit) -> Result<Change, Errno> {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW };
        if pointer == 0 {
            return Ok(Change::Times(Timestamps { last_access: NOW, last_modification: NOW }));
        }
        let mut bytes = [0; 32];
        let wanted = if unit == TimeUnit::Seconds { 16 } else { 32 };
        let read = rustix::io::pread(&self.memory, &mut bytes[..wanted], pointer);
        if read.map_err(|_| Errno::FAULT)? != wanted {
            return Err(Errno::FAULT);
        }
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes));
        let mut next = || numbers.next().unwrap_or_default();
        let mut time = || match unit {
            TimeUnit::Seconds => Ok(Timespec { tv_sec: next(), tv_nsec: 0 }),
            TimeUnit::Nanoseconds => Ok(Timespec { tv_sec: next(), tv_nsec: next() }),
            TimeUnit::Microseconds => match (next(), next()) {
                (tv_sec, micros @ 0..1_000_000) => Ok(Timespec { tv_sec, tv_nsec: micros * 1000 }),
                _ => Err(Errno::INVAL),
            },
        };
        Ok(Change::Times(Timestamps { last_access: time()?, last_modification: time()? }))
    }
}

fn open(thread: i32, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, format!("/proc/{thread}/{name}"), flags | OFlags::CLOEXEC, Mode::empty())
}
