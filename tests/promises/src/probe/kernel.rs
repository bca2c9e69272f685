//! Raw system calls.
//!
//! None of this is sound in Rust's sense: a call with arbitrary arguments can do anything to the process that makes it.
//! That is the purpose of the probe. It makes such calls in processes that exist for one attempt each.

use std::arch::asm;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The error of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

/// Makes a system call.
pub(crate) fn call(number: u32, arguments: [u64; 6]) -> Result<i64, Errno> {
    let [a, b, c, d, e, f] = arguments;
    let returned: i64;
    // SAFETY: the arguments come from an attempt, and point to memory that it keeps; the process exists for the
    // attempt.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") u64::from(number) => returned,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result(returned)
}

/// Makes a system call by its libc constant.
pub(crate) fn call_named(number: libc::c_long, arguments: [u64; 6]) -> Result<i64, Errno> {
    call(number as u32, arguments)
}

/// Makes a system call by the entry point for 32-bit programs. Pointers don't fit, so arguments are numbers.
pub(crate) fn call_i386(number: u32, [a, b, c]: [u32; 3]) -> Result<i64, Errno> {
    let returned: u32;
    // SAFETY: as for `call`; the compiler reserves a register that the entry point needs, so it is restored.
    unsafe {
        asm!(
            "xchg rbx, {first}",
            "int 0x80",
            "xchg rbx, {first}",
            first = inout(reg) u64::from(a) => _,
            inlateout("eax") number => returned,
            in("ecx") b, in("edx") c,
            lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _,
        );
    }
    result(returned.cast_signed().into())
}

fn result(returned: i64) -> Result<i64, Errno> {
    match returned {
        -4095..=-1 => Err(Errno((-returned) as i32)),
        value => Ok(value),
    }
}

/// Forks. Returns `None` in the child and the child's process id in the parent.
pub(crate) fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: the probe has a single thread at every fork.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        -1 => Err(last_errno()),
        pid => Ok(Some(pid)),
    }
}

/// Creates a process by `vfork` that exits at once with code 0. It borrows this process's stack, so it must not return.
pub(crate) fn vfork_and_end() -> Result<i32, Errno> {
    let returned: i64;
    // SAFETY: the child leaves the assembly only by exiting, and accesses no memory.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov edi, 0",
            "mov eax, 231",
            "syscall",
            "2:",
            inlateout("rax") libc::SYS_vfork => returned,
            lateout("rdi") _, lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result(returned).map(|pid| pid as i32)
}

/// Duplicates a descriptor to a high number that no attempt uses.
pub(crate) fn move_up(descriptor: OwnedFd) -> OwnedFd {
    const HIGH: libc::c_int = 900;
    // SAFETY: duplicates a descriptor that is ours; the new descriptor has no other owner.
    unsafe {
        match libc::fcntl(descriptor.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) {
            -1 => descriptor,
            high => OwnedFd::from_raw_fd(high),
        }
    }
}

/// Exits this process at once.
pub(crate) fn end(code: i32) -> ! {
    // SAFETY: runs no handlers.
    unsafe { libc::_exit(code) }
}

/// Waits for a child, and returns its status in the format of `wait4`.
pub(crate) fn wait_for(pid: i32) -> Result<i32, Errno> {
    let mut status = 0;
    loop {
        // SAFETY: the status lives until the call returns.
        match unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) } {
            -1 if last_errno() == Errno(libc::EINTR) => {}
            -1 => return Err(last_errno()),
            _ => return Ok(status),
        }
    }
}

fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or_default())
}

/// Runs machine code that returns a number and touches nothing.
pub(crate) fn run_code(address: u64) -> u32 {
    let code = std::ptr::with_exposed_provenance::<()>(address as usize);
    // SAFETY: the caller has put a function of this type there, and made it executable.
    let code: extern "C" fn() -> u32 = unsafe { std::mem::transmute(code) };
    code()
}

/// Puts bytes at an address that the caller has mapped.
pub(crate) fn put(address: u64, bytes: &[u8]) {
    let to = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the caller has mapped at least that much there, writable.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

/// Returns the bytes at an address that the caller has mapped and that isn't written meanwhile.
pub(crate) fn look<'m>(address: u64, length: usize) -> &'m [u8] {
    let from = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the caller has mapped at least that much there.
    unsafe { std::slice::from_raw_parts(from, length) }
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// Handles a signal from now on by counting it, on an alternate stack.
pub(crate) fn handle(signal: i32) {
    let stack = Box::leak(Box::new([0_u8; 64 << 10]));
    let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
    // SAFETY: the stack is never freed, and the handler touches only an atomic.
    unsafe {
        libc::sigaltstack(&raw const stack, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Returns the number of handled signals.
pub(crate) fn handled() -> u32 {
    HANDLED.load(Ordering::SeqCst)
}

/// Ignores a signal.
pub(crate) fn ignore(signal: i32) {
    // SAFETY: SIG_IGN runs no code of this program.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}
