//! Takes more and more of a resource until the kernel refuses. Everything is given back.

use super::kernel::{self, Errno, call_named};
use super::machine::StepStop;
use belljar_promises::attempt::ExhaustibleResource;
use std::io::{Read, Write};
use std::sync::Arc;
use std::thread;

/// Takes up to `most`, and returns the number that it got.
pub(super) fn exhaust(what: ExhaustibleResource, most: u32) -> Result<i64, StepStop> {
    match what {
        ExhaustibleResource::Processes => processes(most),
        ExhaustibleResource::Threads => threads(most),
        ExhaustibleResource::Orphans => orphans(most),
        ExhaustibleResource::Descriptors => descriptors(most),
        ExhaustibleResource::LockedMemory => locked_memory(most),
    }
}

/// Starts processes that wait for the end of a pipe. They end with this process, or when it has enough.
fn processes(most: u32) -> Result<i64, StepStop> {
    let (waiting, ending) = std::io::pipe().map_err(|error| StepStop::Said(error.to_string()))?;
    let mut children = Vec::new();
    let stopped = loop {
        if children.len() >= most as usize {
            break None;
        }
        match kernel::fork() {
            Ok(None) => {
                drop(ending);
                let _ = std::io::copy(&mut &waiting, &mut std::io::sink());
                kernel::end(0);
            }
            Ok(Some(child)) => children.push(child),
            Err(errno) => break Some(errno),
        }
    };
    // Kill one after another: thousands of processes that wake at once would slow down the whole machine.
    for child in &children {
        let pid = i64::from(*child).cast_unsigned();
        let _ = call_named(libc::SYS_kill, [pid, libc::SIGKILL as u64, 0, 0, 0, 0]);
        let _ = kernel::wait_for(*child);
    }
    drop(ending);
    outcome(children.len(), stopped)
}

/// Starts threads that wait for one byte each.
fn threads(most: u32) -> Result<i64, StepStop> {
    const STACK_BYTES: usize = 16 << 10;
    let (waiting, mut waking) = std::io::pipe().map_err(|error| StepStop::Said(error.to_string()))?;
    let waiting = Arc::new(waiting);
    let mut started = Vec::new();
    let mut stopped = None;
    for _ in 0..most {
        let waiting = Arc::clone(&waiting);
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let _ = (&*waiting).read_exact(&mut [0]);
        });
        match thread {
            Ok(thread) => started.push(thread),
            Err(error) => {
                stopped = Some(Errno(error.raw_os_error().unwrap_or_default()));
                break;
            }
        }
    }
    let count = started.len();
    // Each byte wakes one arbitrary thread.
    for _ in 0..count {
        let _ = waking.write_all(&[0]);
    }
    for thread in started {
        let _ = thread.join();
    }
    outcome(count, stopped)
}

/// Starts processes whose parents exit before them, so that PID 1 or a subreaper has to reap them.
fn orphans(most: u32) -> Result<i64, StepStop> {
    for made in 0..most {
        match kernel::fork() {
            Ok(None) => {
                // The child creates the orphan and exits.
                let _ = kernel::fork();
                kernel::end(0);
            }
            Ok(Some(child)) => {
                let _ = kernel::wait_for(child);
            }
            Err(errno) => return outcome(made as usize, Some(errno)),
        }
    }
    outcome(most as usize, None)
}

fn descriptors(most: u32) -> Result<i64, StepStop> {
    let _ = raise(libc::RLIMIT_NOFILE, u64::from(most) + 1024);
    let mut open = Vec::new();
    let stopped = loop {
        if open.len() >= most as usize {
            break None;
        }
        match call_named(libc::SYS_dup, [0; 6]) {
            Ok(descriptor) => open.push(descriptor),
            Err(errno) => break Some(errno),
        }
    };
    for descriptor in &open {
        let _ = call_named(libc::SYS_close, [descriptor.cast_unsigned(), 0, 0, 0, 0, 0]);
    }
    outcome(open.len(), stopped)
}

fn locked_memory(most: u32) -> Result<i64, StepStop> {
    let length = u64::from(most) << 20;
    let _ = raise(libc::RLIMIT_MEMLOCK, length * 2);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let mapped = call_named(libc::SYS_mmap, [0, length, protection, flags as u64, u64::MAX, 0])?;
    call_named(libc::SYS_mlock, [mapped.cast_unsigned(), length, 0, 0, 0, 0])?;
    call_named(libc::SYS_munmap, [mapped.cast_unsigned(), length, 0, 0, 0, 0])?;
    Ok(most.into())
}

/// Sets the soft and the hard limit of a resource.
fn raise(resource: libc::__rlimit_resource_t, to: u64) -> Result<i64, Errno> {
    let limit = [to, to];
    let pointer = limit.as_ptr().expose_provenance() as u64;
    call_named(libc::SYS_prlimit64, [0, resource.into(), pointer, 0, 0, 0])
}

fn outcome(count: usize, stopped: Option<Errno>) -> Result<i64, StepStop> {
    match stopped {
        None => Ok(count as i64),
        Some(errno) => Err(StepStop::Errno(errno)),
    }
}
