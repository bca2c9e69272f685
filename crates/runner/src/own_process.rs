//! Setup of the runner's own process before it runs anything.

use crate::cancellation::Cancellation;
use crate::log::Log;
use crate::process;
use rustix::process::DumpableBehavior;
use std::io;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Message of the last panic; the hook has no other place to store it.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// True if processes that steps leave running may be outside of the runner's children.
static LOSES_ORPHANS: AtomicBool = AtomicBool::new(false);

/// Prepares the process. Features that the kernel or the sandbox doesn't grant are logged; only a runner that can't be
/// cancelled doesn't start.
pub(crate) fn prepare(log: &Log<'_>) -> io::Result<Cancellation> {
    std::panic::set_hook(Box::new(remember));
    keep_freed_memory();
    let cancellation = Cancellation::new()?;
    cancellation.on_signals()?;
    // Descriptors that the runner inherited must not reach the programs it starts.
    const FIRST_BEYOND_STDIO: i32 = 3;
    close_fds::set_fds_cloexec(FIRST_BEYOND_STDIO, &[]);
    // Orphaned processes become children of the runner, where it can find them.
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        log.warn(format!("cannot adopt orphaned processes of steps: {error}"));
        LOSES_ORPHANS.store(true, Ordering::SeqCst);
    }
    // No process of the same user may trace the runner or read its memory and descriptors.
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        log.warn(format!("cannot protect the runner's memory from steps: {error}"));
    }
    Ok(cancellation)
}

/// Returns true if it is unknown which processes the started programs leave running.
pub(crate) fn loses_orphans() -> bool {
    LOSES_ORPHANS.load(Ordering::SeqCst)
}

/// Runs an operation for which PID 1 must read the runner's memory: it connects sockets on the runner's behalf, and
/// reads their addresses there. No other process can read the memory meanwhile, because all processes that steps have
/// started are killed first.
pub(crate) fn seen_by_init<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if loses_orphans() {
        return Err(io::Error::other("it is unknown which processes steps have left running"));
    }
    process::end_all().map_err(|survivors| io::Error::other(survivors.to_string()))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    let done = work();
    // Readable memory is worse than a failed job.
    if let Err(error) = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        panic!("cannot protect the runner's memory again: {error}");
    }
    done
}

/// Has the allocator reuse large pieces instead of giving them back and asking for fresh ones.
///
/// A large job is read, decoded and worked on in pieces of some megabytes, one after the other. By default each is
/// mapped afresh, and for a large patch a tenth of the time goes into page faults. glibc raises its thresholds to the
/// largest piece that was freed, so one is freed that was never touched. Elsewhere this does nothing.
fn keep_freed_memory() {
    const JUST_BELOW_THE_MOST_THAT_COUNTS: usize = (32 << 20) - (64 << 10);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(JUST_BELOW_THE_MOST_THAT_COUNTS)));
}

/// Returns the message of the last panic, once.
pub(crate) fn take_last_panic() -> Option<String> {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn remember(panic: &PanicHookInfo<'_>) {
    let said = panic.to_string();
    *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
}
