//! A signal that does nothing but interrupt what a thread waits for.

use super::check;
use rustix::io::Errno;
use std::sync::OnceLock;

/// The signal. Nothing else in this program uses it, and its default action is to do nothing.
const INTERRUPTION: libc::c_int = libc::SIGURG;

extern "C" fn do_nothing(_: libc::c_int) {}

/// Sends the signal to one thread of this process.
pub(crate) fn interrupt(thread: i32) -> Result<(), Errno> {
    static PREPARED: OnceLock<Result<(), Errno>> = OnceLock::new();
    (*PREPARED.get_or_init(prepare))?;
    // SAFETY: takes numbers only. The handler below is in place and touches nothing, whichever thread has this number.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, INTERRUPTION) };
    check(sent).map(drop)
}

/// A signal without a handler is dropped before it interrupts anything.
fn prepare() -> Result<(), Errno> {
    // SAFETY: all-zero is a valid sigaction; the handler is a function that touches nothing. With SA_RESTART system calls that can
    // be restarted are.
    let set = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = do_nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(INTERRUPTION, &raw const action, std::ptr::null_mut())
    };
    check(set.into()).map(drop)
}
