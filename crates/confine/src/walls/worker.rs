//! A second process that works while PID 1 goes on: it does the two things in a launch for which the kernel makes a process
//! wait.
//!
//! Making a network namespace with nothing but loopback takes longest; unmounting the old root waits for every processor to
//! have noticed. Nothing else needs either before the program starts.

use super::{ErrorContext, WallError};
use crate::kernel::{self, SharedMemoryProcess};
use crate::wall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, futex, move_into_link_name_space};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// The second process.
pub(crate) struct Worker {
    process: SharedMemoryProcess,
    shared: Box<SharedPage>,
    /// The host's `/proc/sys`, as long as the network is being made.
    _settings: Option<OwnedFd>,
}

/// Memory shared by the two processes.
#[derive(Default)]
struct SharedPage {
    phase: AtomicU32,
    /// The directory of the kernel's settings; -1 for none.
    settings: AtomicI32,
    /// The network namespace, once it is made.
    network: AtomicI32,
    /// The failure, if there was one: an index of [`SUBJECTS`], and the errno.
    subject: AtomicUsize,
    errno: AtomicI32,
}

/// The network namespace is being made.
const MAKING: u32 = 0;
/// It is there; PID 1 has not changed its root yet.
const MADE: u32 = 1;
/// PID 1 has changed its root, and the old one is on top of the new.
const PIVOTED: u32 = 2;
/// The worker has failed; no result will follow.
const FAILED: u32 = 3;

/// Subjects of failures.
const SUBJECTS: [&str; 4] = ["unshare", "lo", "ns/net", "old root"];

// === impl Worker ===

impl Worker {
    /// Starts a worker that makes the network namespace. It shares the root and the working directory with this process
    /// from now on.
    pub(crate) fn begin() -> Result<Self, WallError> {
        let shared = Box::<SharedPage>::default();
        // Opened here: the root changes while the network is being made.
        let settings = kernel_settings().ok();
        shared.settings.store(settings.as_ref().map_or(-1, AsRawFd::as_raw_fd), Ordering::Relaxed);
        // SAFETY: `work` calls the kernel directly and touches no memory but `shared`, which is made of atomics and
        // lives on the heap until the process is gone, whatever becomes of `self`.
        let process = unsafe { kernel::run_beside(work, &raw const *shared) }.about("worker")?;
        Ok(Self { process, shared, _settings: settings })
    }

    /// Waits for the network and moves into it.
    pub(crate) fn enter_network(&mut self) -> Result<(), WallError> {
        /// Interval of the checks that the other process still lives.
        const PATIENCE: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };
        while self.shared.phase.load(Ordering::Acquire) == MAKING {
            match futex::wait(&self.shared.phase, futex::Flags::PRIVATE, MAKING, Some(&PATIENCE)) {
                Err(Errno::TIMEDOUT) if self.process.has_ended().about("worker")? => {
                    return Err(Errno::CANCELED).about("worker");
                }
                _ => {}
            }
        }
        self.shared.verdict()?;
        // SAFETY: the worker opened it in the table that it shares with this process, and closes it nowhere.
        let namespace = unsafe { OwnedFd::from_raw_fd(self.shared.network.load(Ordering::Acquire)) };
        let network = Some(LinkNameSpaceType::Network);
        let namespace = namespace.as_fd();
        wall!(NetworkNamespace: move_into_link_name_space(namespace, network).about("network namespace")?, else ());
        Ok(())
    }

    /// Makes the worker unmount the old root, which lies on the new one.
    pub(crate) fn take_off_old_root(&self) -> Result<(), WallError> {
        match self.shared.phase.compare_exchange(MADE, PIVOTED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => futex::wake(&self.shared.phase, futex::Flags::PRIVATE, 1).about("worker").map(drop),
            Err(_) => self.shared.verdict(),
        }
    }

    /// Waits until it is done and gone.
    pub(crate) fn finish(mut self) -> Result<(), WallError> {
        self.process.wait().about("worker")?;
        match self.shared.phase.load(Ordering::Acquire) {
            PIVOTED => self.shared.verdict(),
            _ => Err(Errno::CANCELED).about("worker"),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It must not wait for a pivot that never comes.
        self.shared.phase.store(FAILED, Ordering::Release);
        let _ = futex::wake(&self.shared.phase, futex::Flags::PRIVATE, 1);
    }
}

// === impl SharedPage ===

impl SharedPage {
    fn fail(&self, subject: usize, errno: Errno) {
        self.subject.store(subject, Ordering::Relaxed);
        self.errno.store(errno.raw_os_error(), Ordering::Release);
    }

    fn verdict(&self) -> Result<(), WallError> {
        match self.errno.load(Ordering::Acquire) {
            0 => Ok(()),
            errno => {
                let subject = self.subject.load(Ordering::Relaxed);
                Err(Errno::from_raw_os_error(errno)).about(SUBJECTS.get(subject).unwrap_or(&"worker"))
            }
        }
    }
}

/// Main function of the worker.
extern "C" fn work(shared: &SharedPage) {
    let settings = match shared.settings.load(Ordering::Relaxed) {
        -1 => None,
        // SAFETY: PID 1 keeps it open until this process is gone.
        settings => Some(unsafe { BorrowedFd::borrow_raw(settings) }),
    };
    let made = make_network(settings);
    let phase = match made {
        Ok(network) => {
            shared.network.store(network, Ordering::Release);
            MADE
        }
        Err((subject, errno)) => {
            shared.fail(subject, errno);
            FAILED
        }
    };
    // PID 1 may have given up meanwhile.
    let _ = shared.phase.compare_exchange(MAKING, phase, Ordering::AcqRel, Ordering::Acquire);
    let _ = futex::wake(&shared.phase, futex::Flags::PRIVATE, 1);
    while shared.phase.load(Ordering::Acquire) == MADE {
        let _ = futex::wait(&shared.phase, futex::Flags::PRIVATE, MADE, None);
    }
    if shared.phase.load(Ordering::Acquire) == PIVOTED
        && let Err(errno) = take_off_old_root()
    {
        shared.fail(3, errno);
    }
}

/// Unmounts the old root, which lies on the new one.
pub(crate) fn take_off_old_root() -> Result<(), Errno> {
    let take_off = || unmount(c"/", UnmountFlags::DETACH);
    // Where the root was not pivoted, nothing is on top of it.
    wall!(Pivot: wall!(OldRoot: take_off(), else Ok(())), else Ok(()))
}

/// Sets the host name of a namespace of one's own.
pub(crate) fn set_host_name(name: &str) -> Result<(), Errno> {
    let set = || rustix::system::sethostname(name.as_bytes());
    wall!(HostName: wall!(UtsNamespace: set(), else Ok(())), else Ok(()))
}

/// Moves this process to a network of its own, with nothing but loopback.
pub(crate) fn enter_new_network() -> Result<(), WallError> {
    let settings = kernel_settings().ok();
    let made = new_network(settings.as_ref().map(AsFd::as_fd));
    made.map_err(|(subject, errno)| WallError { subject: SUBJECTS[subject].to_owned(), errno })
}

fn kernel_settings() -> Result<OwnedFd, Errno> {
    openat(CWD, c"/proc/sys", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn new_network(settings: Option<BorrowedFd<'_>>) -> Result<(), (usize, Errno)> {
    // SAFETY: leaves this process's shared descriptors as they are; only the network changes.
    let unshare = || unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
    wall!(NetworkNamespace: unshare(), else Ok(())).map_err(|errno| (0, errno))?;
    wall!(NetworkNamespace: kernel::bring_loopback_up().map_err(|errno| (1, errno))?, else ());
    wall!(NetworkNamespace: if let Some(settings) = settings { lower_socket_buffers(settings) }, else ());
    Ok(())
}

/// Lowers the size of the buffers that one socket may have, in a network in which everything is on one machine. All
/// networks of the machine share the limit of TCP memory (`net.ipv4.tcp_mem`). What a connection holds that no program has
/// accepted yet is charged to no control group: so connections begin small.
///
/// If settings can't be written, in a container for instance, the machine's own hold. Nothing depends on these alone.
fn lower_socket_buffers(settings: BorrowedFd<'_>) {
    let lower = [
        (c"net/ipv4/tcp_rmem", &b"4096 16384 1048576"[..]),
        (c"net/ipv4/tcp_wmem", &b"4096 16384 1048576"[..]),
        (c"net/core/somaxconn", &b"512"[..]),
    ];
    for (path, value) in lower {
        if let Ok(file) = openat(settings, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
            let _ = rustix::io::write(&file, value);
        }
    }
}

fn make_network(settings: Option<BorrowedFd<'_>>) -> Result<RawFd, (usize, Errno)> {
    new_network(settings)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = openat(CWD, c"/proc/self/ns/net", flags, Mode::empty()).map_err(|errno| (2, errno))?;
    Ok(namespace.into_raw_fd())
}
