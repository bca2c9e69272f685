//! The network: a namespace of its own, in which there is loopback and nothing else.
//!
//! Making one is the dearest thing in a launch, and nothing else waits for it. So a second process makes it while
//! PID 1 builds the root, and PID 1 enters it when both are done.

use super::{About, Fault};
use crate::kernel::{self, Beside};
use rustix::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// A network namespace that is being made.
pub(crate) struct Network {
    worker: Beside,
    made: Box<Made>,
}

/// What the second process leaves: the namespace's descriptor, or what failed. It is read when that process is gone.
type Made = Result<RawFd, (&'static str, Errno)>;

// === impl Network ===

impl Network {
    /// Has a second process begin.
    pub(crate) fn begin() -> Result<Self, Fault> {
        let mut made: Box<Made> = Box::new(Err(("worker", Errno::CANCELED)));
        // SAFETY: `make` calls the kernel directly and touches no memory but `made`, which lives on the heap until
        // the worker is gone, whatever becomes of `self`.
        let worker = unsafe { kernel::run_beside(make, std::ptr::from_mut(&mut *made)) }.about("worker")?;
        Ok(Self { worker, made })
    }

    /// Waits for it and moves into what it made.
    pub(crate) fn enter(mut self, hostname: &str) -> Result<(), Fault> {
        self.worker.wait().about("worker")?;
        let descriptor =
            (*self.made).map_err(|(subject, errno)| Fault { subject: subject.to_owned(), errno })?;
        // SAFETY: the worker opened it in the table that it shared with this process, and closed it nowhere.
        let namespace = unsafe { OwnedFd::from_raw_fd(descriptor) };
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Network))
            .about("network namespace")?;
        rustix::system::sethostname(hostname.as_bytes()).about("host name")
    }
}

/// Is the second process.
extern "C" fn make(made: &mut Made) {
    *made = make_namespace();
}

fn make_namespace() -> Made {
    // SAFETY: leaves this process's shared descriptors as they are; only the network changes.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(|errno| ("unshare", errno))?;
    kernel::bring_loopback_up().map_err(|errno| ("lo", errno))?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace =
        openat(CWD, c"/proc/self/ns/net", flags, Mode::empty()).map_err(|errno| ("ns/net", errno))?;
    Ok(namespace.into_raw_fd())
}
