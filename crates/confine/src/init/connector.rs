//! Answers the questions of guarded processes ([`crate::seccomp::policy::guard`]), and connects sockets on their behalf.
//!
//! PID 1 itself takes nothing that a program gives it: it would wait where the program makes it wait. A worker does, a
//! process of its own for each question.
//!
//! Everything that the caller could change while it waits is taken once, before anything is decided: the socket
//! itself, the address, the directory that a relative path begins in. A path is opened, and what was opened is
//! connected to, so that no name leads anywhere else in between.
//!
//! A local socket is connected to if it lies in the sandbox's own memory or in an overlay. In a directory of the host, a
//! socket may belong to any process: it is connected to only if one of the sandbox's own sockets listens at it
//! ([`own_sockets`]).

use super::caller::{self, open, read_memory};
use super::sandbox_state::OwnResources;
use super::{attributes, filters, linger, own_sockets, poll_tables, reservation, watches};
use crate::kernel;
use crate::kernel::ask::{self, SeccompNotification};
use crate::wall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::net::AddressFamily;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// Answers the questions of one sandbox.
pub(super) struct Connector {
    listener: OwnedFd,
    own: Rc<OwnResources>,
    /// Processes that answer, each with its question.
    workers: Vec<(i32, u64)>,
    /// The worker that reserves space: one at a time, so that all together are no faster than one.
    reserving: Option<i32>,
    /// Questions for space that wait for it.
    reservations: VecDeque<SeccompNotification>,
}

/// Arguments of one `connect`.
struct ConnectCall {
    socket: OwnedFd,
    address: Vec<u8>,
    /// Directory in which a relative path begins.
    directory: OwnedFd,
}

/// The longest address that any family has (`sockaddr_storage`).
const LONGEST_ADDRESS: u64 = 128;

/// Maximum number of waiting requests for space whose callers may be gone.
const MOST_RESERVATIONS: usize = 1024;

/// Length of the address family at the beginning of an address, in bytes; a path begins behind it.
const FAMILY_BYTES: usize = 2;

// === impl Connector ===

impl Connector {
    pub(super) fn new(listener: OwnedFd, own: Rc<OwnResources>) -> Self {
        Self { listener, own, workers: Vec::new(), reserving: None, reservations: VecDeque::new() }
    }

    /// Handles the end of a child process. If it was a worker and was killed before it could answer, its question is
    /// answered now: otherwise the caller would wait for ever.
    pub(super) fn child_ended(&mut self, pid: i32) {
        if let Some(at) = self.workers.iter().position(|(worker, _)| *worker == pid) {
            let (_, question) = self.workers.swap_remove(at);
            let is_reservation = self.reserving == Some(pid);
            let error = if is_reservation { Errno::NOMEM } else { Errno::CONNABORTED };
            // This has no effect on a question that was answered already.
            ask::answer_question(self.listener(), question, Err(error));
            if is_reservation {
                self.reserving = None;
                self.reserve_next();
            }
        }
    }

    /// Descriptor on which questions come in.
    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one question.
    pub(super) fn answer_one(&mut self) {
        // The caller may be gone already.
        let Ok(question) = ask::take_question(self.listener()) else { return };
        match i64::from(question.number) {
            // Takes nothing of the caller's but numbers.
            libc::SYS_seccomp | libc::SYS_prctl => filters::answer(self.listener(), &question, &self.own),
            libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6 => {
                poll_tables::answer(self.listener(), &question, &self.own);
            }
            libc::SYS_setsockopt if question.arguments[2] as u32 != libc::SO_LINGER as u32 => {
                // The size of a buffer: succeeds without effect.
                ask::answer_question(self.listener(), question.id, Ok(()));
            }
            libc::SYS_fallocate => {
                self.await_reservation(question);
                self.reserve_next();
            }
            _ => drop(self.answer_in_worker(&question)),
        }
    }

    fn await_reservation(&mut self, question: SeccompNotification) {
        if self.reservations.len() >= MOST_RESERVATIONS {
            let listener = self.listener.as_fd();
            self.reservations.retain(|waiting| ask::is_still_asked(listener, waiting.id));
        }
        match self.reservations.len() {
            MOST_RESERVATIONS.. => ask::answer_question(self.listener(), question.id, Err(Errno::AGAIN)),
            _ => self.reservations.push_back(question),
        }
    }

    /// Reserves space for the next waiting request, unless another one is in progress.
    fn reserve_next(&mut self) {
        while self.reserving.is_none()
            && let Some(question) = self.reservations.pop_front()
        {
            self.reserving = self.answer_in_worker(&question);
        }
    }

    /// Answers in a process of its own, which alone takes what the caller names: a descriptor, a path, memory. Each of them
    /// can make a process wait for as long as the caller likes: the last `close` of a descriptor, a lookup in a file system
    /// that doesn't answer. PID 1 has to go on. `None` if there can be no such process; then it is answered.
    fn answer_in_worker(&mut self, question: &SeccompNotification) -> Option<i32> {
        // SAFETY: PID 1 has a single thread.
        match unsafe { kernel::fork() } {
            Ok(Some(worker)) => {
                self.workers.push((worker, question.id));
                Some(worker)
            }
            Ok(None) => {
                match i64::from(question.number) {
                    libc::SYS_inotify_add_watch => watches::answer(self.listener(), question, &self.own),
                    libc::SYS_setsockopt => linger::answer(self.listener(), question),
                    libc::SYS_fallocate => reservation::answer(self.listener(), question),
                    libc::SYS_setxattr | libc::SYS_lsetxattr | libc::SYS_fsetxattr => {
                        attributes::answer(self.listener(), question);
                    }
                    _ => self.answer_connect(question),
                }
                // Closes what was taken, too: the end of a process doesn't linger at a socket, `close` may.
                kernel::exit_now(0)
            }
            Err(_) => {
                ask::answer_question(self.listener(), question.id, Err(Errno::AGAIN));
                None
            }
        }
    }

    /// Connects. What was taken stays open until the worker ends.
    fn answer_connect(&self, question: &SeccompNotification) {
        caller::answer(self.listener(), question, ConnectCall::take, |taken| self.connect(taken));
    }

    fn connect(&self, connection: &ConnectCall) -> Result<(), Errno> {
        let ConnectCall { socket, address, directory } = connection;
        let path = match rustix::net::sockopt::socket_domain(socket)? {
            AddressFamily::UNIX => address.get(FAMILY_BYTES..).unwrap_or_default(),
            _ => &[],
        };
        // Another family, no name at all, or an abstract name: that belongs to the network namespace.
        if path.first().is_none_or(|first| *first == 0) {
            return kernel::connect(socket.as_fd(), address);
        }
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let path = Path::new(OsStr::from_bytes(path));
        let found = openat(directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let stat = fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(Errno::CONNREFUSED);
        }
        let check = || match self.own.has_device(stat.st_dev) {
            true => Ok(()),
            false => own_sockets::check(&found, &stat),
        };
        wall!(OwnSockets: check()?, else ());
        let mut exactly_that = address[..FAMILY_BYTES].to_vec();
        exactly_that.extend_from_slice(format!("/proc/self/fd/{}\0", found.as_raw_fd()).as_bytes());
        kernel::connect(socket.as_fd(), &exactly_that)
    }
}

// === impl ConnectCall ===

impl ConnectCall {
    fn take(question: &SeccompNotification) -> Result<Self, Errno> {
        let [socket, pointer, length, ..] = question.arguments;
        // The kernel looks at the low 32 bits of both, too.
        let (socket, length) = (socket as u32, length as u32);
        if u64::from(length) > LONGEST_ADDRESS {
            return Err(Errno::INVAL);
        }
        // Closed by the end of the worker alone, also where one of the next steps fails: `close` may wait.
        let socket = ManuallyDrop::new(ask::take_descriptor(question.thread, socket.cast_signed())?);
        let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
        let address = read_memory(question.thread, pointer, length)?;
        let directory = open(question.thread, "cwd", OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Self { socket: ManuallyDrop::into_inner(socket), address, directory })
    }
}
