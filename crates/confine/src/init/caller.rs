//! Access to what a guarded process names in a call: its descriptors, paths and memory. Each is read or opened once, so
//! that a caller that changes it afterwards changes nothing. Only workers do this: each of these operations may block.

use crate::kernel::ask::{self, SeccompNotification};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The longest path, its NUL included.
const LONGEST_PATH: usize = 4096;

/// Paths that mean the caller itself and would mean PID 1 here.
const OF_THE_CALLER: [&str; 2] = ["/proc/self", "/proc/thread-self"];

/// Takes what a call names, does with it what is asked, and answers. What was taken is the caller's only if it still waits: its number
/// may belong to another thread by now. It stays open until the worker ends, because `close` may wait.
pub(super) fn answer<T>(
    listener: BorrowedFd<'_>,
    question: &SeccompNotification,
    take: impl FnOnce(&SeccompNotification) -> Result<T, Errno>,
    fulfil: impl FnOnce(&T) -> Result<(), Errno>,
) {
    let taken = ManuallyDrop::new(take(question));
    if ask::is_still_asked(listener, question.id) {
        let answer = taken.as_ref().map_err(|errno| *errno).and_then(fulfil);
        ask::answer_question(listener, question.id, answer);
    }
}

/// Opens a file of the caller's in `/proc`.
pub(super) fn open(thread: i32, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(CWD, format!("/proc/{thread}/{name}"), flags | OFlags::CLOEXEC, Mode::empty())
}

/// Reads that many bytes of the caller's memory.
pub(super) fn read_memory(thread: i32, pointer: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let memory = open(thread, "mem", OFlags::RDONLY)?;
    let mut bytes = vec![0; length];
    let read = rustix::io::pread(&memory, &mut bytes[..], pointer).map_err(|_| Errno::FAULT)?;
    if read == length { Ok(bytes) } else { Err(Errno::FAULT) }
}

/// Reads a string from the caller's memory. A string of `most` bytes or more, its NUL included, is `too_long`.
pub(super) fn read_string(thread: i32, pointer: u64, most: usize, too_long: Errno) -> Result<Vec<u8>, Errno> {
    let memory = open(thread, "mem", OFlags::RDONLY)?;
    let mut bytes = vec![0; most];
    // Less is read where the mapping ends.
    let read = rustix::io::pread(&memory, &mut bytes[..], pointer).map_err(|_| Errno::FAULT)?;
    bytes.truncate(read);
    let end = bytes.iter().position(|byte| *byte == 0);
    bytes.truncate(end.ok_or(if read == most { too_long } else { Errno::FAULT })?);
    Ok(bytes)
}

/// Opens what a path in the caller's memory leads to, as `O_PATH`. `links` is [`OFlags::NOFOLLOW`] where a link at the end
/// means itself.
pub(super) fn open_path(thread: i32, pointer: u64, links: OFlags) -> Result<OwnedFd, Errno> {
    let path = read_string(thread, pointer, LONGEST_PATH, Errno::NAMETOOLONG)?;
    // An empty path names nothing, and would mean the directory itself here.
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let path = as_meant(thread, Path::new(OsStr::from_bytes(&path)));
    let directory = open(thread, "cwd", OFlags::PATH | OFlags::DIRECTORY)?;
    openat(directory, &*path, OFlags::PATH | OFlags::CLOEXEC | links, Mode::empty())
}

fn as_meant(thread: i32, path: &Path) -> Box<Path> {
    let caller = format!("/proc/{thread}");
    let meant = OF_THE_CALLER.iter().find_map(|own| path.strip_prefix(own).ok());
    meant.map_or_else(|| path.into(), |rest| Path::new(&caller).join(rest).into())
}
