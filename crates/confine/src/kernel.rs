//! System calls that no safe library offers, each behind a safe function, and the few that can't be made safe.

pub(crate) mod ask;
mod clone;
pub(crate) mod processes;
mod signals;
mod sockets;

pub(crate) use clone::{CloneResult, SharedMemoryProcess, clone_into, fork, run_beside, run_until_exec};
pub(crate) use processes::{held_bytes, kill_session, load};
pub(crate) use signals::interrupt;
pub(crate) use sockets::refuse_descriptors;

use crate::seccomp::program::Instruction;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::time::{Duration, Instant};

/// A child that has ended.
pub(crate) struct ReapedChild {
    pub(crate) pid: i32,
    /// Wait status, as `wait4` returns it.
    pub(crate) status: i32,
    pub(crate) usage: ResourceUsage,
}

/// Resources that processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceUsage {
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
    /// The kernel's `struct sigaction`, not the library's, which keeps two signals to itself.
    #[repr(C)]
    struct SignalAction {
        handler: usize,
        flags: libc::c_ulong,
        restorer: usize,
        mask: u64,
    }
    const LAST: libc::c_int = 64;
    let default = SignalAction { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };
    unblock_signals();
    // SAFETY: plain calls with valid arguments; SIG_DFL is no function of ours. The two signals for which it fails have
    // their default action always.
    unsafe {
        for signal in 1..=LAST {
            let (action, nothing) = (&raw const default, std::ptr::null_mut::<SignalAction>());
            libc::syscall(libc::SYS_rt_sigaction, signal, action, nothing, size_of::<u64>());
        }
    }
}

/// Blocks no signal any more.
pub(crate) fn unblock_signals() {
    // SAFETY: a plain call with valid arguments; an all-zero set is empty.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Sends a signal to every other process of a PID namespace that this one is the first of. Anywhere else it would be a
/// disaster.
pub(crate) fn signal_all_others(signal: i32) {
    if rustix::process::getpid().is_init() {
        // SAFETY: takes numbers only.
        unsafe { libc::kill(-1, signal) };
    }
}

/// Makes the kernel reap children of this process as soon as they end.
pub(crate) fn ignore_ended_children() {
    // SAFETY: SIG_IGN is no function of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: libc::c_uint) {
    // SAFETY: only called where no owned descriptor above `first` is used again: before exec, and in init.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
}

/// Gives this process its own table of descriptors, a copy of the shared one.
pub(crate) fn unshare_descriptors() -> Result<(), Errno> {
    // A range in which there is no descriptor: nothing is closed. (`unshare` itself is refused by the filter.)
    let (none, flags) = (libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE);
    // SAFETY: takes numbers only, and closes nothing.
    check(unsafe { libc::syscall(libc::SYS_close_range, none, none, flags) }).map(drop)
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
    attributes: MountAttrFlags,
    recursive: bool,
) -> Result<(), Errno> {
    let request =
        libc::mount_attr { attr_set: attributes.bits().into(), attr_clr: 0, propagation: 0, userns_fd: 0 };
    mount_setattr(mount, &request, recursive)
}

/// Makes a detached mount show its files as owned according to the maps of that user namespace.
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
    #[cfg(feature = "removable-walls")]
    let mut room = Instruction::room();
    #[cfg(feature = "removable-walls")]
    let program = Instruction::without_removed_checks(program, &mut room);
    let length = u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?;
    let filter =
        libc::sock_fprog { len: length, filter: program.as_ptr().cast::<libc::sock_filter>().cast_mut() };
    // SAFETY: `Instruction` has the layout of sock_filter; the kernel only reads, and copies before it returns.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const filter) })
}

/// Connects a socket to an address given as bytes.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(address.len()).map_err(|_| Errno::INVAL)?;
    // SAFETY: the kernel reads `length` bytes, which are there.
    let connected = unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) };
    check(connected.into()).map(drop)
}

/// Adds an inotify watch; returns its number.
pub(crate) fn watch(inotify: BorrowedFd<'_>, path: &str, mask: u32) -> Result<i64, Errno> {
    let path = std::ffi::CString::new(path).map_err(|_| Errno::INVAL)?;
    // SAFETY: the path is NUL-terminated and lives until the call returns.
    check(unsafe { libc::inotify_add_watch(inotify.as_raw_fd(), path.as_ptr(), mask) }.into())
}

/// Moves this process to a copy of its mount namespace.
pub(crate) fn leave_mount_namespace() -> Result<(), Errno> {
    // SAFETY: leaves descriptors as they are; only namespaces change.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }
}

/// Returns a descriptor that becomes readable when children end, instead of an interrupting signal.
pub(crate) fn children_descriptor() -> Result<OwnedFd, Errno> {
    // SAFETY: the set lives until the calls return; nothing but this process's own mask is changed.
    let descriptor = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    // SAFETY: the kernel has just made this descriptor, and it has no other owner.
    check(descriptor.into()).map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}

/// Enters a Landlock domain. Where the kernel's ABI has that, what domains that programs make in it deny is not written to the host's
/// audit log: they can make it deny as often as they like.
pub(crate) fn enter_landlock(ruleset: BorrowedFd<'_>, abi: u32) -> Result<(), Errno> {
    const LOG_SUBDOMAINS_OFF: u32 = 1 << 2;
    const FIRST_THAT_LOGS: u32 = 7;
    let flags = if abi >= FIRST_THAT_LOGS { LOG_SUBDOMAINS_OFF } else { 0 };
    // SAFETY: takes a descriptor and flags, no memory.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), flags) }).map(drop)
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

/// Reaps a child that has ended; `None` if none has.
pub(crate) fn reap() -> Result<Option<ReapedChild>, Errno> {
    wait(libc::WNOHANG)
}

/// Waits for a child to end, and reaps it. An error means that there is none.
pub(crate) fn wait_for_child() -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| wait(0)).map(drop)
}

fn wait(options: libc::c_int) -> Result<Option<ReapedChild>, Errno> {
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: status and usage outlive the call, which fills them.
    let pid = unsafe { libc::wait4(-1, &raw mut status, options, &raw mut usage) };
    let pid = check(pid.into())? as i32;
    Ok((pid != 0).then(|| ReapedChild { pid, status, usage: ResourceUsage::from(usage) }))
}

/// Sends a signal to a process group.
pub(crate) fn signal_group(group: i32, signal: i32) {
    // Numbers with a meaning of their own would address all processes.
    if group > 1 {
        // SAFETY: takes numbers only.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Returns the resources that all reaped children, and their children, have used.
pub(crate) fn usage_of_children() -> ResourceUsage {
    // SAFETY: all-zero is a valid rusage, and the call fills it.
    ResourceUsage::from(unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    })
}

impl From<libc::rusage> for ResourceUsage {
    fn from(usage: libc::rusage) -> Self {
        let duration = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec.unsigned_abs())
                + Duration::from_micros(time.tv_usec.unsigned_abs())
        };
        Self {
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            max_rss_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        }
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
        // Far apart they are not one block: then the program has moved one of the pointers.
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

/// Returns the number of threads of this process. A joined thread is still counted for a moment: more than one are counted
/// again.
pub(crate) fn thread_count() -> Result<u64, Errno> {
    const PATIENCE: Duration = Duration::from_millis(50);
    const STEP: Duration = Duration::from_micros(50);
    let since = Instant::now();
    loop {
        // The link count of a process's task directory is two more than its threads: one call instead of a listing.
        let count = rustix::fs::stat("/proc/self/task")?.st_nlink.saturating_sub(2);
        if count <= 1 || since.elapsed() > PATIENCE {
            return Ok(count);
        }
        std::thread::sleep(STEP);
    }
}

/// Makes this terminal the controlling one of a session just made.
pub(crate) fn take_terminal(terminal: impl AsFd) -> Result<(), Errno> {
    rustix::process::ioctl_tiocsctty(terminal)
}
