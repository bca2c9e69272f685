//! New processes: a copy, in new namespaces or in those that are there; one that becomes a program at once; and one that works
//! in the same memory.

use super::check;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The library's constant is too narrow for its value.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Result of `clone3`.
pub(crate) enum CloneResult {
    /// In the parent: the child's id and a descriptor for it.
    Parent { pid: i32, pidfd: OwnedFd },
    /// In the child.
    Child,
}

/// Forks into new namespaces, and into a control group of version 2 if one is given.
///
/// # Safety
/// The process must have one thread only: the child is a copy of that one, and locks held by others would stay held
/// in it for ever.
pub(crate) unsafe fn clone_into(
    namespaces: libc::c_int,
    group: Option<BorrowedFd<'_>>,
) -> Result<CloneResult, Errno> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all-zero is a valid clone_args: every field is an integer, zero meaning "not used".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = u64::from(namespaces.cast_unsigned() | libc::CLONE_PIDFD.cast_unsigned());
    arguments.pidfd = (&raw mut pidfd).addr() as u64;
    arguments.exit_signal = libc::SIGCHLD.cast_unsigned().into();
    if let Some(group) = group {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = u64::from(group.as_raw_fd().cast_unsigned());
    }
    // SAFETY: the arguments live until the call returns; without CLONE_VM the child has its own copy of memory.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    match check(pid)? {
        0 => Ok(CloneResult::Child),
        pid => {
            // SAFETY: the kernel has just stored a new descriptor there, and it has no other owner.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(CloneResult::Parent { pid: pid as i32, pidfd })
        }
    }
}

/// Runs `child` on a stack of its own in this process's memory and with its descriptors, as a child of this process's parent,
/// and returns when it has called `execve` or ended. A program that may signal `child` decides when that is, so PID 1 of a
/// sandbox never starts programs in this way.
///
/// # Safety
/// `child` shares all memory and, until it takes a copy, the table of descriptors with the caller, who stands still
/// meanwhile: it must not allocate, unwind, or leave anything behind that the caller doesn't expect.
pub(crate) unsafe fn run_until_exec<T>(
    child: extern "C" fn(&mut T) -> !,
    argument: &mut T,
) -> Result<i32, Errno> {
    extern "C" fn start<T>(start: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is the one passed to clone below, valid as long as the caller stands still.
        let start = unsafe { &mut *start.cast::<ChildStart<extern "C" fn(&mut T) -> !, *mut T>>() };
        // SAFETY: the caller's exclusive borrow is lent to the child until then.
        (start.child)(unsafe { &mut *start.argument })
    }
    let mut stack = Stack::new();
    let mut start_argument = ChildStart { child, argument: std::ptr::from_mut(argument) };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::CLONE_PARENT | libc::SIGCHLD;
    // SAFETY: stack and argument outlive the child's use of them, because the caller stands still (CLONE_VFORK).
    let pid = unsafe { libc::clone(start::<T>, stack.top(), flags, (&raw mut start_argument).cast()) };
    check(pid.into()).map(|pid| pid as i32)
}

/// A process that works in this process's memory at the same time.
pub(crate) struct SharedMemoryProcess {
    pid: i32,
    done: bool,
    // Used by the other process until it is gone.
    _stack: Stack,
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
) -> Result<SharedMemoryProcess, Errno> {
    extern "C" fn start<T>(start: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is the one passed to clone below; `SharedMemoryProcess` keeps what it points to.
        let start = unsafe { &mut *start.cast::<ChildStart<extern "C" fn(&T), *const T>>() };
        // SAFETY: promised by the caller of `run_beside`.
        (start.child)(unsafe { &*start.argument });
        0
    }
    let mut stack = Stack::new();
    let mut start_argument = Box::new(ChildStart { child: work, argument });
    let flags = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_FS | libc::SIGCHLD;
    // SAFETY: stack and argument are on the heap and stay there until `SharedMemoryProcess` has waited for the process.
    let pid = unsafe { libc::clone(start::<T>, stack.top(), flags, (&raw mut *start_argument).cast()) };
    let pid = check(pid.into())? as i32;
    Ok(SharedMemoryProcess { pid, done: false, _stack: stack, _start: start_argument })
}

struct ChildStart<F, P> {
    child: F,
    argument: P,
}

/// A stack for a process that shares memory. On the heap: of what is taken there, only the pages that are used are ever
/// made. In pieces that are aligned as the ABI wants it.
struct Stack(Box<[std::mem::MaybeUninit<u128>]>);

impl Stack {
    const BYTES: usize = 32 << 10;

    fn new() -> Self {
        Self(Box::new_uninit_slice(Self::BYTES / size_of::<u128>()))
    }

    /// Stacks grow down.
    fn top(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr_range().end.cast()
    }
}

// === impl SharedMemoryProcess ===

impl SharedMemoryProcess {
    /// Waits until the process is gone.
    pub(crate) fn wait(&mut self) -> Result<(), Errno> {
        self.collect(WaitIdOptions::EXITED)
    }

    /// Returns true if the process is gone.
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

impl Drop for SharedMemoryProcess {
    fn drop(&mut self) {
        // Its memory must not go before it does.
        let _ = self.wait();
    }
}

/// Forks. Returns the child's id, or `None` in the child.
///
/// # Safety
/// As for [`clone_into`].
pub(crate) unsafe fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: as promised.
    let pid = check(unsafe { libc::fork() }.into())?;
    Ok((pid != 0).then_some(pid as i32))
}
