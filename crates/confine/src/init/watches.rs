//! Adds inotify watches on behalf of programs ([`crate::seccomp::policy::guard`]).
//!
//! A watch reports everything that happens to a file, whichever process does it. On the host's programs in `/usr` it
//! reveals what the host and other sandboxes run. So programs watch only files in the sandbox's own mounts.
//!
//! The path is read once, opened once, and the watch is added to what was opened: a caller that changes the path, a link
//! or its directory in between changes nothing.

use super::caller::open_path;
use super::sandbox_state::OwnResources;
use crate::kernel;
use crate::kernel::ask::{self, SeccompNotification};
use crate::wall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::mem::ManuallyDrop;

/// Arguments of one `inotify_add_watch`.
struct InotifyAddWatchCall {
    inotify: OwnedFd,
    file: OwnedFd,
    mask: u32,
}

/// Answers one question, in a worker. What was taken stays open until that ends: it may be any descriptor, and PID 1 must
/// never be the last to close it.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &SeccompNotification, own: &OwnResources) {
    let request = ManuallyDrop::new(InotifyAddWatchCall::take(question));
    // The data belong to the caller only if it still waits: its thread id may have been reused.
    if ask::is_still_asked(listener, question.id) {
        let answer = request.as_ref().map_err(|errno| *errno).and_then(|request| request.fulfil(own));
        ask::answer_with(listener, question.id, answer);
    }
}

// === impl InotifyAddWatchCall ===

impl InotifyAddWatchCall {
    fn take(question: &SeccompNotification) -> Result<Self, Errno> {
        let [inotify, pointer, mask, ..] = question.arguments;
        // The kernel looks at the low 32 bits of both numbers, too.
        let (inotify, mask) = (inotify as u32, mask as u32);
        // Closed by the end of the worker alone, also where one of the next steps fails: `close` may wait.
        let inotify = ManuallyDrop::new(ask::take_descriptor(question.thread, inotify.cast_signed())?);
        let links = if mask & libc::IN_DONT_FOLLOW == 0 { OFlags::empty() } else { OFlags::NOFOLLOW };
        let file = open_path(question.thread, pointer, links)?;
        Ok(Self { inotify: ManuallyDrop::into_inner(inotify), file, mask })
    }

    fn fulfil(&self, own: &OwnResources) -> Result<i64, Errno> {
        if wall!(OwnWatches: !own.has_mount_of(&self.file)?, else false) {
            return Err(Errno::ACCESS);
        }
        // The name in `/proc` is a link that leads to exactly what was opened.
        let mask = self.mask & !libc::IN_DONT_FOLLOW;
        kernel::watch(self.inotify.as_fd(), &format!("/proc/self/fd/{}", self.file.as_raw_fd()), mask)
    }
}
