//! Operations that a list of calls can't express.

use super::kernel::{self, Errno, call_named};
use super::machine::StepStop;
use super::{exhaust, leave};
use belljar_promises::attempt::{ForkMethod, KernelEntry, SpecialAct};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The return value of an act, and the text for its answer.
type ActResult = Result<(i64, String), StepStop>;

/// Carries out an act.
pub(super) fn act(act: &SpecialAct) -> ActResult {
    let silent = |returned: i64| (returned, String::new());
    match act {
        SpecialAct::Fork { by, flags } => fork(*by, *flags).map(silent),
        SpecialAct::Threads { count } => threads(*count).map(silent),
        SpecialAct::Run { command, directory } => run(command, directory),
        SpecialAct::Foreign { entry: KernelEntry::I386, number, arguments } => {
            Ok(silent(kernel::call_i386(*number, *arguments)?))
        }
        SpecialAct::Foreign { entry: KernelEntry::X32, number, arguments: [a, b, c] } => {
            const X32_BIT: u32 = 0x4000_0000;
            let arguments = [u64::from(*a), u64::from(*b), u64::from(*c), 0, 0, 0];
            Ok(silent(kernel::call(X32_BIT | number, arguments)?))
        }
        SpecialAct::Compile => compile().map(silent),
        SpecialAct::Handle => handle().map(silent),
        SpecialAct::Resume => resume().map(silent),
        SpecialAct::Trace => trace().map(silent),
        SpecialAct::Exhaust { what, most } => exhaust::exhaust(*what, *most).map(silent),
        SpecialAct::Leave { how, mark } => leave::leave(*how, mark).map(silent),
    }
}

/// Creates a process that exits with code 0, and returns that code.
fn fork(by: ForkMethod, flags: u64) -> Result<i64, StepStop> {
    let child = match by {
        ForkMethod::Vfork => i64::from(kernel::vfork_and_end()?),
        ForkMethod::Fork => call_named(libc::SYS_fork, [0; 6])?,
        ForkMethod::Clone => clone(flags)?,
        ForkMethod::Clone3 => clone3(flags)?,
        ForkMethod::Newest => match clone3(flags) {
            Err(Errno(libc::ENOSYS)) => clone(flags)?,
            answer => answer?,
        },
    };
    match child {
        0 => kernel::end(0),
        // Without CLONE_PARENT and similar flags it is a child of this process, and exits by itself.
        child => Ok(kernel::wait_for(child as i32)?.into()),
    }
}

fn clone(flags: u64) -> Result<i64, Errno> {
    call_named(libc::SYS_clone, [flags | libc::SIGCHLD as u64, 0, 0, 0, 0, 0])
}

fn clone3(flags: u64) -> Result<i64, Errno> {
    // struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls
    let arguments = [flags, 0, 0, 0, libc::SIGCHLD as u64, 0, 0, 0];
    let pointer = arguments.as_ptr().expose_provenance() as u64;
    call_named(libc::SYS_clone3, [pointer, size_of_val(&arguments) as u64, 0, 0, 0, 0])
}

fn threads(count: u32) -> Result<i64, StepStop> {
    let started: Result<Vec<_>, _> =
        (0..count).map(|number| thread::Builder::new().spawn(move || i64::from(number))).collect();
    let started = started.map_err(|error| said(&error))?;
    Ok(started.into_iter().filter_map(|thread| thread.join().ok()).sum())
}

fn run(command: &[String], directory: &str) -> ActResult {
    let [program, arguments @ ..] = command else { return Err(StepStop::Said("nothing to run".to_owned())) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    let output = command.output().map_err(|error| match error.raw_os_error() {
        Some(errno) => StepStop::Errno(Errno(errno)),
        None => said(&error),
    })?;
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    match output.status.success() {
        true => Ok((0, told)),
        false => Err(StepStop::Said(format!("{}: {told}", output.status))),
    }
}

fn said(error: &dyn std::error::Error) -> StepStop {
    StepStop::Said(error.to_string())
}

/// Works like a just-in-time compiler: memory is writable or executable, never both, and changes between the two.
fn compile() -> Result<i64, StepStop> {
    const PAGE: u64 = 4096;
    let protect = |address: u64, protection: libc::c_int| {
        call_named(libc::SYS_mprotect, [address, PAGE, protection as u64, 0, 0, 0])
    };
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let page =
        call_named(libc::SYS_mmap, [0, PAGE, writable as u64, flags as u64, u64::MAX, 0])?.cast_unsigned();
    let mut sum = 0;
    for number in [40_u32, 2] {
        protect(page, writable)?;
        // mov eax, number; ret
        let [a, b, c, d] = number.to_le_bytes();
        kernel::put(page, &[0xb8, a, b, c, d, 0xc3]);
        protect(page, libc::PROT_READ | libc::PROT_EXEC)?;
        sum += i64::from(kernel::run_code(page));
    }
    call_named(libc::SYS_munmap, [page, PAGE, 0, 0, 0, 0])?;
    Ok(sum)
}

/// Handles a signal that arrives at once, one that is waited for with another mask, and one that ends a pause.
fn handle() -> Result<i64, StepStop> {
    const SIGNAL: u64 = libc::SIGUSR1 as u64;
    let pointer = |words: &[u64]| words.as_ptr().expose_provenance() as u64;
    kernel::handle(libc::SIGUSR1);
    kernel::handle(libc::SIGALRM);
    let own = call_named(libc::SYS_getpid, [0; 6])?.cast_unsigned();
    call_named(libc::SYS_kill, [own, SIGNAL, 0, 0, 0, 0])?;
    let (set, none) = ([1 << (SIGNAL - 1)], [0]);
    call_named(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as u64, pointer(&set), 0, 8, 0, 0])?;
    call_named(libc::SYS_kill, [own, SIGNAL, 0, 0, 0, 0])?;
    let interrupted = [
        call_named(libc::SYS_rt_sigsuspend, [pointer(&none), 8, 0, 0, 0, 0]),
        // The alarm arrives once, 20 ms later.
        call_named(libc::SYS_setitimer, [0, pointer(&[0, 0, 0, 20_000]), 0, 0, 0, 0])
            .and_then(|_| call_named(libc::SYS_pause, [0; 6])),
    ];
    match (interrupted, kernel::handled()) {
        ([Err(Errno(libc::EINTR)), Err(Errno(libc::EINTR))], 3) => Ok(3),
        (answers, times) => Err(StepStop::Said(format!("handled {times} times; {answers:?}"))),
    }
}

/// Stops and continues a relative sleep, which the kernel resumes by `restart_syscall`.
fn resume() -> Result<i64, StepStop> {
    let Some(sleeper) = kernel::fork()? else {
        let begun = [0_u64, 200_000_000];
        let pointer = begun.as_ptr().expose_provenance() as u64;
        let slept = call_named(libc::SYS_clock_nanosleep, [1, 0, pointer, 0, 0, 0]);
        kernel::end(if slept.is_ok() { 0 } else { 1 })
    };
    let pid = i64::from(sleeper).cast_unsigned();
    thread::sleep(Duration::from_millis(50));
    call_named(libc::SYS_kill, [pid, libc::SIGSTOP as u64, 0, 0, 0, 0])?;
    kernel::wait_for(sleeper)?;
    call_named(libc::SYS_kill, [pid, libc::SIGCONT as u64, 0, 0, 0, 0])?;
    match kernel::wait_for(sleeper)? {
        0 => Ok(0),
        status => Err(StepStop::Said(format!("the sleeper ended with {status:#x}"))),
    }
}

/// Traces a child into one system call and out of it.
fn trace() -> Result<i64, StepStop> {
    const TRACE_ME: u64 = 0;
    const CONTINUE_TO_CALL: u64 = 24;
    const DETACH: u64 = 17;
    let ptrace = |request: u64, pid: i32| {
        call_named(libc::SYS_ptrace, [request, pid.cast_unsigned().into(), 0, 0, 0, 0])
    };
    let Some(child) = kernel::fork()? else {
        let traced = ptrace(TRACE_ME, 0);
        let own = call_named(libc::SYS_getpid, [0; 6]).unwrap_or_default().cast_unsigned();
        let _ = call_named(libc::SYS_kill, [own, libc::SIGSTOP as u64, 0, 0, 0, 0]);
        let _ = call_named(libc::SYS_getpid, [0; 6]);
        kernel::end(if traced.is_ok() { 0 } else { 1 })
    };
    let mut stops = 0;
    kernel::wait_for(child)?;
    for _ in 0..2 {
        ptrace(CONTINUE_TO_CALL, child)?;
        kernel::wait_for(child)?;
        stops += 1;
    }
    ptrace(DETACH, child)?;
    match kernel::wait_for(child)? {
        0 => Ok(stops),
        status => Err(StepStop::Said(format!("the traced child ended with {status:#x}"))),
    }
}
