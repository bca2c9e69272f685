//! Adds inotify watches in the place of programs ([`crate::seccomp::policy::guard`]).
//!
//! A watch tells of everything that happens to a file, whichever process does it. On the host's programs in `/usr` it
//! tells what the host and other sandboxes run. So programs watch only what lies in the sandbox's own mounts.
//!
//! The path is read once, opened once, and the watch is added to what was opened: a caller that changes the path, a link
//! or its directory in between changes nothing.

use super::connector::open;
use super::own::Own;
use crate::kernel;
use crate::kernel::ask::{self, Question};
use crate::wall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The longest path, its NUL included.
const LONGEST_PATH: usize = 4096;

/// Where two paths that mean the caller itself would mean PID 1.
const OF_THE_CALLER: [&str; 2] = ["/proc/self", "/proc/thread-self"];

/// What one `inotify_add_watch` is about.
struct Request {
    inotify: OwnedFd,
    file: OwnedFd,
    mask: u32,
}

/// Answers one question, in a worker. What was taken stays open until that ends: it may be any descriptor, and PID 1 must
/// never be the last to close it.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &Question, own: &Own) {
    let request = ManuallyDrop::new(Request::take(question));
    // What was taken is the caller's only if it still waits: its number may belong to another thread by now.
    if ask::is_still_asked(listener, question.id) {
        let answer = request.as_ref().map_err(|errno| *errno).and_then(|request| request.fulfil(own));
        ask::answer_with(listener, question.id, answer);
    }
}

// === impl Request ===

impl Request {
    fn take(question: &Question) -> Result<Self, Errno> {
        let [inotify, pointer, mask, ..] = question.arguments;
        // The kernel looks at the low 32 bits of both numbers, too.
        let (inotify, mask) = (inotify as u32, mask as u32);
        // Closed by the end of the worker alone, also where one of the next steps fails: `close` may wait.
        let inotify = ManuallyDrop::new(ask::take_descriptor(question.thread, inotify.cast_signed())?);
        let path = read_path(question.thread, pointer)?;
        let directory = open(question.thread, "cwd", OFlags::PATH | OFlags::DIRECTORY)?;
        let links = if mask & libc::IN_DONT_FOLLOW == 0 { OFlags::empty() } else { OFlags::NOFOLLOW };
        let file = openat(directory, &*path, OFlags::PATH | OFlags::CLOEXEC | links, Mode::empty())?;
        Ok(Self { inotify: ManuallyDrop::into_inner(inotify), file, mask })
    }

    fn fulfil(&self, own: &Own) -> Result<i64, Errno> {
        if wall!(OwnWatches: !own.has_mount_of(&self.file)?, else false) {
            return Err(Errno::ACCESS);
        }
        // The name in `/proc` is a link that leads to exactly what was opened.
        let mask = self.mask & !libc::IN_DONT_FOLLOW;
        kernel::watch(self.inotify.as_fd(), &format!("/proc/self/fd/{}", self.file.as_raw_fd()), mask)
    }
}

/// Reads a path from the caller's memory.
fn read_path(thread: i32, pointer: u64) -> Result<Box<Path>, Errno> {
    let memory = open(thread, "mem", OFlags::RDONLY)?;
    let mut bytes = vec![0; LONGEST_PATH];
    // Less is read where the mapping ends.
    let read = rustix::io::pread(&memory, &mut bytes[..], pointer).map_err(|_| Errno::FAULT)?;
    let bytes = bytes.get(..read).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0);
    let end = end.ok_or(if read == LONGEST_PATH { Errno::NAMETOOLONG } else { Errno::FAULT })?;
    let path = Path::new(OsStr::from_bytes(&bytes[..end]));
    // An empty path names nothing, and would mean the directory itself here.
    if path.as_os_str().is_empty() {
        return Err(Errno::NOENT);
    }
    let caller = format!("/proc/{thread}");
    let meant = OF_THE_CALLER.iter().find_map(|own| path.strip_prefix(own).ok());
    Ok(meant.map_or_else(|| path.into(), |rest| Path::new(&caller).join(rest).into()))
}
