//! Socket options that no safe library offers.

use super::check;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::Errno;

/// `SO_PASSRIGHTS` of `asm-generic/socket.h`, since Linux 6.16.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Makes a unix socket refuse descriptors: `sendmsg` with `SCM_RIGHTS` to it fails with `EPERM` from then on. Sockets that
/// a listener accepts inherit this. Fails with `ENOPROTOOPT` before Linux 6.16.
pub(crate) fn refuse_descriptors(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let off: libc::c_int = 0;
    // SAFETY: the kernel reads one int, which lives until the call returns and whose size is given.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    check(set.into()).map(drop)
}
