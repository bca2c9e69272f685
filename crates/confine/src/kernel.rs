//! System calls that no safe library offers, each behind a safe function, and the few that can't be made safe.

use crate::seccomp::program::Instruction;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::CStr;
use std::time::Duration;

/// What `clone3` returned.
pub(crate) enum Cloned {
    /// In the parent: the child's id and a descriptor for it.
    Parent { pid: i32, pidfd: OwnedFd },
    /// In the child.
    Child,
}

/// A child that has ended.
pub(crate) struct Reaped {
    pub(crate) pid: i32,
    /// As `wait4` gives it.
    pub(crate) status: i32,
}

/// What processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, user and system.
    pub cpu: Duration,
    /// The largest resident set of any one process, in bytes.
    pub max_rss_bytes: u64,
}

fn check(result: libc::c_long) -> Result<libc::c_long, Errno> {
    match result {
        -1 => Err(last_errno()),
        value => Ok(value),
    }
}

fn last_errno() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}

/// Forks into new namespaces.
///
/// # Safety
/// The process must have one thread only: the child is a copy of that one, and locks held by others would stay held
/// in it for ever.
pub(crate) unsafe fn clone_into(namespaces: libc::c_int) -> Result<Cloned, Errno> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all-zero is a valid clone_args: every field is an integer, zero meaning "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = u64::from(namespaces.cast_unsigned() | libc::CLONE_PIDFD.cast_unsigned());
    arguments.pidfd = (&raw mut pidfd).addr() as u64;
    arguments.exit_signal = libc::SIGCHLD.cast_unsigned().into();
    // SAFETY: the arguments live until the call returns; without CLONE_VM the child has its own copy of memory.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    match check(pid)? {
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the kernel has just stored a new descriptor there, and nobody else has it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid: pid as i32, pidfd })
        }
    }
}

/// Runs `child` on a stack of its own in this process's memory, and returns when it has called `execve` or ended.
///
/// # Safety
/// `child` shares all memory with the caller, who stands still meanwhile: it must not allocate, unwind, or leave
/// anything behind that the caller doesn't expect.
pub(crate) unsafe fn run_until_exec<T>(
    child: extern "C" fn(&mut T) -> !,
    argument: &mut T,
) -> Result<i32, Errno> {
    extern "C" fn start<T>(start: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is the one passed to clone below, valid as long as the caller stands still.
        let start = unsafe { &mut *start.cast::<Start<extern "C" fn(&mut T) -> !, *mut T>>() };
        // SAFETY: the caller's exclusive borrow is lent to the child until then.
        (start.child)(unsafe { &mut *start.argument })
    }
    let mut stack = Stack::new();
    let mut start_argument = Start { child, argument: std::ptr::from_mut(argument) };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: stack and argument outlive the child's use of them, because the caller stands still (CLONE_VFORK).
    let pid = unsafe { libc::clone(start::<T>, stack.top(), flags, (&raw mut start_argument).cast()) };
    check(pid.into()).map(|pid| pid as i32)
}

/// A process that works in this process's memory at the same time.
pub(crate) struct Beside {
    pid: i32,
    done: bool,
    // Used by the other process until it is gone.
    _stack: Box<Stack>,
    _start: Box<dyn std::any::Any>,
}

/// Runs `work` in a second process that shares memory, descriptors, root and working directory with this one, at the
/// same time.
///
/// # Safety
/// `work` must not allocate, unwind, or use anything of the C library (`errno` is shared, too). `argument` must live
/// until it has been waited for.
pub(crate) unsafe fn run_beside<T: Sync + 'static>(
    work: extern "C" fn(&T),
    argument: *const T,
) -> Result<Beside, Errno> {
    extern "C" fn start<T>(start: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is the one passed to clone below; `Beside` keeps what it points to.
        let start = unsafe { &mut *start.cast::<Start<extern "C" fn(&T), *const T>>() };
        // SAFETY: promised by the caller of `run_beside`.
        (start.child)(unsafe { &*start.argument });
        0
    }
    let mut stack = Box::new(Stack::new());
    let mut start_argument = Box::new(Start { child: work, argument });
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::SIGCHLD;
    // SAFETY: stack and argument are on the heap and stay there until `Beside` has waited for the process.
    let pid = unsafe { libc::clone(start::<T>, stack.top(), flags, (&raw mut *start_argument).cast()) };
    let pid = check(pid.into())? as i32;
    Ok(Beside { pid, done: false, _stack: stack, _start: start_argument })
}

struct Start<F, P> {
    child: F,
    argument: P,
}

/// A stack for a process that shares memory. Aligned as the ABI wants it.
#[repr(align(16))]
struct Stack([std::mem::MaybeUninit<u8>; Self::BYTES]);

impl Stack {
    const BYTES: usize = 32 << 10;

    fn new() -> Self {
        Self([std::mem::MaybeUninit::uninit(); Self::BYTES])
    }

    /// Stacks grow down.
    fn top(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr_range().end.cast()
    }
}

// === impl Beside ===

impl Beside {
    /// Waits until the process is gone.
    pub(crate) fn wait(&mut self) -> Result<(), Errno> {
        self.collect(WaitIdOptions::EXITED)
    }

    /// Whether the process is gone.
    pub(crate) fn has_ended(&mut self) -> Result<bool, Errno> {
        self.collect(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
        Ok(self.done)
    }

    fn collect(&mut self, options: WaitIdOptions) -> Result<(), Errno> {
        let pid = Pid::from_raw(self.pid).ok_or(Errno::CHILD)?;
        if !self.done {
            self.done = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options))?.is_some();
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Its memory must not go before it does.
        let _ = self.wait();
    }
}

/// Replaces this process's program. Returns only to say why not.
pub(crate) fn execve(program: &CStr, argv: &[*const libc::c_char], env: &[*const libc::c_char]) -> Errno {
    debug_assert!(argv.last().is_some_and(|last| last.is_null()));
    debug_assert!(env.last().is_some_and(|last| last.is_null()));
    // SAFETY: both arrays end in a null pointer and hold NUL-terminated strings; callers build them from CStrings.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last_errno()
}

/// Ends this process at once, without running anything of the copied program's exit.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit runs no handlers and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Gives all signals their default action and unblocks them.
pub(crate) fn reset_signals() {
    // SAFETY: plain calls with valid arguments; SIG_DFL is no function of ours, and an all-zero set is empty.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for signal in [libc::SIGPIPE, libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGCHLD]
        {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

/// Kills every other process of a PID namespace that this one is the first of. Anywhere else it would be a disaster.
pub(crate) fn kill_all_others() {
    if rustix::process::getpid().is_init() {
        // SAFETY: takes numbers only.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Has the kernel collect children of this process as soon as they end.
pub(crate) fn ignore_ended_children() {
    // SAFETY: SIG_IGN is no function of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: libc::c_uint) {
    // SAFETY: only called where no owned descriptor above `first` is used again: before exec, and in init.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
}

/// Closes every descriptor but these.
pub(crate) fn close_all_but(kept: &mut [BorrowedFd<'_>]) {
    kept.sort_unstable_by_key(AsRawFd::as_raw_fd);
    let mut first = 0;
    for kept in kept.iter().map(|kept| kept.as_raw_fd().cast_unsigned()) {
        if first < kept {
            // SAFETY: as in `close_from`; init forgets all descriptors but those that it keeps.
            unsafe { libc::syscall(libc::SYS_close_range, first, kept - 1, 0) };
        }
        first = kept + 1;
    }
    close_from(first);
}

/// Sets attributes of a mount and of all below it.
pub(crate) fn set_mount_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    recursive: bool,
) -> Result<(), Errno> {
    let request = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    mount_setattr(mount, &request, recursive)
}

/// Has a detached mount show its files as owned according to the maps of that user namespace.
pub(crate) fn set_mount_identity(mount: BorrowedFd<'_>, user_namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    let request = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.as_raw_fd().cast_unsigned().into(),
    };
    mount_setattr(mount, &request, true)
}

fn mount_setattr(mount: BorrowedFd<'_>, request: &libc::mount_attr, recursive: bool) -> Result<(), Errno> {
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty string, the request lives until the call returns and its size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(request),
            size_of::<libc::mount_attr>(),
        )
    };
    check(result).map(drop)
}

/// Puts the system call filter up for this thread and all that come from it.
pub(crate) fn install_filter(program: &[Instruction]) -> Result<(), Errno> {
    set_filter(program, 0).map(drop)
}

fn set_filter(program: &[Instruction], flags: libc::c_ulong) -> Result<libc::c_long, Errno> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    let length = u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?;
    let filter =
        libc::sock_fprog { len: length, filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut() };
    // SAFETY: `Instruction` has the layout of sock_filter; the kernel only reads, and copies before it returns.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const filter) })
}

/// Puts a filter up whose questions come to the descriptor that this returns.
pub(crate) fn install_guard(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let listening = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // A caller that waits for its answer is not called away by signals, so no question is asked twice. Older kernels
    // than 5.19 don't know that.
    match set_filter(program, listening | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(Errno::INVAL) => set_filter(program, listening),
        set => set,
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    .map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// A question of a guarded process.
pub(crate) struct Question {
    pub(crate) id: u64,
    /// The thread that asks.
    pub(crate) thread: i32,
    pub(crate) arguments: [u64; 6],
}

/// Takes the next question.
pub(crate) fn take_question(listener: BorrowedFd<'_>) -> Result<Question, Errno> {
    // SAFETY: all-zero is a valid seccomp_notif, and what the kernel wants before it fills it.
    let mut request: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the request is what this call fills, and lives until it returns.
    let taken =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut request) };
    check(taken.into())?;
    Ok(Question { id: request.id, thread: request.pid.cast_signed(), arguments: request.data.args })
}

/// Whether whoever asked still waits, so that its thread id has not become another's.
pub(crate) fn is_still_asked(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the id is what this call reads, and lives until it returns.
    let valid =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) };
    valid == 0
}

/// Gives the answer: what the call returns to whoever made it.
pub(crate) fn answer_question(listener: BorrowedFd<'_>, id: u64, answer: Result<(), Errno>) {
    let error = answer.err().map_or(0, |errno| -errno.raw_os_error());
    let response = libc::seccomp_notif_resp { id, val: 0, error, flags: 0 };
    // SAFETY: the response is what this call reads, and lives until it returns. If whoever asked is gone, nothing is
    // left to be done.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
}

/// Takes a copy of a descriptor of the thread's process.
pub(crate) fn take_descriptor(thread: i32, descriptor: i32) -> Result<OwnedFd, Errno> {
    const PIDFD_THREAD: libc::c_uint = libc::O_EXCL as libc::c_uint;
    // SAFETY: takes numbers only.
    let open = |flags: libc::c_uint| check(unsafe { libc::syscall(libc::SYS_pidfd_open, thread, flags) });
    // Kernels before 6.9 have descriptors for the first thread of a process only.
    let pidfd = match open(PIDFD_THREAD) {
        Err(Errno::INVAL) => open(0),
        opened => opened,
    }?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd as i32) };
    // SAFETY: takes numbers only.
    let taken = unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd.as_raw_fd(), descriptor, 0) };
    // SAFETY: as above.
    check(taken).map(|taken| unsafe { OwnedFd::from_raw_fd(taken as i32) })
}

/// Connects a socket to an address given as bytes.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel reads `length` bytes, which are there.
    let connected = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    check(connected.into()).map(drop)
}

/// Forks. Returns the child's id, or nothing in the child.
///
/// # Safety
/// As for [`clone_into`].
pub(crate) unsafe fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: as promised.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok((pid != 0).then_some(pid as i32))
}

/// Moves this process to a copy of its mount namespace.
pub(crate) fn leave_mount_namespace() -> Result<(), Errno> {
    // SAFETY: leaves descriptors as they are; only namespaces change.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }
}

/// Has ended children make a descriptor readable instead of interrupting.
pub(crate) fn children_descriptor() -> Result<OwnedFd, Errno> {
    // SAFETY: the set lives until the calls return; nothing but this process's own mask is changed.
    let descriptor = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    check(descriptor.into()).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Enters a Landlock domain.
pub(crate) fn enter_landlock(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes a descriptor and flags, no memory.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// The Landlock ABI that this kernel offers; 0 for none.
pub fn landlock_abi() -> u32 {
    const CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no memory and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// Brings the loopback interface of this network namespace up. Uses nothing of the C library.
pub(crate) fn bring_loopback_up() -> Result<(), Errno> {
    use rustix::ioctl::{Setter, ioctl};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all-zero is a valid ifreq: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which this is.
    unsafe { ioctl(&socket, Setter::<{ libc::SIOCSIFFLAGS as rustix::ioctl::Opcode }, _>::new(request)) }
}

/// Takes a child that has ended; nothing if none has.
pub(crate) fn reap() -> Result<Option<Reaped>, Errno> {
    let mut status = 0;
    // SAFETY: the status is a plain integer that outlives the call; no usage is asked for.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, std::ptr::null_mut()) };
    let pid = check(pid.into())?;
    Ok((pid != 0).then_some(Reaped { pid: pid as i32, status }))
}

/// What all children waited for have used, and theirs.
pub(crate) fn usage_of_children() -> Usage {
    // SAFETY: all-zero is a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    Usage {
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    }
}

/// Overwrites what this process was started with: the host's arguments, which anyone may read in `/proc/1/cmdline`,
/// and its environment, which PID 1 must not keep.
pub(crate) fn wipe_arguments_and_environment(name: &CStr) {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
        static program_invocation_name: *mut libc::c_char;
    }
    // SAFETY: only one thread exists here, and the strings are this process's to change. The kernel puts arguments
    // and environment in one block, arguments first, each string ending in NUL; the array of the environment ends in
    // a null pointer. The C library keeps a pointer to the first argument. Nothing reads either afterwards.
    unsafe {
        let first = program_invocation_name;
        let mut end = first.add(libc::strlen(first));
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            end = (*entry).add(libc::strlen(*entry));
            entry = entry.add(1);
        }
        // Far apart they are not one block: then somebody has moved one of the pointers.
        const LARGEST_BLOCK: usize = 8 << 20;
        if first < end && end.addr() - first.addr() < LARGEST_BLOCK {
            std::ptr::write_bytes(first, 0, end.offset_from_unsigned(first));
            let shown = name.to_bytes().len().min(end.offset_from_unsigned(first));
            std::ptr::copy_nonoverlapping(name.as_ptr(), first, shown);
        }
        if !environ.is_null() {
            *environ = std::ptr::null_mut();
        }
    }
}

/// How many threads this process has.
pub(crate) fn thread_count() -> Result<u64, Errno> {
    // The link count of a process's task directory is two more than its threads: one call instead of a listing.
    rustix::fs::stat("/proc/self/task").map(|stat| stat.st_nlink.saturating_sub(2))
}

/// Takes this terminal as the controlling one of a session just made.
pub(crate) fn take_terminal(terminal: impl AsFd) -> Result<(), Errno> {
    rustix::process::ioctl_tiocsctty(terminal)
}
