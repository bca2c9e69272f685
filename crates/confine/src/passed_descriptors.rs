//! Descriptors that a sandbox sends over a unix socket of the host (`SCM_RIGHTS`).
//!
//! The process that reads such a message closes what it doesn't take, and the last close of a socket with `SO_LINGER` sleeps in
//! the kernel for as long as the sender chose. Since Linux 6.16 a socket can refuse descriptors ([`refuse`]). On older kernels the
//! thread that reads may sleep: it must serve one run only, and [`interrupt`] ends its sleep.

use crate::kernel;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::Pid;

/// Result of making a socket refuse descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescriptorRefusal {
    /// The kernel refuses them: sending some fails with `EPERM`.
    ByKernel,
    /// This kernel has no such option (before Linux 6.16).
    Unsupported,
}

/// Makes a unix socket refuse descriptors, and with it every socket that it accepts from then on.
///
/// # Errors
/// The kernel's, except that it doesn't know the option.
pub fn refuse(socket: BorrowedFd<'_>) -> Result<DescriptorRefusal, Errno> {
    match kernel::refuse_descriptors(socket) {
        Ok(()) => Ok(DescriptorRefusal::ByKernel),
        Err(Errno::NOPROTOOPT) => Ok(DescriptorRefusal::Unsupported),
        Err(errno) => Err(errno),
    }
}

/// Interrupts what a thread of this process sleeps in, if a signal can interrupt it. A lingering close ends at once.
///
/// # Errors
/// The kernel's; `ESRCH` when the thread has ended.
pub fn interrupt(thread: Pid) -> Result<(), Errno> {
    kernel::interrupt(thread.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message;
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::net::sockopt::set_socket_linger;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    /// A socket whose last close sleeps for an hour, and its peer, which doesn't read.
    fn lingering() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        set_socket_linger(&ours, Some(Duration::from_secs(3_600))).unwrap();
        ours.set_nonblocking(true).unwrap();
        while ours.write(&[0; 65_536]).is_ok() {}
        (ours, theirs)
    }

    #[test]
    fn socket_that_refuses_descriptors_gets_none() {
        let (ours, theirs) = message::pair().unwrap();
        let control: OwnedFd = ours.as_fd().try_clone_to_owned().unwrap();
        message::send(theirs.as_fd(), b"x", &[control.as_fd()]).unwrap();
        if refuse(ours.as_fd()).unwrap() == DescriptorRefusal::ByKernel {
            assert_eq!(message::send(theirs.as_fd(), b"x", &[control.as_fd()]), Err(Errno::PERM));
        }
        message::send(theirs.as_fd(), b"x", &[]).unwrap();
    }

    #[test]
    fn interrupt_ends_a_lingering_close() {
        let (lingers, _peer) = lingering();
        let (id, told) = mpsc::channel();
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            id.send(rustix::thread::gettid()).unwrap();
            drop(lingers);
            done.send(()).unwrap();
        });
        let thread = told.recv().unwrap();
        // The control: without a signal it goes on sleeping.
        assert!(ended.recv_timeout(Duration::from_millis(500)).is_err());
        let given_up = Instant::now() + Duration::from_secs(30);
        loop {
            let _ = interrupt(thread);
            if ended.recv_timeout(Duration::from_millis(50)).is_ok() {
                break;
            }
            assert!(Instant::now() < given_up, "the close still sleeps");
        }
    }
}
