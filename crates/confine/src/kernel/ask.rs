//! Filters that ask (seccomp user notification).

use super::{check, set_filter};
use crate::seccomp::program::Instruction;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;

/// Puts a filter up whose questions come to the descriptor that this returns.
pub(crate) fn install_guard(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A caller that waits for its answer is not called away by signals, so no question is asked twice. Older kernels
    // than 5.19 don't know that.
    match set_filter(program, listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(Errno::INVAL) => set_filter(program, listening),
        set => set,
    }
    // SAFETY: the kernel has just made this descriptor, and it has no other owner.
    .map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// A question of a guarded process.
pub(crate) struct SeccompNotification {
    pub(crate) id: u64,
    /// The thread that asks.
    pub(crate) thread: i32,
    /// Which call.
    pub(crate) number: i32,
    pub(crate) arguments: [u64; 6],
}

/// Receives the next question.
pub(crate) fn take_question(listener: BorrowedFd<'_>) -> Result<SeccompNotification, Errno> {
    // SAFETY: all-zero is a valid seccomp_notif, and what the kernel wants before it fills it.
    let mut request: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request is what this call fills, and lives until it returns.
    let taken =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut request) };
    check(taken.into())?;
    Ok(SeccompNotification {
        id: request.id,
        thread: request.pid.cast_signed(),
        number: request.data.nr,
        arguments: request.data.args,
    })
}

/// Returns true if the caller still waits, so that its thread id has not passed to another thread.
pub(crate) fn is_still_asked(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the id is what this call reads, and lives until it returns.
    let valid =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
    valid == 0
}

/// Gives the answer: whether the call succeeds in the caller, which then gets 0.
pub(crate) fn answer_question(listener: BorrowedFd<'_>, id: u64, answer: Result<(), Errno>) {
    answer_with(listener, id, answer.map(|()| 0));
}

/// Gives the answer: what the call returns in the caller.
pub(crate) fn answer_with(listener: BorrowedFd<'_>, id: u64, answer: Result<i64, Errno>) {
    let error = answer.err().map_or(0, |errno| -errno.raw_os_error());
    respond(listener, libc::seccomp_notif_resp { id, val: answer.unwrap_or_default(), error, flags: 0 });
}

/// Lets the caller make the call itself. Its arguments in memory may change in between, so this is no answer to a question
/// that depends on them.
pub(crate) fn let_through(listener: BorrowedFd<'_>, id: u64) {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    respond(listener, libc::seccomp_notif_resp { id, val: 0, error: 0, flags });
}

fn respond(listener: BorrowedFd<'_>, response: libc::seccomp_notif_resp) {
    // SAFETY: the response is what this call reads, and lives until it returns. If the caller is gone, nothing is left to
    // be done.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
}

/// Copies a descriptor of the thread's process.
pub(crate) fn take_descriptor(thread: i32, descriptor: i32) -> Result<OwnedFd, Errno> {
    const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;
    // SAFETY: takes numbers only.
    let open = |flags: libc::c_uint| check(unsafe { libc::syscall(libc::SYS_pidfd_open, thread, flags) });
    // Kernels before 6.9 have descriptors for the first thread of a process only.
    let pidfd = match open(PIDFD_THREAD) {
        Err(Errno::INVAL) => open(0),
        opened => opened,
    }?;
    // SAFETY: the kernel has just made this descriptor, and it has no other owner.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd as i32) };
    // SAFETY: takes numbers only.
    let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), descriptor, 0) };
    // SAFETY: as above.
    check(taken).map(|taken| unsafe { OwnedFd::from_raw_fd(taken as i32) })
}
